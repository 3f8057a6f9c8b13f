r"""Version comments, `/*!50101 … */` and MariaDB's `/*M!100100 … */`, read by the server's own rule.

A text is *resolved* before anything else reads it: what a server of that family and version
executes stays as code, what it skips goes. The resolved text is also what the server is sent, so
that it is never read as another statement than the server's.

The rules are those of MY_LEX_LONG_COMMENT and consume_comment in sql/sql_lex.cc:

* Five digits or six are a version, on MySQL six only before a blank; with fewer the comment is
  always executed.
* MySQL executes what is at most its own version and takes `/*M!` for an ordinary comment. MariaDB
  skips MySQL's versions from 5.7 on as well: 50700 to 99999 without the M.
* What is skipped may hold ordinary comments, which hold none. Quotes mean nothing in it.
* What is executed ends at the next `*/` that is a token. There is a flag and no depth: a second
  version comment inside does not need an end of its own.
* A comment without an end is an error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.errors import TooManyTokens
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.text.chunks import pause
from streamfrom.sqlparse_ext.text.lexer import Edit, replace
from streamfrom.sqlparse_ext.text.multibyte_text import readable


class ServerVersion(NamedTuple):
    """Who reads the text. version: 101119 for 10.11.19."""

    is_mariadb: bool
    version: int

    @property
    def quotes_by_dollars(self) -> bool:
        """`$$ … $$` is a literal."""
        return not self.is_mariadb and self.version >= _DOLLAR_QUOTES_MIN

    def executes(self, version: int, *, is_mariadbs: bool) -> bool:
        """Return whether a comment of *version* is code; is_mariadbs: it is written `/*M!`."""
        if not self.is_mariadb:
            return version <= self.version
        return version <= self.version and (
            is_mariadbs or not _MYSQL_5_7 <= version <= _MYSQL_LAST
        )


# More take 200 MB while they are looked for.
_COMMENTS_MAX: Final = 1_000_000
_DOLLAR_QUOTES_MIN: Final = 90000
_MYSQL_5_7: Final = 50700
_MYSQL_LAST: Final = 99999
# MariaDB's greeting has 5.5.5- before its version, without which old MySQL replicas refused it.
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)")
_SHORT: Final = 5
_BLANKS: Final = (b" ", b"\t", b"\n", b"\r", b"\f", b"\v")

# What is skipped, as far as one call looks, and what stands behind it: its end, or an ordinary comment.
_SKIPPED: Final = re.compile(
    rb"(?:[^*/]{1,4096}+|/(?!\*)|\*(?!/)){0,64}(?:(\*/)|(/\*)|)", re.DOTALL
)
# A part of a literal with escapes, by what opened it.
_INSIDE: Final = {
    quote: re.compile(rb"(?:[^%s\\]{1,256}+|\\.){0,1024}" % quote, re.DOTALL)
    for quote in (b"'", b'"')
}


def _marks(*, ansi_quotes: bool, backslash_escapes: bool) -> re.Pattern[bytes]:
    """Find the next thing that matters outside of literals, names and comments to a line's end.

    Groups: what opens a version comment, its M, its version; what opens an ordinary comment; an
    end; what opens a literal, a name or a comment to a line's end, if that is long. None of them
    where there is nothing yet: one call looks at 256 KB of a large text at most, in a millisecond.
    A literal of 15 MB with escapes took 104 ms in one call, while no other thread ran.
    """
    single = rb"(?:[^'\\]|\\.)" if backslash_escapes else rb"[^']"
    double = rb'(?:[^"\\]|\\.)' if backslash_escapes and not ansi_quotes else rb'[^"]'
    return re.compile(
        rb"(?:[^'\"`#/*-]{1,1024}+|'" + single + rb"{0,1024}'|\"" + double + rb"{0,1024}\""
        rb"|`[^`]{0,1024}+`|-(?!-[\x00-\x20\x7f]|-\Z)|/(?!\*)|\*(?!/)){0,256}"
        rb"(?:(/\*(M?)!([0-9]{5}[0-9]?)?)|(/\*)|(\*/)|(['\"`#]|--(?=[\x00-\x20\x7f]|\Z))|)",
        re.DOTALL,
    )  # fmt: skip


_MARKS: Final = tuple(
    _marks(
        ansi_quotes=bool(bits & SqlMode.ANSI_QUOTES),
        backslash_escapes=not bits & SqlMode.NO_BACKSLASH_ESCAPES,
    )
    for bits in range(4)
)
_OPEN, _M, _DIGITS, _COMMENT, _CLOSE, _LONG = range(1, 7)


@lru_cache
def server_version(text: str) -> ServerVersion:
    """Return what *text*, as a server reports its version, says of how it reads comments."""
    found = _VERSION.match(text)
    major, minor, patch = map(int, found.groups()) if found else (0, 0, 0)
    return ServerVersion("MariaDB" in text, major * 10_000 + minor * 100 + patch)


def resolved(sql: bytes, mode: SqlMode, server: ServerVersion) -> bytes:
    """Return *sql* without version comments, as *server* reads it. Takes linear time."""
    edits = resolution(sql, mode, server) if b"/*!" in sql or b"/*M!" in sql else ()
    return replace(sql, edits) if edits else sql


def resolution(sql: bytes, mode: SqlMode, server: ServerVersion) -> list[Edit]:
    """Return what is to be put in place of the version comments of *sql*; nothing without one."""
    marks = _MARKS[int(mode) & 3]
    sql = readable(sql, mode)
    edits: list[Edit] = []
    is_open = False
    at = 0
    while (found := marks.match(sql, at)) and found.end() > at:
        pause()
        at = found.end()
        if found.lastindex is None:
            continue
        is_mariadbs, digits = bool(found[_M]), found[_DIGITS]
        if found[_COMMENT]:
            at = _ordinary_end(sql, found.start(_COMMENT))
            continue
        if found[_LONG]:
            at = _long_end(sql, found.start(_LONG), mode)
            continue
        if (
            digits
            and len(digits) > _SHORT
            and not server.is_mariadb
            and sql[at : at + 1] not in _BLANKS
        ):
            at -= 1
            digits = digits[:_SHORT]
        if found[_CLOSE]:
            if is_open:
                edits.append(_gap(sql, found.start(_CLOSE), at))
                is_open = False
            else:
                at -= 1  # an asterisk, and a slash that may begin a comment
        elif is_mariadbs and not server.is_mariadb:
            at = _ordinary_end(sql, found.start(_OPEN))
        elif digits is None or server.executes(int(digits), is_mariadbs=is_mariadbs):
            edits.append(_gap(sql, found.start(_OPEN), at))
            is_open = True
        else:
            start = found.start(_OPEN)
            at, has_end = _skipped_end(sql, at)
            edits.append(_gap(sql, start, at) if has_end else Edit(start, at, b"/*"))
        if len(edits) > _COMMENTS_MAX:
            raise TooManyTokens(_COMMENTS_MAX)
    if is_open:
        edits.append(Edit(len(sql), len(sql), b"\n/*"))
    return edits


def _skipped_end(sql: bytes, at: int) -> tuple[int, bool]:
    """Return where a version comment ends that is skipped, and whether it has an end at all."""
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


def _long_end(sql: bytes, start: int, mode: SqlMode) -> int:
    """Return where a literal, a name or a comment to a line's end is over that begins at *start*."""
    quote = sql[start : start + 1]
    if quote in b"#-":
        return _behind(sql, b"\n", start)
    is_name = quote == b"`" or (quote == b'"' and mode & SqlMode.ANSI_QUOTES)
    if is_name or mode & SqlMode.NO_BACKSLASH_ESCAPES:
        return _behind(sql, quote, start + 1)
    at = start + 1
    while (found := _INSIDE[quote].match(sql, at)) and found.end() > at:
        pause()
        at = found.end()
    return at + 1 if sql[at : at + 1] == quote else len(sql)


def _behind(sql: bytes, end: bytes, start: int) -> int:
    found = sql.find(end, start)
    return len(sql) if found < 0 else found + len(end)


def _gap(sql: bytes, start: int, end: int) -> Edit:
    """Put a blank where one stands already, else a comment: `--` and a blank would begin one."""
    is_apart = start and sql[start - 1 : start] in _BLANKS
    return Edit(start, end, b" " if is_apart else b"/**/")
