"""Text in character sets of which a backslash or a quote may be the second half of a character.

The lexers here read bytes. In these character sets (`SqlMode.BIG5` and its kin) they read a text of
the same length in which the second half of each character is a letter, a digit, `_` or a byte of
0x80 and more, so that positions in one are positions in the other. What is sent is the client's text.

The rules of what is one character are the servers' own: `ismbchar_gbk`, `ismbchar_big5`,
`ismbchar_sjis`, `my_ismbchar_gb18030` of their `strings/ctype-*`. A backslash in a literal takes the one byte behind
it, of whatever character that is the first one (`get_text` of their `sql_lex.cc`); in a name and in a comment it is a letter.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlparse_ext.statements import SqlMode


if TYPE_CHECKING:
    from collections.abc import Callable

MULTIBYTE: Final = int(SqlMode.BIG5 | SqlMode.GB18030 | SqlMode.GBK | SqlMode.SJIS)

_SECOND: Final = bytes(range(0x40, 0x7F))
_LETTERS: Final = (string.digits + string.ascii_letters + "_").encode()
_TO_LETTERS: Final = bytes.maketrans(_SECOND, _LETTERS)
_FROM_LETTERS: Final = bytes.maketrans(_LETTERS, _SECOND)
_CHARACTERS: Final = {
    int(SqlMode.BIG5): rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    int(SqlMode.GB18030): rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])",
    int(SqlMode.GBK): rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    int(SqlMode.SJIS): rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]",
}
_FOUR_BYTES: Final = 4


def readable(text: bytes, mode: SqlMode) -> bytes:
    """Return *text* as the lexers read it under *mode*; most come back as they are."""
    if not int(mode) & MULTIBYTE or text.isascii():
        return text
    pieces, read = _reader(int(mode))
    return pieces.sub(read, text)


def original(name: bytes, mode: SqlMode) -> bytes:
    """Return the bytes of a name that was read from such a text.

    In gb18030 two characters of two bytes may come back as one of four; nobody depends on more
    than that the name of a table is recognised.
    """
    charset = int(mode) & MULTIBYTE
    if not charset or name.isascii():
        return name
    return _read_characters(charset).sub(_original, name)


def is_whole(text: bytes, mode: SqlMode) -> bool:
    """Return whether each byte beyond ASCII is part of a character."""
    return re.sub(_CHARACTERS[int(mode) & MULTIBYTE], b"", text).isascii()


@cache
def _reader(
    mode: int,
) -> tuple[re.Pattern[bytes], Callable[[re.Match[bytes]], bytes]]:
    """Return what finds characters, literals, names and comments, and what makes them readable."""
    character = _CHARACTERS[mode & MULTIBYTE]
    escapes = rb"|\\." if not mode & SqlMode.NO_BACKSLASH_ESCAPES else b""
    literal = rb"'(?:[^'\\\x80-\xff]++|%s%s|[^'])*+'?" % (character, escapes)
    double = b"" if mode & SqlMode.ANSI_QUOTES else b"|" + literal.replace(b"'", b'"')
    name = rb"`(?:%s|[^`])*+`?" % character
    names = name + (b"|" + name.replace(b"`", b'"') if mode & SqlMode.ANSI_QUOTES else b"")
    comment = rb"/\*(?!M?!|(?:vt)?\+).*?(?:\*/|\Z)|#[^\n]*+|--(?=[\x00-\x20]|\Z)[^\n]*+"
    pieces = re.compile(
        rb"(%s%s)|%s|%s|%s" % (literal, double, names, comment, character), re.DOTALL
    )
    in_literal = re.compile(character + escapes, re.DOTALL)
    elsewhere = re.compile(character)

    def read(piece: re.Match[bytes]) -> bytes:
        return (in_literal if piece[1] else elsewhere).sub(_readable, piece[0])

    return pieces, read


def _readable(character: re.Match[bytes]) -> bytes:
    found = character[0]
    return found if found[0] < _FIRST else found[:1] + found[1:].translate(_TO_LETTERS)


def _original(character: re.Match[bytes]) -> bytes:
    found = character[0]
    if len(found) == _FOUR_BYTES:
        return found
    return found[:1] + found[1:].translate(_FROM_LETTERS)


_FIRST: Final = 0x80


@cache
def _read_characters(charset: int) -> re.Pattern[bytes]:
    second = rb"[0-9A-Z_a-z\x80-\xfe]"
    return re.compile(
        {
            int(SqlMode.GB18030): rb"[\x81-\xfe](?:[0-9][\x81-\xfe][0-9]|%s)" % second,
            int(SqlMode.SJIS): rb"[\x81-\x9f\xe0-\xfc]%s|[\xa1-\xdf]" % second,
        }.get(charset, rb"[\x81-\xfe]%s" % second)
    )
