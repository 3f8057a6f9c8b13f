import struct

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.binary_parameters import (
    Parameter,
    literal_of,
    read_parameters,
    types_of,
    value_of,
    with_types,
)
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.literal_values import Number, decode_literal
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from tests.cases import in_turn
from tests.proxy.wire.peers import write_parameters


INTEGERS = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.YEAR: 2,
    FieldType.LONG: 4,
    FieldType.INT24: 4,
    FieldType.LONGLONG: 8,
}
TEXTS = [FieldType.VAR_STRING, FieldType.STRING, FieldType.VARCHAR, FieldType.NEWDECIMAL]
BLOBS = [FieldType.BLOB, FieldType.LONG_BLOB, FieldType.BIT, FieldType.JSON]


def sized(kind: FieldType, *sizes: int) -> st.SearchStrategy[Parameter]:
    data = st.sampled_from(sizes).flatmap(lambda size: st.binary(min_size=size, max_size=size))
    return st.builds(Parameter, st.just(kind), st.booleans(), st.none() | data)


parameters = st.one_of(
    *(sized(kind, size) for kind, size in INTEGERS.items()),
    sized(FieldType.FLOAT, 4),
    sized(FieldType.DOUBLE, 8),
    *(sized(kind, 0, 4, 7, 11) for kind in (FieldType.DATE, FieldType.DATETIME)),
    sized(FieldType.TIMESTAMP, 0, 4, 7, 11),
    sized(FieldType.TIME, 0, 8, 12),
    st.builds(
        Parameter, st.sampled_from(TEXTS + BLOBS), st.booleans(), st.none() | st.binary()
    ),
)


@given(st.lists(parameters, max_size=40))
def test_any_parameters_survive_the_wire(sent):
    assert read_parameters(write_parameters(sent), len(sent)) == sent


@given(st.lists(parameters, min_size=1, max_size=20), st.data())
def test_a_body_cut_anywhere_is_refused_or_says_less_of_the_last_value(sent, data):
    body = write_parameters(sent)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]
    with pytest.raises(WireError):
        read_parameters(cut, len(sent))


@given(st.lists(parameters, min_size=1, max_size=20))
def test_types_that_were_left_out_are_those_of_before(sent):
    body = write_parameters(sent)
    types, values_at = types_of(body, len(sent), b"")
    bare = body[: (len(sent) + 7) // 8] + b"\0" + body[values_at:]
    assert read_parameters(bare, len(sent), types) == sent
    assert with_types(bare, len(sent), types) == body
    assert with_types(body, len(sent), b"") == body


@given(st.binary(max_size=60), st.integers(0, 9))
def test_no_bytes_break_the_reader(body, count):
    try:
        found = read_parameters(body, count)
    except WireError:
        return
    assert len(found) == count
    for each in found:
        value_of(each)
        literal_of(each, backslash_escapes=True)


def test_no_types_at_all_are_refused_and_long_data_takes_the_place_of_a_value():
    with pytest.raises(WireError):
        read_parameters(b"\0\0", 1)
    assert write_parameters([]) == b""
    assert read_parameters(b"", 0) == []
    assert with_types(b"", 0, b"") == b""
    sent = [
        Parameter(FieldType.LONG_BLOB, unsigned=False, data=b"long"),
        Parameter(FieldType.TINY, unsigned=False, data=b"\x05"),
    ]
    body = b"\0\x01" + bytes([FieldType.LONG_BLOB, 0, FieldType.TINY, 0]) + b"\x05"
    assert read_parameters(body, 2, long_data={0: bytearray(b"long")}) == sent


@in_turn
@pytest.mark.parametrize(
    ("parameter", "value", "literal"),
    [
        ((FieldType.NULL, False, None), None, b"NULL"),
        ((FieldType.TINY, False, b"\xff"), -1, b"-1"),
        ((FieldType.TINY, True, b"\xff"), 255, b"255"),
        ((FieldType.LONGLONG, True, b"\xff" * 8), 2**64 - 1, b"18446744073709551615"),
        ((FieldType.DOUBLE, False, struct.pack("<d", 42.0)), 42, b"42"),
        ((FieldType.DOUBLE, False, struct.pack("<d", 0.1)), Number("0.1e0"), b"0.1e0"),
        ((FieldType.DOUBLE, False, struct.pack("<d", 1e300)), Number("1e+300"), b"1e+300"),
        ((FieldType.FLOAT, False, struct.pack("<f", 1.5)), Number("1.5e0"), b"1.5e0"),
        ((FieldType.NEWDECIMAL, False, b"12"), 12, b"12"),
        ((FieldType.NEWDECIMAL, False, b"1.50"), Number("1.50"), b"1.50"),
        ((FieldType.NEWDECIMAL, False, b"1.5;--"), Number("1.5;--"), b"'1.5;--'"),
        ((FieldType.VAR_STRING, False, b"it's \\"), b"it's \\", b"'it''s \\\\'"),
        ((FieldType.BLOB, False, b"\x00'"), b"\x00'", b"_binary x'0027'"),
        ((FieldType.DATE, False, b"\xea\x07\x01\x02"), b"2026-01-02", b"DATE'2026-01-02'"),
        # A server refuses a literal that is not on the calendar.
        ((FieldType.DATE, False, b""), b"0000-00-00", b"'0000-00-00'"),
        ((FieldType.DATE, False, b"\xea\x07\x02\x1e"), b"2026-02-30", b"'2026-02-30'"),
        ((FieldType.DATETIME, False, b"\xea\x07\x01\x02"), b"2026-01-02 00:00:00", b"TIMESTAMP'2026-01-02 00:00:00'"),
        ((FieldType.TIMESTAMP, False, b"\xea\x07\x01\x02\x03\x04\x05\x06\0\0\0"), b"2026-01-02 03:04:05.000006", b"TIMESTAMP'2026-01-02 03:04:05.000006'"),
        ((FieldType.TIME, False, b""), b"00:00:00", b"TIME'00:00:00'"),
        ((FieldType.TIME, False, b"\x01\x01\0\0\0\x02\x03\x04"), b"-26:03:04", b"TIME'-26:03:04'"),
        ((FieldType.TIME, False, b"\0\x28\0\0\0\x02\x03\x04"), b"962:03:04", b"'962:03:04'"),
    ],
)  # fmt: skip
def test_what_a_parameter_is_worth(parameter, value, literal):
    assert value_of(Parameter(*parameter)) == value
    assert literal_of(Parameter(*parameter), backslash_escapes=True) == literal


@given(st.binary(), st.sampled_from([DEFAULT_MODE, SqlMode.NO_BACKSLASH_ESCAPES]))
def test_a_string_spelled_as_text_reads_as_the_same_string(data, mode):
    parameter = Parameter(FieldType.VAR_STRING, unsigned=False, data=data)
    spelled = literal_of(parameter, backslash_escapes=mode is not SqlMode.NO_BACKSLASH_ESCAPES)
    assert decode_literal(spelled, mode) == data
