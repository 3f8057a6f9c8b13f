"""Rows of the binary protocol, read for tests that compare them.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html
"""

import struct
from collections.abc import Sequence

from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition


INTEGER_BYTES = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.YEAR: 2,
    FieldType.LONG: 4,
    FieldType.INT24: 4,
    FieldType.LONGLONG: 8,
}
REALS = {FieldType.FLOAT: "<f", FieldType.DOUBLE: "<d"}
TIMES = {FieldType.DATE, FieldType.DATETIME, FieldType.TIMESTAMP, FieldType.TIME}


def parse_binary_row(
    columns: Sequence[ColumnDefinition], row: bytes
) -> tuple[bytes | None, ...]:
    """Return each value: numbers as text, all of their digits; times as they are coded."""
    start = 1 + (len(columns) + 9) // 8
    bitmap = int.from_bytes(row[1:start], "little") >> 2
    values: list[bytes | None] = []
    for place, column in enumerate(columns):
        if bitmap >> place & 1:
            values.append(None)
            continue
        size = _size(column.type, row, start)
        start += size[0]
        values.append(_value(column, row[start : start + size[1]]))
        start += size[1]
    assert start == len(row), "bytes behind the last value"
    return tuple(values)


def _size(kind: int, row: bytes, pos: int) -> tuple[int, int]:
    """Return how long the length in front of a value is, and how long the value."""
    if kind in INTEGER_BYTES:
        return 0, INTEGER_BYTES[FieldType(kind)]
    if kind in REALS:
        return 0, struct.calcsize(REALS[FieldType(kind)])
    first = row[pos]
    if kind in TIMES or first < 0xFB:
        return 1, first
    wide = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return 1 + wide, int.from_bytes(row[pos + 1 : pos + 1 + wide], "little")


def _value(column: ColumnDefinition, data: bytes) -> bytes:
    if column.type in INTEGER_BYTES:
        signed = not column.flags & FieldFlag.UNSIGNED
        return str(int.from_bytes(data, "little", signed=signed)).encode()
    if column.type in REALS:
        (value,) = struct.unpack(REALS[FieldType(column.type)], data)
        return repr(value).encode()
    return data
