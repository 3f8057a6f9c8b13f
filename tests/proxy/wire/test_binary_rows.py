import struct

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import ValueOfOtherType, WireError
from streamfrom.proxy.wire.binary_parameters import Parameter, value_of
from streamfrom.proxy.wire.binary_rows import BinaryRows, row_types
from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from tests.cases import cases


def row(*columns: tuple[int, int, bytes | None]) -> bytes:
    """Return the binary row of (type, flags, text) columns, from a text row."""
    definitions = [
        column_definition(ColumnDefinition("c", type=kind, flags=flags))
        for kind, flags, _ in columns
    ]
    return BinaryRows(definitions).from_text(text_row([text for _, _, text in columns]))


def types(kind: int, *, charset: int = 45, flags: int = 0) -> bytes:
    return row_types(
        [column_definition(ColumnDefinition("c", type=kind, charset=charset, flags=flags))]
    )


def test_what_a_client_reads_alike_is_one_type_and_all_else_another():
    text = types(FieldType.VAR_STRING)
    assert types(FieldType.BLOB) == types(FieldType.STRING, charset=8) == text
    assert types(FieldType.JSON, charset=63) == text
    assert types(FieldType.YEAR) == types(FieldType.YEAR, flags=FieldFlag.UNSIGNED)
    binary = ("LONG", "LONGLONG", "FLOAT", "DOUBLE", "DATE", "DATETIME", "TIME", "BIT", "NEWDECIMAL", "VAR_STRING")  # fmt: skip
    others = [types(FieldType[name], charset=63) for name in binary]
    others.append(types(FieldType.LONG, charset=63, flags=FieldFlag.UNSIGNED))
    assert len({text, *others}) == 1 + len(others)


def value(kind: int, text: bytes, flags: int = 0) -> bytes:
    return row((kind, flags, text))[2:]


@cases(
    kind=FieldType.__getitem__,
    text=str.encode,
    encoded=bytes.fromhex,
    unsigned=bool,
)
def test_each_type_has_its_own_bytes(kind, text, encoded, unsigned):
    assert value(kind, text, FieldFlag.UNSIGNED if unsigned else 0) == encoded


def test_a_long_value_has_a_longer_length():
    assert value(FieldType.BLOB, b"a" * 300) == b"\xfc\x2c\x01" + b"a" * 300


def test_nulls_are_bits_that_begin_with_the_third():
    columns = [(FieldType.TINY, 0, b"1" if number % 3 else None) for number in range(9)]
    assert row(*columns) == b"\0" + bytes([0b00100100, 0b00000001]) + b"\x01" * 6


@given(st.datetimes().map(str), st.booleans(), st.integers(-(2**63), 2**63 - 1))
def test_a_moment_and_an_integer_read_back_as_what_they_were(text, is_timestamp, number):
    kind = FieldType.TIMESTAMP if is_timestamp else FieldType.DATETIME
    data = value(kind, text.encode())
    assert data[0] == len(data) - 1
    assert value_of(Parameter(kind, unsigned=False, data=data[1:])) == text.encode()
    data = value(FieldType.LONGLONG, b"%d" % number)
    assert value_of(Parameter(FieldType.LONGLONG, unsigned=False, data=data)) == number


@cases(kind=FieldType.__getitem__, text=str.encode)
def test_a_value_that_is_not_of_its_column_is_refused(kind, text):
    with pytest.raises(ValueOfOtherType) as refused:
        row((FieldType.TINY, 0, b"1"), (kind, 0, text))
    assert refused.value.place == 1


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 10))
def test_what_a_server_shows_of_a_float_is_one(number, digits):
    for text in (f"{number:.6g}", f"{number:.{digits}f}"):
        (kept,) = struct.unpack("<f", value(FieldType.FLOAT, text.encode()))
        assert kept == struct.unpack("<f", struct.pack("<f", float(text)))[0]


def test_a_row_of_another_size_is_refused():
    with pytest.raises(WireError):
        BinaryRows([]).from_text(text_row([b"1"]))
