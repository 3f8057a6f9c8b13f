import sys
from contextlib import suppress

import pytest

from streamfrom.proxy.routing.planner import Planner
from streamfrom.proxy.routing.routes import Combine, Concatenate, Merge, OneShard
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.keyspaces import HIGH, HIGH_SHARD, LOW_SHARD, SHARDED
from tests.sqlparse_ext.facts import statement


BOTH = (LOW_SHARD, HIGH_SHARD)


def route(sql):
    found = statement(sql)
    return Planner(SHARDED, SHARDED.shards, lambda _: None).plan(found.shape).route(found)


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
    assert isinstance(route("SELECT a FROM t UNION SELECT a FROM msg"), Merge)
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
