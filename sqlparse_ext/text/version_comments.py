r"""Version comments, `/*!50101 … */` and MariaDB's `/*M!100100 … */`, read by the server's own rule.

A text is *resolved* before anything else reads it: the parts that a server of that family and version
executes stay as code, the skipped parts go. The server gets the resolved text too, so
that both always read the same statement.

The rules are those of MY_LEX_LONG_COMMENT and consume_comment in sql/sql_lex.cc:

* Five digits or six are a version, on MySQL six only before a blank; with fewer the comment is
  always executed.
* MySQL executes versions up to its own and reads `/*M!` as an ordinary comment. MariaDB
  also skips MySQL's versions from 5.7 on: 50700 to 99999 without the M.
* A skipped comment may contain ordinary comments, which contain none. Quotes mean nothing in it.
* An executed one ends at the next `*/` that is a token. There is a flag and no depth: a second
  version comment inside does not need a separate end.
* A comment without an end is an error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.errors import TooManyTokens
from streamfrom.sqlparse_ext.text.chunks import literal_end, pause
from streamfrom.sqlparse_ext.text.lexer import Edit, replace
from streamfrom.sqlparse_ext.text.lexer_patterns import Lexis, lexis
from streamfrom.sqlparse_ext.text.multibyte_text import readable


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.sql_mode import SqlMode


class ServerVersion(NamedTuple):
    """The server that reads the text. version: 101119 for 10.11.19."""

    is_mariadb: bool
    version: int

    @property
    def quotes_by_dollars(self) -> bool:
        """True if `$$ … $$` is a literal."""
        return not self.is_mariadb and self.version >= _DOLLAR_QUOTES_MIN

    def executes(self, version: int, *, is_mariadbs: bool) -> bool:
        """Return whether a comment of *version* is code; is_mariadbs: it is written `/*M!`."""
        if not self.is_mariadb:
            return version <= self.version
        return version <= self.version and (
            is_mariadbs or not _MYSQL_5_7 <= version <= _MYSQL_LAST
        )


# Finding more takes 200 MB.
_COMMENTS_MAX: Final = 1_000_000
_DOLLAR_QUOTES_MIN: Final = 90000
_MYSQL_5_7: Final = 50700
_MYSQL_LAST: Final = 99999
# MariaDB's greeting has 5.5.5- before its version, without which old MySQL replicas refused it.
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)")
_SHORT: Final = 5
_BLANKS: Final = (b" ", b"\t", b"\n", b"\r", b"\f", b"\v")

# A skipped part, up to the limit of one call, and the text after it: its end, or an ordinary comment.
_SKIPPED: Final = re.compile(
    rb"(?:[^*/]{1,4096}+|/(?!\*)|\*(?!/)){0,64}(?:(\*/)|(/\*)|)", re.DOTALL
)
_DIGITS: Final = re.compile(rb"[0-9]{5}[0-9]?")


@lru_cache
def server_version(text: str) -> ServerVersion:
    """Return the server version in *text*, a server's version string, which decides how it reads comments."""
    found = _VERSION.match(text)
    major, minor, patch = map(int, found.groups()) if found else (0, 0, 0)
    return ServerVersion("MariaDB" in text, major * 10_000 + minor * 100 + patch)


def resolved(sql: bytes, mode: SqlMode, server: ServerVersion) -> bytes:
    """Return *sql* without version comments, as *server* reads it. Takes linear time."""
    edits = resolution(sql, mode, server) if b"/*!" in sql or b"/*M!" in sql else ()
    return replace(sql, edits) if edits else sql


def resolution(sql: bytes, mode: SqlMode, server: ServerVersion) -> list[Edit]:
    """Return the edits that resolve the version comments of *sql*; none without one."""
    lex = lexis(mode)
    sql = readable(sql, mode)
    edits: list[Edit] = []
    is_open = False
    at = 0
    while at < len(sql):
        pause()
        found = lex.version_comment.match(sql, at)
        assert found is not None, "it matches nothing at all, too"
        start, at = found.start(1), found.end()
        if found[1] is None:
            if at == found.start():
                at = _long_end(sql, at, lex)
        elif found[1] != b"*/":
            is_mariadbs = found[1] == b"/*M!"
            version, at = _version(sql, at, server)
            if is_mariadbs and not server.is_mariadb:
                at = _ordinary_end(sql, start)
            elif version is None or server.executes(version, is_mariadbs=is_mariadbs):
                edits.append(_gap(sql, start, at))
                is_open = True
            else:
                at, has_end = _skipped_end(sql, at)
                edits.append(_gap(sql, start, at) if has_end else Edit(start, at, b"/*"))
        elif is_open:
            edits.append(_gap(sql, start, at))
            is_open = False
        else:
            at -= 1  # an asterisk, and a slash that may begin a comment
        if len(edits) > _COMMENTS_MAX:
            raise TooManyTokens(_COMMENTS_MAX)
    if is_open:
        edits.append(Edit(len(sql), len(sql), b"\n/*"))
    return edits


def _version(sql: bytes, at: int, server: ServerVersion) -> tuple[int | None, int]:
    """Return the version that a comment names at *at*, and where it ends."""
    found = _DIGITS.match(sql, at)
    if found is None:
        return None, at
    digits, end = found[0], found.end()
    if len(digits) > _SHORT and not server.is_mariadb and sql[end : end + 1] not in _BLANKS:
        digits, end = digits[:_SHORT], end - 1
    return int(digits), end


def _skipped_end(sql: bytes, at: int) -> tuple[int, bool]:
    """Return where a skipped version comment ends, and whether it has an end at all."""
    while (found := _SKIPPED.match(sql, at)) and found.end() > at:
        pause()
        at = found.end()
        if found[1]:
            return at, True
        if found[2]:
            at = _ordinary_end(sql, found.start(2))
    return len(sql), False


def _ordinary_end(sql: bytes, start: int) -> int:
    return _behind(sql, b"*/", start + 2)


def _long_end(sql: bytes, start: int, lex: Lexis) -> int:
    """Return where a literal or a comment that begins at *start* ends; one without an end takes all that is left."""
    if sql.startswith(b"/*", start):
        return _ordinary_end(sql, start)
    if sql.startswith((b"#", b"-"), start):
        return _behind(sql, b"\n", start)
    end = literal_end(sql, start, len(sql), lex)
    return len(sql) if end is None else end


def _behind(sql: bytes, end: bytes, start: int) -> int:
    found = sql.find(end, start)
    return len(sql) if found < 0 else found + len(end)


def _gap(sql: bytes, start: int, end: int) -> Edit:
    """Replace a range by a blank if one precedes it, else by a comment: a blank after `--` would begin one."""
    is_apart = start and sql[start - 1 : start] in _BLANKS
    return Edit(start, end, b" " if is_apart else b"/**/")
