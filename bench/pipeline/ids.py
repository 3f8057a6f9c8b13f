"""Keyspace ids as a column of Spark: how many a second, made and thrown away."""

from typing import Any, Final

from bench.pipeline.session import drain
from bench.plan import Plan
from bench.report import Figure, figure, value_at_least
from streamfrom.spark.functions import keyspace_id


IDS: Final = (12_000_000, 2_000_000)
VINDEXES: Final = ("hash", "numeric", "xxhash", "binary_md5")


def ids(spark: Any, plan: Plan) -> list[Figure]:
    """Compute the ids of whole numbers by each vindex, on two threads."""
    return [_rate(spark, plan, vindex) for vindex in VINDEXES]


def _rate(spark: Any, plan: Plan, vindex: str) -> Figure:
    count = plan.size(*IDS)

    def run(count: int) -> float:
        numbers = spark.range(0, count, 1, 2)
        return count / drain(numbers.select(keyspace_id("id", vindex)))

    run(count // 10)
    rates = [run(count) for _ in range(plan.pairs)]
    plan.say(f"  keyspace ids, {vindex}: " + ", ".join(f"{rate:,.0f}/s" for rate in rates))
    return figure(f"keyspace ids, {vindex}", "rows/s", rates, target=value_at_least(3_000_000))
