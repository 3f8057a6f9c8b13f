import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.attribute_encoding import (
    COUNT_FOLLOWS,
    Attribute,
    from_execute,
    from_query,
    into_execute,
    into_query,
)
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.commands import init_db, query, stmt_execute
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, FieldType
from tests.proxy.wire.peers import write_parameters
from tests.proxy.wire.test_binary_parameters import parameters


# NULL by its type has no value, and so no type of its own afterwards.
attributes = st.lists(st.builds(Attribute, st.binary(max_size=300), parameters), max_size=20)
HEAD = b"\x17\x05\0\0\0%c\x01\0\0\0"


def text(value: bytes | None) -> Parameter:
    return Parameter(FieldType.STRING, unsigned=False, data=value)


def execution(body: bytes, flags: int = COUNT_FOLLOWS) -> bytes:
    return HEAD % flags + body


# As the mysql client of 9.7 sends `query_attributes n1 v1`, then SELECT 1; seen on the wire.
SEEN = b"\x03\x01\x01\x00\x01\xfe\x00\x02n1\x02v1SELECT 1"


def test_what_the_mysql_client_sends_is_read_and_written_and_no_other_command_changes():
    plain, found = from_query(SEEN)
    assert (plain, found) == (b"\x03SELECT 1", (Attribute(b"n1", text(b"v1")),))
    assert into_query(query(b"SELECT 1"), found)[4:] == SEEN
    for packet in (init_db(b"plain"), stmt_execute(1, 0, b"")):
        assert into_query(packet, found) == packet


def test_a_statement_of_several_frames_is_framed_anew():
    sql = b"x" * (FRAME_BYTES_MAX + 5)
    framed = into_query(query(sql), ())
    assert framed[:4] == b"\xff\xff\xff\0"
    assert framed[4:7] == b"\x03\0\1"
    assert len(framed) == len(query(sql)) + 2
    # What was one full frame and an empty one behind it is longer than a frame now.
    assert into_query(query(b"x" * (FRAME_BYTES_MAX - 2)), ())[-5:] == b"\x01\0\0\x01x"


@given(attributes, st.binary())
def test_any_attributes_of_a_text_survive_the_wire(sent, sql):
    framed = into_query(query(sql), sent)
    assert from_query(framed[4:]) == (b"\x03" + sql, tuple(sent))


@given(st.lists(parameters, max_size=20), attributes)
def test_any_attributes_of_an_execution_survive_the_wire(values, sent):
    body = write_parameters(values)
    packed = into_execute(body, len(values), sent)
    assert from_execute(execution(packed), len(values)) == (execution(body, 0), tuple(sent))


@given(st.lists(parameters, min_size=1, max_size=5), attributes, st.data())
def test_what_is_cut_anywhere_is_refused(values, sent, data):
    packed = into_execute(write_parameters(values), len(values), sent)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    with pytest.raises(WireError):
        from_execute(execution(cut), len(values))


def test_an_execution_may_lack_values_and_types_but_not_the_types_of_attributes():
    described = b"\x02\0\1\xfc\0\0\xfe\0\x01n"
    plain, found = from_execute(execution(described + b"\x01v"), 1, {0: b""})
    assert plain == execution(b"\0\1\xfc\0", 0)
    assert found == (Attribute(b"n", text(b"v")),)
    assert from_execute(execution(b"\x01\0\0\x01x"), 1) == (execution(b"\0\0\x01x", 0), ())
    with pytest.raises(WireError, match="without types"):
        from_execute(execution(b"\x02\0\0\x01x\x01v"), 1)
    assert from_execute(execution(b"", 0), 0) == (execution(b"", 0), ())
    assert from_execute(execution(b"\0"), 0) == (execution(b"", 0), ())
    cursor = 1
    assert from_execute(execution(b"\0", COUNT_FOLLOWS | cursor), 0)[0] == execution(
        b"", cursor
    )


@pytest.mark.parametrize(
    "payload",
    [
        b"\x03",
        b"\x03\0SELECT 1",
        b"\x03\0\2SELECT 1",
        b"\x03\1\1\0\0SELECT 1",
        b"\x03\5\1\0",
        b"\x03\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1",
        SEEN[:12],
    ],
)
def test_what_a_server_calls_malformed_is_refused(payload):
    with pytest.raises(WireError):
        from_query(payload)


@pytest.mark.parametrize("body", [b"", b"\0", b"\1", b"\1\0\1\xfe\0\0\1xy"])
def test_an_execution_has_a_value_for_each_parameter_and_no_more(body):
    with pytest.raises(WireError):
        from_execute(execution(body), 1)
