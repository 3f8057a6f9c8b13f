"""Rewrite a text for the lexers when its bytes alone do not show where the quotes are.

`readable` returns a text of the same length, so positions in one are positions in the other. The server gets the client's text.

* In some character sets (`SqlMode.BIG5` and similar ones) a backslash or a quote may be the second half of a character. It reads as a
  letter, a digit, `_` or a byte of 0x80 and more. The servers' own rules decide where a character ends: `ismbchar_gbk`, `ismbchar_big5`,
  `ismbchar_sjis`, `my_ismbchar_gb18030` of their `strings/ctype-*`. A backslash in a literal takes the one byte after
  it, whatever character that byte begins (`get_text` of their `sql_lex.cc`); in a name and in a comment it is a letter.
* MySQL 9 has quotes such as `$$ … $$` and `$tag$ … $tag$` (`SqlMode.DOLLAR_QUOTES`), which older ones and MariaDB read as names. They read
  as string literals. A name may contain a `$`, and begin with one that no second `$` follows.
  https://dev.mysql.com/doc/refman/9.4/en/create-procedure.html
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import Final

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.text.chunks import pause


MULTIBYTE: Final = int(SqlMode.BIG5 | SqlMode.GB18030 | SqlMode.GBK | SqlMode.SJIS)

_READ: Final = MULTIBYTE | int(SqlMode.DOLLAR_QUOTES)
_SECOND: Final = bytes(range(0x40, 0x7F))
_LETTERS: Final = (string.digits + string.ascii_letters + "_").encode()
_TO_LETTERS: Final = bytes.maketrans(_SECOND, _LETTERS)
_FROM_LETTERS: Final = bytes.maketrans(_LETTERS, _SECOND)
_CHARACTERS: Final = {
    0: rb"(?!)",
    int(SqlMode.BIG5): rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    int(SqlMode.GB18030): rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])",
    int(SqlMode.GBK): rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    int(SqlMode.SJIS): rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]",
}
_FIRST_MIN: Final = 0x80
_FOUR_BYTES: Final = 4
# Where a name continues or a variable begins, a `$` is a letter.
_OPENING: Final = rb"(?<![\w$.@\x80-\xff])\$[\w\x80-\xff]*\$"
_DOLLARS: Final = re.compile(_OPENING)


def has_dollar_quotes(text: bytes) -> bool:
    """Return whether MySQL 9 reads quotes in *text* that other servers read as names."""
    return _DOLLARS.search(text) is not None


def readable(text: bytes, mode: SqlMode) -> bytes:
    """Return *text* in the form that the lexers read under *mode*; most texts come back unchanged."""
    bits = int(mode) & _READ
    # Nearly every text ends here.
    if not bits or (bits == bits & MULTIBYTE and text.isascii()):
        return text
    opening, insides, elsewhere = reader(int(mode))
    parts: list[bytes] = []
    at = 0
    while found := opening.search(text, at):
        pause()
        parts.append(text[at : found.start()])
        at = found.end()
        if found.lastgroup == "dollars":
            close = text.find(found[0], at)
            at = len(text) if close < 0 else close + len(found[0])
            parts.append(_as_literal(text[found.start() : at], found[0]))
        elif found.lastgroup == "quote":
            inside, characters = insides[found[0]]
            parts.append(found[0])
            while (piece := inside.match(text, at)) and piece.end() > at:
                pause()
                parts.append(characters.sub(_readable, piece[0]))
                at = piece.end()
            parts.append(text[at : at + 1])
            at += 1
        else:
            parts.append(elsewhere.sub(_readable, found[0]))
    parts.append(text[at:])
    return b"".join(parts)


def original(name: bytes, mode: SqlMode) -> bytes:
    """Return the original bytes of a name that was read from a rewritten text.

    In gb18030 two characters of two bytes may come back as one of four; it only matters
    that the name of a table is recognised.
    """
    charset = int(mode) & MULTIBYTE
    if not charset or name.isascii():
        return name
    return _read_characters(charset).sub(_original, name)


@cache
def reader(
    mode: int,
) -> tuple[
    re.Pattern[bytes],
    dict[bytes, tuple[re.Pattern[bytes], re.Pattern[bytes]]],
    re.Pattern[bytes],
]:
    """Return the patterns of the next character, comment or opening of a quote, and of characters elsewhere.

    Between them, by quote: the patterns of a part of the inside, and of the characters in it.
    """
    character = _CHARACTERS[mode & MULTIBYTE]
    escapes = rb"|\\." if not mode & SqlMode.NO_BACKSLASH_ESCAPES else b""
    dollars = _OPENING if mode & SqlMode.DOLLAR_QUOTES else b"(?!)"
    opening = re.compile(
        rb"(?P<quote>['\"`])|(?P<dollars>%s)"
        rb"|/\*(?!M?!|(?:vt)?\+).*?(?:\*/|\Z)|#[^\n]*+|--(?=[\x00-\x20\x7f]|\Z)[^\n]*+|%s"
        % (dollars, character),
        re.DOTALL,
    )
    elsewhere = re.compile(character)
    in_literal = re.compile(character + escapes, re.DOTALL)
    insides = {}
    for quote in (b"'", b'"', b"`"):
        is_name = quote == b"`" or (quote == b'"' and mode & SqlMode.ANSI_QUOTES)
        inside = re.compile(
            rb"(?:[^%b\\\x80-\xff]++|%b%b|[^%b]){0,1024}"
            % (quote, character, b"" if is_name else escapes, quote),
            re.DOTALL,
        )
        insides[quote] = inside, elsewhere if is_name else in_literal
    return opening, insides, elsewhere


def _as_literal(quoted: bytes, dollars: bytes) -> bytes:
    """Return a literal of the same length; an open quote stays one."""
    is_closed = len(quoted) >= 2 * len(dollars) and quoted.endswith(dollars)
    # The contents are never shown: only the beginning and the end matter to the lexers.
    return b"'" + b"." * (len(quoted) - 2) + (b"'" if is_closed else b".")


def _readable(character: re.Match[bytes]) -> bytes:
    found = character[0]
    return found if found[0] < _FIRST_MIN else found[:1] + found[1:].translate(_TO_LETTERS)


def _original(character: re.Match[bytes]) -> bytes:
    found = character[0]
    if len(found) == _FOUR_BYTES:
        return found
    return found[:1] + found[1:].translate(_FROM_LETTERS)


@cache
def _read_characters(charset: int) -> re.Pattern[bytes]:
    second = rb"[0-9A-Z_a-z\x80-\xfe]"
    return re.compile(
        {
            int(SqlMode.GB18030): rb"[\x81-\xfe](?:[0-9][\x81-\xfe][0-9]|%s)" % second,
            int(SqlMode.SJIS): rb"[\x81-\x9f\xe0-\xfc]%s|[\xa1-\xdf]" % second,
        }.get(charset, rb"[\x81-\xfe]%s" % second)
    )
