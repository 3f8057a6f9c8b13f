from streamfrom.proxy.routing.routes import Concatenate, OneShard, Plan
from tests.proxy.keyspaces import HIGH_SHARD, LOW_SHARD
from tests.sqlparse_ext.facts import statement


def test_a_plan_that_hangs_on_no_value_has_its_route_ready():
    plan = Plan(OneShard(LOW_SHARD))
    assert plan.always == plan.route(statement("SELECT 1")) == OneShard(LOW_SHARD)


def test_any_other_plan_asks_each_statement_for_its_values():
    plan = Plan(find=lambda found: OneShard(HIGH_SHARD if found.literals else LOW_SHARD))
    assert plan.always is None
    assert plan.route(statement("SELECT 1")) == OneShard(HIGH_SHARD)
    assert plan.route(statement("SELECT a FROM t")) == OneShard(LOW_SHARD)


def test_routes_are_compared_by_what_they_say():
    assert Concatenate((LOW_SHARD,)) == Concatenate((LOW_SHARD,))
    assert Concatenate((LOW_SHARD,)) != Concatenate((HIGH_SHARD,))
