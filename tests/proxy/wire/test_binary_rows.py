import struct

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import ValueOfOtherType, WireError
from streamfrom.proxy.wire.binary_parameters import Parameter, value_of
from streamfrom.proxy.wire.binary_rows import BinaryRows, row_types
from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from tests.cases import in_turn


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


@in_turn
@pytest.mark.parametrize(
    ("kind", "flags", "text", "encoded"),
    [
        (FieldType.TINY, 0, b"-1", b"\xff"),
        (FieldType.TINY, FieldFlag.UNSIGNED, b"255", b"\xff"),
        (FieldType.SHORT, FieldFlag.UNSIGNED, b"00007", b"\x07\0"),
        (FieldType.YEAR, 0, b"2026", b"\xea\x07"),
        (FieldType.LONG, 0, b"-2", b"\xfe\xff\xff\xff"),
        (FieldType.INT24, 0, b"1", b"\x01\0\0\0"),
        (FieldType.LONGLONG, FieldFlag.UNSIGNED, b"18446744073709551615", b"\xff" * 8),
        (FieldType.FLOAT, 0, b"1.5", struct.pack("<f", 1.5)),
        (FieldType.DOUBLE, 0, b"-0.1", struct.pack("<d", -0.1)),
        (FieldType.NEWDECIMAL, 0, b"1.50", b"\x041.50"),
        (FieldType.VAR_STRING, 0, b"", b"\0"),
        (FieldType.BLOB, 0, b"a" * 300, b"\xfc\x2c\x01" + b"a" * 300),
        (FieldType.BIT, 0, b"\x01", b"\x01\x01"),
        (FieldType.DATE, 0, b"2026-01-02", b"\x04\xea\x07\x01\x02"),
        (FieldType.DATE, 0, b"0000-00-00", b"\0"),
        (FieldType.DATETIME, 0, b"2026-01-02 00:00:00", b"\x04\xea\x07\x01\x02"),
        (FieldType.TIMESTAMP, 0, b"2026-01-02 03:04:05", b"\x07\xea\x07\x01\x02\x03\x04\x05"),
        (
            FieldType.DATETIME,
            0,
            b"2026-01-02 03:04:05.5",
            b"\x0b\xea\x07\x01\x02\x03\x04\x05\x20\xa1\x07\0",
        ),
        (FieldType.TIME, 0, b"00:00:00", b"\0"),
        (FieldType.TIME, 0, b"-26:03:04", b"\x08\x01\x01\0\0\0\x02\x03\x04"),
        (FieldType.TIME, 0, b"00:00:00.000001", b"\x0c\0\0\0\0\0\0\0\0\x01\0\0\0"),
    ],
)
def test_each_type_has_its_own_bytes(kind, flags, text, encoded):
    assert value(kind, text, flags) == encoded


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


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (FieldType.TINY, b"256"),
        (FieldType.LONG, b"x"),
        (FieldType.LONG, b"1.5"),
        (FieldType.FLOAT, b"0.12345678901234"),
        (FieldType.FLOAT, b"1e300"),
        (FieldType.DOUBLE, b"x"),
        (FieldType.DATE, b"today"),
        (FieldType.DATE, b"2026-01-02 00:00:00"),
        (FieldType.DATETIME, b"2026-01-02 03"),
        (FieldType.TIME, b"noon"),
    ],
)
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
