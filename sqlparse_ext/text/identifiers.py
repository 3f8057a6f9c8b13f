"""Names and values as SQL text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.literal_values import Bits, HexString, Number


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Value

# A backslash reads differently under NO_BACKSLASH_ESCAPES, and control characters garble logs.
_UNSAFE = re.compile(rb"[\x00-\x1f\\\x7f]")


def quote_identifier(name: str) -> str:
    """Return *name* in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> bytes:
    """Return *name* in backticks, as bytes of a text."""
    return quote_identifier(name).encode("utf-8", "surrogateescape")


def text_literal(text: str) -> bytes:
    """Return the SQL text of a string value, for example a name to look up in information_schema."""
    return literal(text.encode("utf-8", "surrogateescape"))


def literal(value: Value) -> bytes:
    """Return the SQL text of *value*; equal values give equal text under every sql_mode.

    Bytes that are UTF-8 become a character string, others x'..'.
    """
    if value is None:
        return b"NULL"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, Number):
        return value.text.encode("ascii")
    if isinstance(value, HexString):
        return b"x'%b'" % value.hex().encode()
    if isinstance(value, Bits):
        return b"0x" + value.hex().encode() if value else b"b''"
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return b"x'%b'" % value.hex().encode()
    if _UNSAFE.search(value):
        return b"_utf8mb4 x'%b'" % value.hex().encode()
    return b"'" + value.replace(b"'", b"''") + b"'"
