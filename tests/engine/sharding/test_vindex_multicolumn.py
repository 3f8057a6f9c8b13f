import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.errors import VindexError
from streamfrom.engine.sharding.vindex import (
    Vindex,
    end_of_range,
    make_any_vindex,
    make_vindex,
)
from tests.cases import cases


THREE = make_any_vindex("multicol", {"column_count": "3"})
HASH_1 = "166b40b44aba4bd6"


def prefix(vindex, *values):
    found = vindex.prefix(values)
    return None if found is None else found.hex()


@cases(values=ast.literal_eval, keyspace_id=str)
def test_three_hashed_columns_are_those_of_vitess(values, keyspace_id):
    assert prefix(THREE, *values) == keyspace_id


@pytest.mark.parametrize(
    ("start", "end"),
    [("166b40", "166b41"), ("166b40166b40", "166b40166b41"), ("16ff", "1700"), ("ffff", "")],
)
def test_the_ids_that_begin_alike_are_a_range(start, end):
    assert end_of_range(bytes.fromhex(start)).hex() == end


@pytest.mark.parametrize(
    ("params", "values", "keyspace_id"),
    [
        ({"column_count": "1"}, (1,), HASH_1),
        ({"column_count": "2"}, (1, 1), "166b40b4166b40b4"),
        ({"column_count": "2", "column_bytes": "1"}, (1, 1), "16166b40b44aba4b"),
        ({"column_count": "3", "column_bytes": "1,,4"}, (1, 1, 1), "16166b40166b40b4"),
        ({"column_count": "2", "column_vindex": "binary,hash"}, (b"a", 1), "61000000166b40b4"),
        ({"column_count": "2", "column_vindex": ",binary"}, (1, b"a"), "166b40b461"),
    ],
)
def test_bytes_and_vindexes_may_be_given_for_each_column(params, values, keyspace_id):
    assert prefix(make_any_vindex("multicol", params), *values) == keyspace_id


@cases(size=str, region=ast.literal_eval, begins=str)
def test_a_region_stands_before_the_hash_of_the_id(size, region, begins):
    vindex = make_any_vindex("region_experimental", {"region_bytes": size})
    assert prefix(vindex, region, 1) == begins + HASH_1
    assert prefix(vindex, region) == begins


@pytest.mark.parametrize("values", [(None,), (-1,), (b"x",), (1, b"x")])
def test_what_is_no_number_has_no_region(values):
    assert (
        prefix(make_any_vindex("region_experimental", {"region_bytes": "1"}), *values) is None
    )


@cases(vindex_type=str, params=ast.literal_eval, reason=str)
def test_parameters_that_cannot_be_used_are_named(vindex_type, params, reason):
    with pytest.raises(VindexError, match=reason):
        make_any_vindex(vindex_type, params)


def test_a_vindex_of_one_column_is_none_of_several():
    assert make_any_vindex("numeric", {}) == make_vindex("numeric")
    assert not isinstance(THREE, Vindex)


@given(st.lists(st.integers(0, 2**32), min_size=3, max_size=3), st.integers(1, 2))
def test_the_first_columns_bound_the_ids_of_all_columns(values, count):
    whole, begins = THREE.prefix(values), THREE.prefix(values[:count])  # type: ignore[union-attr]
    assert whole is not None
    assert begins is not None
    end = end_of_range(begins)
    assert begins <= whole
    assert not end or whole < end
