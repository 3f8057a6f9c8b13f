import ast
import sys
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.sharding.keyspace import Shard
from streamfrom.proxy.errors import BadVindexValue
from streamfrom.proxy.routing.planner import Planner
from streamfrom.proxy.routing.routes import (
    AnyShard,
    Combine,
    Concatenate,
    Merge,
    OneShard,
    WriteParts,
)
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from tests.cases import cases
from tests.proxy.keyspaces import HIGH, HIGH_SHARD, LOW_SHARD, PLAIN, QUARTERS, SHARDED
from tests.sqlparse_ext.facts import shape, statement


BOTH = (LOW_SHARD, HIGH_SHARD)


def columns_of(table):
    return ("id", "message") if table == "msg" else None


def planner(keyspace=SHARDED, shards=None):
    return Planner(keyspace, shards or keyspace.shards, columns_of)


def route(sql, **options):
    found = statement(sql)
    return planner(**options).plan(found.shape).route(found)


@cases(sql=str)
def test_everything_goes_to_the_only_shard(sql):
    assert route(sql, keyspace=PLAIN) == OneShard(PLAIN.shards[0])


@cases(sql=str, shard=Shard.named)
def test_values_of_the_vindex_column_name_the_shard(sql, shard):
    assert route(sql) == OneShard(shard)


@cases(sql=str)
def test_what_all_shards_answer_alike_goes_to_any(sql):
    assert route(sql) == AnyShard(LOW_SHARD)


@pytest.mark.parametrize("sql", ["SELECT NOW()", "SHOW VARIABLES"])
def test_what_needs_no_database_needs_no_shard_of_it(sql):
    assert route(sql, keyspace=PLAIN) == AnyShard(PLAIN.shards[0])


@cases(sql=str, shard=Shard.named)
def test_pinned_tables_are_answered_by_one_shard(sql, shard):
    assert route(sql) == OneShard(shard)


def test_a_pinned_table_is_out_of_reach_of_another_shards_target():
    first_half = QUARTERS.shards[:2]
    assert route("SELECT * FROM ref", keyspace=QUARTERS, shards=first_half) == AnyShard(
        first_half[0]
    )
    with pytest.raises(Unsupported, match="table 'pin_high' of shard '80-c0', which is not in"):
        route("SELECT * FROM pin_high", keyspace=QUARTERS, shards=first_half)


@cases(sql=str)
def test_what_names_no_shard_concatenates_the_rows_of_all(sql):
    assert route(sql) == Concatenate(BOTH)


@cases(sql=str)
def test_a_write_that_names_no_shard_runs_on_all_as_it_is(sql):
    assert route(sql) == WriteParts(tuple((shard, None) for shard in BOTH))


@cases(sql=str, in_groups=ast.literal_eval)
def test_rows_of_several_shards_are_merged_in_groups_only_where_a_group_may_span_them(
    sql, in_groups
):
    found = route(sql)
    assert isinstance(found, Merge)
    assert found.shards == BOTH
    assert found.in_groups is in_groups


@cases(sql=str, sentence=str)
def test_what_could_be_answered_wrongly_is_refused_by_name(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        route(sql)
    told = str(refused.value)
    assert told.startswith(f"unsupported: {sentence}")
    assert "; " in told or ": add " in told, "it says what to do instead"
    assert refused.value.wire_code() == (1235, "42000")


@cases(sql=str, rows=str)
def test_what_cannot_be_merged_is_made_of_the_rows(sql, rows):
    found = route(sql)
    assert isinstance(found, Combine)
    ((number, part, way),) = found.answered
    assert (number, part.sql.decode(), way) == (0, rows, Concatenate(SHARDED.shards))
    assert found.shards == SHARDED.shards


def test_a_merge_can_be_made_of_the_rows_instead_and_an_untied_join_of_none():
    found = route("SELECT t.a, COUNT(*) FROM t JOIN msg ON t.id = msg.id GROUP BY t.a")
    assert isinstance(found, Merge)
    assert found.otherwise is not None
    with pytest.raises(Unsupported, match="a join of tables that no vindex column ties"):
        route(f"SELECT STD(t.a) FROM t JOIN msg ON t.a = 1 WHERE t.id = 1 AND msg.id = {HIGH}")


def test_plans_are_dropped_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(Planner, "_PLANS_MAX", 3)
    one = planner()
    shapes = [shape(f"SELECT 1 AS a{number}") for number in range(10)]
    plans = [one.plan(each) for each in shapes]
    assert one.plan(shapes[-1]) is plans[-1], "the newest is kept"
    assert not any(
        one.plan(each) is plan for each, plan in zip(shapes[:-3], plans, strict=False)
    )


def test_what_begins_like_no_statement_is_a_syntax_error_and_not_unsupported():
    with pytest.raises(
        SqlError, match=r"You have an error in your SQL syntax.* near 'FROBNICATE'"
    ):
        route("FROBNICATE 1")


ids = st.integers(0, 2 * HIGH - 1)


@given(st.lists(ids, min_size=1, max_size=30))
def test_an_insert_over_shards_keeps_every_row_once_and_on_its_own_shard(numbers):
    rows = [f"('row {index}', {number})" for index, number in enumerate(numbers)]
    sql = f"INSERT /* kept */ INTO t (a, id) VALUES {', '.join(rows)} ON DUPLICATE KEY UPDATE a = 1"
    found = route(sql)
    if isinstance(found, OneShard):
        assert len({SHARDED.shard_of(n.to_bytes(8, "big")) for n in numbers}) == 1
        return
    assert isinstance(found, WriteParts)
    kept: list[str] = []
    for shard, text in found.parts:
        assert text is not None
        head, _, tail = text.decode().partition(" VALUES ")
        assert head == "INSERT /* kept */ INTO t (a, id)"
        body, _, _ = tail.partition(" ON DUPLICATE")
        assert text.endswith(b" ON DUPLICATE KEY UPDATE a = 1")
        mine = [row for row in rows if row in body]
        assert ",".join(mine) == body
        for row in mine:
            number = int(row.rstrip(")").rpartition(" ")[2])
            assert SHARDED.shard_of(number.to_bytes(8, "big")) is shard
        kept += mine
    assert sorted(kept) == sorted(rows)


@pytest.mark.parametrize(
    ("value", "code"), [("NULL", 1048), ("'five'", 1366), ("1.5", 1366), ("-1", 1366)]
)
def test_a_value_that_no_shard_owns_is_an_error_as_on_a_server(value, code):
    for sql in (f"INSERT INTO t (id) VALUES ({value})", f"INSERT INTO t SET id = {value}"):
        with pytest.raises(BadVindexValue) as refused:
            route(sql)
        assert refused.value.wire_code()[0] == code


@pytest.mark.parametrize(
    "rows", [f"({HIGH})", f"(1), ({HIGH})", f"(1), ({HIGH // 2}), ({HIGH})"]
)
def test_a_row_outside_of_a_narrowed_target_is_refused_and_not_dropped(rows):
    with pytest.raises(Unsupported, match="a row of shard '80-c0', which is not in the target"):
        route(
            f"INSERT INTO t (id) VALUES {rows}", keyspace=QUARTERS, shards=QUARTERS.shards[:2]
        )


@pytest.mark.parametrize("value", ["VALUES(id)", "id", "LAST_INSERT_ID(id)", "t.id"])
def test_an_upsert_may_assign_the_vindex_column_what_it_has(value):
    sql = f"INSERT INTO t (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = {value}, a = 3"
    assert isinstance(route(sql), OneShard)


@pytest.mark.parametrize("where", ["id = 1", "id = 1 AND a = 2", "id IN (1, 1)"])
def test_an_update_may_assign_the_vindex_column_the_value_that_it_asks_for(where):
    assert isinstance(route(f"UPDATE t SET id = 1, a = 3 WHERE {where}"), OneShard)


@pytest.mark.parametrize("where", ["id = 2", "id IN (1, 2)", "a = 1", "id = 1 OR a = 1"])
def test_an_update_that_may_move_a_row_is_refused(where):
    with pytest.raises(Unsupported, match="changing the vindex column 'id'"):
        route(f"UPDATE t SET id = 1, a = 3 WHERE {where}")


def answered(sql):
    found = route(sql)
    assert isinstance(found, Combine)
    assert found.shards == BOTH
    return {number: type(way) for number, _, way in found.answered}


@pytest.mark.parametrize(
    ("sql", "ways"),
    [
        ("SELECT COUNT(*) FROM t UNION ALL SELECT MAX(a) FROM msg", {0: Merge, 1: Merge}),
        ("(SELECT id FROM t LIMIT 2) UNION SELECT id FROM msg", {0: Merge, 1: Concatenate}),
        ("SELECT a FROM t UNION SELECT a FROM msg", {0: Concatenate, 1: Concatenate}),
        ("SELECT id FROM t UNION ALL SELECT 5 ORDER BY id LIMIT 3", {0: Concatenate}),
        ("SELECT a FROM t GROUP BY a EXCEPT SELECT a FROM ref", {0: Merge}),
        (f"SELECT COUNT(*) FROM t UNION ALL SELECT a FROM t WHERE id = {HIGH}", {0: Merge, 1: OneShard}),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT a FROM t WHERE id = 5", {0: Merge}),
        ("SELECT MAX(n) FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) d", {0: Merge}),
        ("WITH d AS (SELECT a FROM t GROUP BY a) SELECT * FROM d JOIN ref ON d.a = ref.id", {0: Merge}),
        ("SELECT COUNT(*) FROM ((SELECT id FROM t LIMIT 2) UNION ALL SELECT 5) d", {0: Combine}),
        ("SELECT * FROM (SELECT COUNT(*) FROM t UNION ALL SELECT 5) d WHERE 1", {0: Combine}),
    ],
)  # fmt: skip
def test_the_parts_have_routes_of_their_own(sql, ways):
    assert answered(sql) == ways


def test_what_can_be_answered_in_one_go_has_no_parts():
    assert isinstance(route("SELECT a FROM t UNION ALL SELECT a FROM msg"), Concatenate)
    sql = f"SELECT COUNT(*) FROM t WHERE id = {HIGH} UNION SELECT a FROM t WHERE id = {HIGH}"
    assert route(sql) == OneShard(HIGH_SHARD)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MAX(n) FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) d",
        "SELECT COUNT(*) FROM t UNION ALL SELECT @a",
    ],
)
def test_a_plan_keeps_nothing_of_a_statement_that_went_by_it(sql):
    found = statement(sql)
    plan = Planner(SHARDED, SHARDED.shards, lambda _: None).plan(found.shape)
    before = sys.getrefcount(found)
    for _ in range(3):
        with suppress(Unsupported):
            plan.route(found)
    assert sys.getrefcount(found) == before


@cases(sql=str, sentence=str)
def test_what_the_parts_do_not_tell_is_refused_as_before(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        route(sql)
    assert sentence in str(refused.value)
