"""The values of literals: numbers, strings, hexadecimal and bit literals, as the servers read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from streamfrom.sqlparse_ext.sql_mode import SqlMode


@dataclass(frozen=True, slots=True)
class Number:
    """A decimal or floating-point literal, as written."""

    text: str


class Bits(bytes):
    """The bytes of `0x…`, `0b…` or `b'…'`: a number next to a number, elsewhere a string."""

    __slots__ = ()


class HexString(Bits):
    """The bytes of `x'…'`: as `Bits` on MySQL, always a string on MariaDB."""

    __slots__ = ()


def integer_of(value: object) -> int | None:
    """Return the integer that a value is, or that a string of digits represents; None for any other."""
    if isinstance(value, bytes) and not isinstance(value, Bits):
        return int(value) if value.isdigit() and len(value) < _INT_DIGITS_MAX else None
    return value if isinstance(value, int) else None


_INT_MIN: Final = -(1 << 63)
_UINT_MAX: Final = (1 << 64) - 1
_INT_DIGITS_MAX: Final = 20  # of 2**64; a longer literal is a DECIMAL to the server

_INTEGER = re.compile(rb"-?[0-9]+\Z")
_INTRODUCER = re.compile(rb"_[A-Za-z0-9]+[ \t\n\r\f\v]*")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
# The inside of a long string, cut between two characters, by its quote and by whether a
# backslash escapes. Undoing 15 MB of escapes at once took 0.5 s, in which no other thread ran.
_PIECE_BYTES: Final = 32 << 10
_PIECES: Final = {
    (quote, escapes): re.compile(
        rb"(?:[^%b%b]{1,128}+|%b%b|.){1,256}"
        % (quote, rb"\\" if escapes else b"", rb"\\.|" if escapes else b"", quote * 2),
        re.DOTALL,
    )
    for quote in (b"'", b'"')
    for escapes in (True, False)
}
# https://dev.mysql.com/doc/refman/8.4/en/string-literals.html; \% and \_ keep their backslash.
_ESCAPED: Final = {
    b"0": b"\0",
    b"b": b"\b",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"Z": b"\x1a",
    b"%": b"\\%",
    b"_": b"\\_",
}


def is_converted(raw: bytes, mode: SqlMode) -> bool:
    """Return whether the server reads a literal as other bytes than those that are written."""
    return SqlMode.OTHER_CHARSET in mode and not raw.isascii()


def decode_literal(raw: bytes, mode: SqlMode) -> int | bytes | Number:
    """Return the value of one literal as the lexer cut it out."""
    if raw.isdigit() and len(raw) < _INT_DIGITS_MAX - 1:
        return int(raw)
    first = raw[:1]
    if first == b"_":
        # With a character set's name even 0x39 is a string.
        named = decode_literal(_INTRODUCER.sub(b"", raw, count=1), mode)
        return bytes(named) if isinstance(named, Bits) else named
    if first in (b"'", b'"'):
        return _decode_string(raw, mode)
    if first in (b"N", b"n"):
        return _decode_string(raw[1:], mode)
    if first in (b"x", b"X"):
        return HexString(_decode_hex(raw[2:-1]))
    if first in (b"b", b"B"):
        return Bits(_decode_bits(raw[2:-1]))
    if raw[:2] == b"0x":
        return Bits(_decode_hex(raw[2:]))
    if raw[:2] == b"0b":
        return Bits(_decode_bits(raw[2:]))
    if raw[:3] in (b"-0x", b"-0b"):
        return -int(raw[1:], 0)
    if _INTEGER.match(raw):
        digits = raw.lstrip(b"-").lstrip(b"0")
        if len(digits) <= _INT_DIGITS_MAX and _INT_MIN <= (number := int(raw)) <= _UINT_MAX:
            return number
    return Number(raw.decode("ascii"))


def _decode_string(raw: bytes, mode: SqlMode) -> bytes:
    quote = raw[:1]
    text = raw[1:-1]
    if len(text) <= _PIECE_BYTES:
        return _decode_piece(text, quote, mode)
    pieces = _PIECES[quote, SqlMode.NO_BACKSLASH_ESCAPES not in mode].finditer(text)
    return b"".join(_decode_piece(piece[0], quote, mode) for piece in pieces)


def _decode_piece(text: bytes, quote: bytes, mode: SqlMode) -> bytes:
    if b"\\" not in text or SqlMode.NO_BACKSLASH_ESCAPES in mode:
        return text.replace(quote * 2, quote)
    # A doubled quote is undone only between escapes: \'' is an escaped quote and then a quote.
    parts = _ESCAPE.split(text)
    parts[::2] = [part.replace(quote * 2, quote) for part in parts[::2]]
    parts[1::2] = [_ESCAPED.get(part, part) for part in parts[1::2]]
    return b"".join(parts)


def _decode_hex(digits: bytes) -> bytes:
    try:
        return bytes.fromhex(("0" if len(digits) % 2 else "") + digits.decode("ascii"))
    except ValueError:  # the server refuses x'zz'
        return b""


def _decode_bits(digits: bytes) -> bytes:
    try:
        return int(digits or b"0", 2).to_bytes((len(digits) + 7) // 8, "big")
    except ValueError:
        return b""
