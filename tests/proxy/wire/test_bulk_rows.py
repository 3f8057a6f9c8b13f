import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.binary_parameters import value_of
from streamfrom.proxy.wire.bulk_rows import TYPES_FOLLOW, bulk_rows, bulk_types
from tests.proxy.wire.peers import TEXT, UNSIGNED, bulk_body


rows_of_two = st.lists(
    st.tuples(
        st.integers(0, 1 << 62), st.binary(max_size=300) | st.sampled_from([None, "DEFAULT"])
    ),
    min_size=1,
    max_size=20,
).map(
    lambda rows: [(number, b"" if not at else text) for at, (number, text) in enumerate(rows)]
)


@given(rows_of_two)
def test_any_rows_survive_the_wire(rows):
    body = bulk_body(rows)
    types, at = bulk_types(TYPES_FOLLOW, body, 2, b"")
    assert (types, at) == (UNSIGNED + TEXT, 4)
    found = list(bulk_rows(body, at, types))
    assert b"".join(row.data for row in found) == body[at:]
    assert [
        tuple("DEFAULT" if each is None else value_of(each) for each in row.parameters)
        for row in found
    ] == rows


@given(rows_of_two, st.data())
def test_rows_cut_anywhere_but_between_two_are_refused(rows, data):
    body = bulk_body(rows)
    ends, end = {4}, 4
    for row in bulk_rows(body, 4, body[:4]):
        end += len(row.data)
        ends.add(end)
    at = data.draw(st.integers(5, len(body)))
    if at in ends:
        assert b"".join(row.data for row in bulk_rows(body[:at], 4, body[:4])) == body[4:at]
        return
    with pytest.raises(WireError):
        list(bulk_rows(body[:at], 4, body[:4]))


def test_a_column_may_be_left_to_the_server():
    body = bulk_body([(1,), (None,), ("DEFAULT",), ("IGNORE",)])
    rows = [row.parameters[0] for row in bulk_rows(body, 2, body[:2])]
    assert [each and value_of(each) for each in rows] == [1, None, None, None]
    assert [each is None for each in rows] == [False, False, True, True]


def test_types_are_those_of_the_execution_before_where_none_are_sent():
    body = bulk_body([(7,)])[2:]
    assert bulk_types(0, body, 1, UNSIGNED) == (UNSIGNED, 0)
    for flags, types in ((0, body), (TYPES_FOLLOW, b"\x08")):
        with pytest.raises(WireError):
            bulk_types(flags, types, 1, b"")
    # No rows, and an indicator that is unknown.
    for rows in (UNSIGNED, UNSIGNED + b"\x04" + bytes(8)):
        with pytest.raises(WireError):
            list(bulk_rows(rows, 2, UNSIGNED))
