import ast
import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.routing.planner import Planner
from streamfrom.proxy.routing.routes import Concatenate, OneShard, WriteParts
from streamfrom.proxy.routing.vschema_tables import VschemaTables, not_in_vschema
from streamfrom.sqlparse_ext.errors import StreamfromError, Unsupported
from streamfrom.sqlparse_ext.literal_values import Number
from tests.cases import cases
from tests.proxy.keyspaces import SHARDED
from tests.sqlparse_ext.facts import statement


ALL = VschemaTables(SHARDED, SHARDED.shards)


@pytest.mark.parametrize("values", [None, [Number("1.5")], [b"5abc"]])
def test_values_that_no_vindex_knows_may_be_on_any_shard(values):
    assert ALL.rows("t").shares([values]) is None


def test_numbers_may_equal_strings_of_any_shard():
    assert ALL.rows("named").shares([[b"5", 5]]) is None
    assert ALL.rows("named").shares([[b"5"]]) is not None


@cases(table=str, sentence=str)
def test_a_table_without_a_vindex_column_says_so(table, sentence):
    with pytest.raises(Unsupported, match=sentence):
        ALL.column(table)


def test_an_unknown_table_is_told_with_the_line_that_would_make_it_known():
    by_name = ALL.get("named").primary
    told = not_in_vschema(SHARDED, "q", by_name)
    assert told.endswith(
        'add to its tables: "q": {"column_vindexes": [{"column": "name", "name": "md5"}]}'
    )
    told = not_in_vschema(replace(SHARDED, vschema=None), "q", by_name)
    assert told.endswith('and its vindexes: "md5": {"type": "md5"}')
    assert not_in_vschema(SHARDED, "q").endswith(
        ", with the column that places its rows in place of id"
    )


def vschema(columns):
    return {
        "sharded": True,
        "vindexes": {
            "region": {"type": "region_experimental", "params": {"region_bytes": "1"}},
            "both": {"type": "multicol", "params": {"column_count": "2", "column_bytes": "1"}},
        },
        "tables": {
            "t": {"column_vindexes": [{"columns": columns, "name": "region"}]},
            "b": {"column_vindexes": [{"columns": ["x", "y"], "name": "both"}]},
        },
    }


NAMES = ("-40", "40-80", "80-8080", "8080-")
KEYSPACE = Keyspace(
    "world",
    tuple(map(Shard.named, NAMES)),
    parse_vschema(json.dumps(vschema(["region", "id"])), "world"),
)


def route(sql):
    found = statement(sql)
    return Planner(KEYSPACE, KEYSPACE.shards, lambda _: None).plan(found.shape).route(found)


def shards(sql):
    match route(sql):
        case OneShard(shard):
            return [shard.name]
        case Concatenate(found):
            return [shard.name for shard in found]
        case WriteParts(parts):
            return [shard.name for shard, _ in parts]
        case other:
            raise AssertionError(other)


@cases(condition=str, names=ast.literal_eval)
@pytest.mark.parametrize("verb", ["SELECT * FROM t WHERE", "DELETE FROM t WHERE"])
def test_all_columns_name_a_shard_and_the_first_ones_a_range(verb, condition, names):
    assert shards(f"{verb} {condition}") == names


def test_too_many_combinations_go_everywhere():
    ids = ", ".join(map(str, range(1001)))
    assert shards(f"SELECT * FROM t WHERE region = 1 AND id IN ({ids})") == list(NAMES)


@cases(sql=str, error=str, reason=str)
def test_what_cannot_be_placed_is_refused(sql, error, reason):
    with pytest.raises(StreamfromError, match=reason) as refused:
        route(sql)
    assert refused.typename == error


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_row_is_among_those_that_its_first_column_finds(x, y):
    (owner,) = shards(f"INSERT INTO b (x, y) VALUES ({x}, {y})")
    assert shards(f"SELECT * FROM b WHERE x = {x} AND y = {y}") == [owner]
    assert owner in shards(f"SELECT * FROM b WHERE x = {x}")
