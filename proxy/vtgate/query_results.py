"""What MySQL's wire calls columns, rows and values, as Vitess's messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streamfrom.proxy.errors import BadMessageId
from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row


# https://github.com/vitessio/vitess/blob/v7.0.0/go/sqltypes/type.go: by the type of the wire, then by its flags.
_TYPES: Final = {
    FieldType.DECIMAL: pb.DECIMAL,
    FieldType.TINY: pb.INT8,
    FieldType.SHORT: pb.INT16,
    FieldType.LONG: pb.INT32,
    FieldType.FLOAT: pb.FLOAT32,
    FieldType.DOUBLE: pb.FLOAT64,
    FieldType.NULL: pb.NULL_TYPE,
    FieldType.TIMESTAMP: pb.TIMESTAMP,
    FieldType.LONGLONG: pb.INT64,
    FieldType.INT24: pb.INT24,
    FieldType.DATE: pb.DATE,
    FieldType.TIME: pb.TIME,
    FieldType.DATETIME: pb.DATETIME,
    FieldType.YEAR: pb.YEAR,
    FieldType.VARCHAR: pb.VARCHAR,
    FieldType.BIT: pb.BIT,
    FieldType.JSON: pb.JSON,
    FieldType.NEWDECIMAL: pb.DECIMAL,
    FieldType.ENUM: pb.ENUM,
    FieldType.SET: pb.SET,
    FieldType.TINY_BLOB: pb.TEXT,
    FieldType.MEDIUM_BLOB: pb.TEXT,
    FieldType.LONG_BLOB: pb.TEXT,
    FieldType.BLOB: pb.TEXT,
    FieldType.VAR_STRING: pb.VARCHAR,
    FieldType.STRING: pb.CHAR,
    FieldType.GEOMETRY: pb.GEOMETRY,
    FieldType.VECTOR: pb.BLOB,  # Vitess 5 knew none
}
_UNSIGNED: Final = {
    pb.INT8: pb.UINT8,
    pb.INT16: pb.UINT16,
    pb.INT24: pb.UINT24,
    pb.INT32: pb.UINT32,
    pb.INT64: pb.UINT64,
}
_OF_BYTES: Final = {pb.TEXT: pb.BLOB, pb.VARCHAR: pb.VARBINARY, pb.CHAR: pb.BINARY}
_WHOLE_NUMBERS: Final = frozenset({*_UNSIGNED, *_UNSIGNED.values(), pb.YEAR})
_TEXTS: Final = frozenset(_OF_BYTES)


def field_of(definition: bytes) -> pb.Field:
    """Return the field that the payload of a column definition describes. Raises WireError."""
    column = parse_column_definition(definition)
    kind = _TYPES.get(FieldType(column.type), pb.VARBINARY)
    if column.flags & FieldFlag.UNSIGNED:
        kind = _UNSIGNED.get(kind, kind)
    if column.charset == BINARY_CHARSET:
        kind = _OF_BYTES.get(kind, kind)
    if column.flags & FieldFlag.ENUM:
        kind = pb.ENUM
    elif column.flags & FieldFlag.SET:
        kind = pb.SET
    return pb.Field(
        name=column.name,
        type=kind,
        table=column.table,
        org_table=column.org_table,
        database=column.schema,
        org_name=column.org_name,
        column_length=column.length,
        charset=column.charset,
        decimals=column.decimals,
        flags=column.flags,
    )


def rows_of(payloads: Iterable[bytes], columns: int) -> list[pb.Row]:
    """Return the messages of text rows with so many *columns*. Raises WireError."""
    found = []
    for payload in payloads:
        values = parse_text_row(payload, columns)
        found.append(
            pb.Row(
                lengths=[-1 if value is None else len(value) for value in values],
                values=b"".join(value for value in values if value is not None),
            )
        )
    return found


def literals(ids: Sequence[pb.Value]) -> bytes:
    """Return ids as a list of SQL's literals, which end where they should whatever they hold.

    Raises:
        BadMessageId: one is no whole number, text or bytes, or not what its type says.
    """
    return b",".join(map(_literal, ids))


def is_no_number(value: pb.Value) -> bool:
    """Return whether an id is a text, or bytes, that a server could only cut down to a number."""
    digits = value.value.removeprefix(b"-")
    return value.type not in _WHOLE_NUMBERS and not (digits.isdigit() and len(digits) <= 20)


def has_numbers(definition: bytes) -> bool:
    """Return whether the column that a payload describes has whole numbers."""
    return field_of(definition).type in _WHOLE_NUMBERS


def _literal(value: pb.Value) -> bytes:
    if value.type in _WHOLE_NUMBERS:
        digits = value.value.removeprefix(b"-")
        # isdigit of bytes knows the ten of ASCII alone; MySQL's numbers end before 82 of them.
        if digits.isdigit() and len(digits) <= 20:
            return value.value
    elif value.type in _TEXTS:
        return b"_utf8mb4 X'" + value.value.hex().encode() + b"'"
    elif value.type in _OF_BYTES.values():
        return b"X'" + value.value.hex().encode() + b"'"
    is_known = value.type in pb.Type.values()
    raise BadMessageId(pb.Type.Name(value.type) if is_known else "another type", value.value)
