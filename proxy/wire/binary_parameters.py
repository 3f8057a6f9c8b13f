"""The parameters of COM_STMT_EXECUTE: read from clients, written for backends.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html

    NULL bitmap, one bit a parameter   "types follow": 1   type and flag of each   the values

A client that binds the same types again may omit them; the types of the previous execution then apply. A value that
was sent as long data is not in the packet, but its type is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from struct import Struct
from typing import Final, NamedTuple

from streamfrom.proxy.errors import CutTypes, WireError
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import BLOB_TYPES, FieldType
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.statements import OPAQUE, Opaque, Value


_UNSIGNED: Final = 0x80
# The size of each type's values in the binary protocol, in executions and in rows.
INTEGER_BYTES: Final[dict[int, int]] = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.YEAR: 2,
    FieldType.LONG: 4,
    FieldType.INT24: 4,
    FieldType.LONGLONG: 8,
}
FLOATS: Final[dict[int, Struct]] = {
    FieldType.FLOAT: Struct("<f"),
    FieldType.DOUBLE: Struct("<d"),
}
_FIXED_BYTES: Final = INTEGER_BYTES | {kind: each.size for kind, each in FLOATS.items()}
DATES: Final = frozenset({FieldType.DATE, FieldType.DATETIME, FieldType.TIMESTAMP})
_TEMPORAL: Final = DATES | {FieldType.TIME}
_DECIMALS: Final = frozenset({FieldType.DECIMAL, FieldType.NEWDECIMAL})
# Clients may send any text as a decimal. A server reads up to 65 digits exactly.
_DECIMAL_LITERAL: Final = re.compile(rb"-?[0-9]{1,35}\.[0-9]{1,30}")
# A TIME ends at 838:59:59.
_HOURS: Final = re.compile(rb"-?(?:\d\d|[0-7]\d\d|8[0-2]\d|83[0-7])(?::[0-5]\d){2}(?:\.\d+)?")
_BINARY: Final = BLOB_TYPES | {FieldType.BIT, FieldType.GEOMETRY}
_KEPT: Final = _BINARY | _TEMPORAL | _FIXED_BYTES.keys()
# Once MySQL has treated a parameter as a number or a time, it converts later values to that type.
# The first two kinds leave the type unchanged.
_ANY, _TEXT, _INTEGER, _FLOAT, _DECIMAL, _DATE, _DATETIME, _TIME = range(8)
_KIND_OF_TYPE: Final[dict[int, int]] = {
    FieldType.NULL: _ANY,
    **dict.fromkeys(INTEGER_BYTES, _INTEGER),
    **dict.fromkeys(FLOATS, _FLOAT),
    **dict.fromkeys(_DECIMALS, _DECIMAL),
    **dict.fromkeys(DATES, _DATETIME),
    FieldType.DATE: _DATE,
    FieldType.TIME: _TIME,
}
_KINDS: Final = bytes(_KIND_OF_TYPE.get(kind, _TEXT) for kind in range(256))
# Above this a double no longer distinguishes whole numbers.
_WHOLE_MAX: Final = 1 << 53
# The possible sizes of a temporal value's content.
_DATE_SIZES: Final = frozenset({0, 4, 7, 11})
_TIME_SIZES: Final = frozenset({0, 8, 12})


class Parameter(NamedTuple):
    """One value as it was sent."""

    type: int
    unsigned: bool
    data: bytes | None  # the bytes of the value without a length in front; None for NULL


def types_of(body: bytes, count: int, remembered: bytes) -> tuple[bytes, int]:
    """Return the types, two bytes each, and the place in *body* where the values begin.

    *body* is the part after the iteration count; *remembered* are the types of the previous
    execution, empty if there was none.

    Raises:
        CutTypes: the body ends inside the types.
        WireError: the body is cut, or the types were never sent.
    """
    if not count:
        return b"", 0
    at = (count + 7) // 8 + 1
    if len(body) < at:
        raise WireError("the parameters are cut short")
    if body[at - 1] != 1:
        if len(remembered) != 2 * count:
            raise WireError("parameters without types")
        return remembered, at
    types = body[at : at + 2 * count]
    if len(types) != 2 * count:
        raise CutTypes("the types of the parameters are cut short")
    return types, at + 2 * count


def with_types(body: bytes, count: int, types: bytes) -> bytes:
    """Return *body* with *types* in it, whether the client sent them this time or not."""
    bitmap_bytes = (count + 7) // 8
    if not count or body[bitmap_bytes] == 1:
        return body
    return b"".join((body[:bitmap_bytes], b"\x01", types, body[bitmap_bytes + 1 :]))


def kinds_of(body: bytes, count: int) -> bytes:
    """Return the kind of each parameter of a *body* that has its types: see `kinds_together`."""
    at = (count + 7) // 8
    kinds = body[at + 1 : at + 1 + 2 * count : 2].translate(_KINDS)
    if not any(body[:at]):
        return kinds
    return bytes(
        _ANY if body[place // 8] & 1 << place % 8 else kind for place, kind in enumerate(kinds)
    )


def kinds_together(bound: bytes, kinds: bytes) -> bytes | None:
    """Return the kinds as which MySQL treats the parameters from now on; None if it would convert them to those *bound* before."""
    if any(
        old > _TEXT and new not in (_ANY, old) for old, new in zip(bound, kinds, strict=True)
    ):
        return None
    return bytes(map(max, bound, kinds))


def read_parameters(
    body: bytes,
    count: int,
    remembered: bytes = b"",
    long_data: Mapping[int, bytes | bytearray] | None = None,
) -> list[Parameter]:
    """Return the parameters of one execution; *long_data* is by place. Raises WireError if the body is cut."""
    types, at = types_of(body, count, remembered)
    cursor = PacketReader(body, at)
    found = []
    for place in range(count):
        kind, flags = types[2 * place : 2 * place + 2]
        if long_data and place in long_data:
            parameter = Parameter(kind, bool(flags & _UNSIGNED), bytes(long_data[place]))
        elif body[place // 8] & 1 << place % 8:
            parameter = Parameter(kind, bool(flags & _UNSIGNED), None)
        else:
            parameter = _read_value(cursor, kind, flags)
        found.append(parameter)
    return found


def _read_value(cursor: PacketReader, kind: int, flags: int) -> Parameter:
    """Read one value of a type that the client sent as *kind* and *flags*. WireError if cut."""
    data: bytes | None
    if kind == FieldType.NULL:
        data = None
    elif (size := _FIXED_BYTES.get(kind)) is not None:
        data = cursor.read(size)
    elif kind in _TEMPORAL:
        data = cursor.read(cursor.uint(1))
        if len(data) not in (_TIME_SIZES if kind == FieldType.TIME else _DATE_SIZES):
            raise WireError(f"a temporal parameter of {len(data)} bytes")
    else:
        data = cursor.lenenc_bytes()
    return Parameter(kind, bool(flags & _UNSIGNED), data)


def value_of(parameter: Parameter) -> Value:
    """Return the value by which a parameter routes, the same as that of an equal literal.

    A whole number is an integer however it was sent. Languages with one type of number
    (JavaScript) send every id as a double.
    """
    kind, unsigned, data = parameter
    if data is None:
        return None
    if kind in INTEGER_BYTES:
        return int.from_bytes(data, "little", signed=not unsigned)
    if kind in FLOATS:
        (real,) = FLOATS[kind].unpack(data)
        if -_WHOLE_MAX < real < _WHOLE_MAX and real.is_integer():
            return int(real)
        # The exponent makes it a floating-point literal: 0.1 alone is a DECIMAL.
        text = repr(real)
        return Number(text if "e" in text else text + "e0")
    if kind in _TEMPORAL:
        return _temporal(kind, data)
    if kind in _DECIMALS:
        text = data.decode("ascii", "replace")
        is_integer = text.lstrip("-").isdigit() and len(text) <= 20
        return int(text) if is_integer else Number(text)
    return data


def known_value(parameter: Parameter, *, is_utf8: bool) -> Value | Opaque:
    """Return the value by which a parameter routes; OPAQUE if the server converts its bytes.

    is_utf8: strings are sent in UTF-8. Binary types are never converted.
    """
    kind, _, data = parameter
    if not is_utf8 and data is not None and kind not in _KEPT and not data.isascii():
        return OPAQUE
    return value_of(parameter)


def literal_of(parameter: Parameter, *, backslash_escapes: bool) -> bytes:
    """Return the SQL text of a parameter, in the character set of its connection.

    Whole doubles are spelled as integers (see `value_of`): stored or compared they are the same.

    backslash_escapes: False under NO_BACKSLASH_ESCAPES.
    """
    kind, _, data = parameter
    if data is None:
        return b"NULL"
    value = value_of(parameter)
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, Number):
        text = value.text.encode()
        return text if kind in FLOATS or _DECIMAL_LITERAL.fullmatch(text) else _quoted(text)
    assert isinstance(value, bytes)
    if kind in _BINARY:
        # Without the name of a character set MySQL would treat it as a number, next to a number.
        return b"_binary x'" + value.hex().encode() + b"'"
    if kind in _TEMPORAL:
        return _typed(kind, value)
    return _quoted(value, backslash_escapes=backslash_escapes)


def _typed(kind: int, text: bytes) -> bytes:
    """Return a date or a time as a literal of its type, if servers accept that."""
    name = b"TIME" if kind == FieldType.TIME else b"TIMESTAMP" if b" " in text else b"DATE"
    try:
        is_taken = _HOURS.fullmatch(text) or datetime.fromisoformat(text.decode())
    except ValueError:
        is_taken = None
    return name + _quoted(text) if is_taken else _quoted(text)


def _quoted(text: bytes, *, backslash_escapes: bool = True) -> bytes:
    # Character sets in which a quote could be part of another character are not served.
    if backslash_escapes:
        text = text.replace(b"\\", b"\\\\").replace(b"\0", b"\\0")
    return b"'" + text.replace(b"'", b"''") + b"'"


def _temporal(kind: int, data: bytes) -> bytes:
    """Return a date or a time as text, with any microseconds."""
    if kind == FieldType.TIME:
        sign, days, hours, minutes, seconds = b"", 0, 0, 0, 0
        if data:
            sign = b"-" if data[0] else b""
            days = int.from_bytes(data[1:5], "little")
            hours, minutes, seconds = data[5:8]
        text = b"%s%02d:%02d:%02d" % (sign, days * 24 + hours, minutes, seconds)
        fraction = data[8:]
    else:
        year = int.from_bytes(data[:2], "little")
        month, day = data[2:4] or (0, 0)
        text = b"%04d-%02d-%02d" % (year, month, day)
        if kind != FieldType.DATE or len(data) > 4:
            text += b" %02d:%02d:%02d" % (tuple(data[4:7]) or (0, 0, 0))
        fraction = data[7:]
    return text + b".%06d" % int.from_bytes(fraction, "little") if fraction else text
