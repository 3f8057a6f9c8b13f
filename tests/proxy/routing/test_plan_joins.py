"""Statements over several tables; `t` and `msg` are sharded by their number, `ref` is everywhere."""

import pytest

from streamfrom.proxy.errors import BadVindexValue
from streamfrom.proxy.routing.plan_joins import JoinPlanner
from streamfrom.proxy.routing.planner import Planner
from streamfrom.proxy.routing.routes import Combine, Concatenate, Merge, OneShard, WriteParts
from streamfrom.proxy.routing.vschema_tables import VschemaTables
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects
from streamfrom.sqlparse_ext.statements import Kind
from tests.cases import cases
from tests.proxy.keyspaces import HIGH, HIGH_SHARD, LOW_SHARD, SHARDED
from tests.sqlparse_ext.facts import statement


BOTH = (LOW_SHARD, HIGH_SHARD)


def route(sql):
    found = statement(sql)
    return Planner(SHARDED, BOTH, lambda _: None).plan(found.shape).route(found)


def in_one_go(sql):
    """Return the route of a SELECT that is not taken apart (see `test_combined`)."""
    found = statement(sql)
    if found.shape.kind is not Kind.SELECT:
        return route(sql)
    return JoinPlanner(VschemaTables(SHARDED, BOTH), found.shape).plan().route(found)


@cases(sql=str)
def test_tables_that_one_value_ties_are_answered_by_its_shard(sql):
    assert route(sql.format(5)) == OneShard(LOW_SHARD)
    assert route(sql.format(HIGH)) == OneShard(HIGH_SHARD)


def test_a_pinned_table_takes_part_where_it_is():
    sql = "SELECT * FROM t, pin_high WHERE t.id = {}"
    assert route(sql.format(HIGH)) == OneShard(HIGH_SHARD)
    assert route("SELECT * FROM pin_high JOIN ref ON ref.a = pin_high.a") == OneShard(
        HIGH_SHARD
    )
    for other in (sql.format(5), "SELECT * FROM pin, pin_high"):
        with pytest.raises(Unsupported):
            route(other)


@cases(sql=str)
def test_a_join_whose_rows_are_each_on_one_shard_scatters(sql):
    assert route(sql) == Concatenate(BOTH)


@cases(sql=str)
def test_selects_whose_equal_rows_are_on_one_shard_follow_one_another(sql):
    assert route(sql) == Concatenate(BOTH)


def test_rows_that_stay_on_their_shard_are_inserted_everywhere_and_none_without_a_value():
    parts = tuple((shard, None) for shard in BOTH)
    assert route("INSERT INTO t (id, a) SELECT msg.id, msg.a FROM msg") == WriteParts(parts)
    with pytest.raises(BadVindexValue):
        route("INSERT INTO t (id) SELECT NULL FROM ref")


@cases(sql=str, sentence=str)
def test_what_needs_rows_of_other_shards_is_refused(sql, sentence):
    with pytest.raises(Exception, match=sentence):
        in_one_go(sql)


@cases(sql=str)
def test_a_limit_that_may_cut_differently_on_each_shard_is_refused(sql):
    with pytest.raises(Unsupported):
        route(sql)


@cases(sql=str)
def test_a_derived_table_whose_rows_are_each_on_one_shard_scatters(sql):
    assert route(sql) == Concatenate(BOTH)


@cases(sql=str)
def test_a_derived_table_with_a_row_of_several_shards_is_refused(sql):
    with pytest.raises(Unsupported):
        in_one_go(sql)


@cases(sql=str)
def test_a_derived_table_is_joined_by_the_vindex_column_that_it_groups_by(sql):
    assert in_one_go(sql) == Concatenate(BOTH)
    found = route(sql + " ORDER BY t.a LIMIT 3")
    assert isinstance(found, Merge)


@cases(inner=str)
def test_a_derived_table_in_which_other_rows_matter_ties_nothing(inner):
    for join in ("JOIN", "LEFT JOIN"):
        with pytest.raises(Unsupported):
            in_one_go(f"SELECT t.a FROM t {join} ({inner}) d ON d.id = t.id")
    with pytest.raises(Unsupported):
        in_one_go(f"SELECT t.a FROM t JOIN ({inner}) d ON d.id = t.id WHERE t.id = {HIGH}")


def test_rows_are_counted_where_they_are_or_as_they_come_if_they_are_merged():
    for inner in ("SELECT id, a FROM t ORDER BY a", "SELECT id, COUNT(*) FROM t GROUP BY id"):
        found = route(f"SELECT COUNT(*) FROM ({inner}) d")
        assert isinstance(found, Merge)
        assert found.in_groups
    for inner in (
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t LIMIT 3",
        "SELECT MAX(a) FROM t",
    ):
        found = route(f"SELECT COUNT(*) FROM ({inner}) d")
        assert isinstance(found, Combine)
        assert isinstance(found.parts, InnerSelects)
        assert found.parts.counts_rows
    found = route("SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM t) d")
    assert isinstance(found, Merge)
    assert found.in_groups
    sql = "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM t WHERE id = {}) d"
    assert route(sql.format(HIGH)) == OneShard(HIGH_SHARD)


def test_a_user_variable_is_assigned_where_one_shard_answers():
    assert route(f"SELECT @x := a FROM t WHERE id = {HIGH}") == OneShard(HIGH_SHARD)
    with pytest.raises(Unsupported, match="assigning a user variable"):
        route("SELECT @x := a FROM t")
