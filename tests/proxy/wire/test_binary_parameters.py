import ast

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
from streamfrom.sqlparse_ext.literal_values import decode_literal
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from tests.cases import cases
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


@cases(
    kind=FieldType.__getitem__,
    data=ast.literal_eval,
    value=str,
    literal=str.encode,
    unsigned=bool,
)
def test_what_a_parameter_is_worth(kind, data, value, literal, unsigned):
    parameter = Parameter(kind, bool(unsigned), data)
    assert repr(value_of(parameter)) == value
    assert literal_of(parameter, backslash_escapes=True) == literal


@given(st.binary(), st.sampled_from([DEFAULT_MODE, SqlMode.NO_BACKSLASH_ESCAPES]))
def test_a_string_spelled_as_text_reads_as_the_same_string(data, mode):
    parameter = Parameter(FieldType.VAR_STRING, unsigned=False, data=data)
    spelled = literal_of(parameter, backslash_escapes=mode is not SqlMode.NO_BACKSLASH_ESCAPES)
    assert decode_literal(spelled, mode) == data
