from streamfrom.proxy.routing.routes import OneShard, Plan
from tests.proxy.keyspaces import HIGH_SHARD, LOW_SHARD
from tests.sqlparse_ext.facts import statement


def test_a_plan_has_its_route_ready_or_asks_each_statement_for_its_values():
    plan = Plan(OneShard(LOW_SHARD))
    assert plan.always == plan.route(statement("SELECT 1")) == OneShard(LOW_SHARD)
    plan = Plan(find=lambda found: OneShard(HIGH_SHARD if found.literals else LOW_SHARD))
    assert plan.always is None
    assert plan.route(statement("SELECT 1")) == OneShard(HIGH_SHARD)
    assert plan.route(statement("SELECT a FROM t")) == OneShard(LOW_SHARD)
