"""Read a whole table by Spark's JDBC source, through the proxy and direct, and by the source `streamfrom`."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from bench.pipeline.shards import SHARDS, TABLE, Shards
from bench.report import Figure, figure, ratio_at_least
from streamfrom.spark.jdbc import options
from streamfrom.spark.jobs.consume.function import run_through


ROWS: Final = (1_000_000, 200_000)


def reads(spark: Any, shards: Shards) -> list[Figure]:
    """Compare three ways to read all rows, with one partition per shard."""
    plan = shards.plan
    rows = plan.size(*ROWS)

    ways: dict[str, Callable[[], Any]] = {
        "JDBC": lambda: _by_jdbc(spark, [options(shards.endpoint, name) for name in SHARDS]),
        "JDBC, direct": lambda: _by_jdbc(spark, map(options, shards.direct)),
        "source": spark.read.format("streamfrom").options(**shards.source).load,
    }

    def rate(name: str) -> float:
        before_s = shards.proxy.usage().cpu_s
        # Each queries the columns at a different moment, before or after the read begins, so time all of it.
        start_s = time.perf_counter()
        run_through(ways[name]())
        value = rows / (time.perf_counter() - start_s)
        used_s = shards.proxy.usage().cpu_s - before_s
        plan.say(f"  {name}: {value:,.0f} rows/s, the proxy's processor time {used_s:.2f} s")
        return value

    jdbc, direct, source = (partial(rate, name) for name in ways)
    with shards.table(rows):
        # The first seconds go into the JVM's compilation, so leave them out.
        for warm_up in (jdbc, direct, source, source, jdbc, direct):
            warm_up()
        proxied, straight = plan.interleaved(jdbc, direct)
        sourced, by_jdbc = plan.interleaved(source, jdbc)
    own, others = "source's batch read, 2 partitions", "JDBC through the proxy"
    goals = ratio_at_least(0.7), ratio_at_least(1)
    return [
        figure(
            "JDBC read, 2 partitions", "rows/s", proxied, "JDBC, direct", straight, goals[0]
        ),
        figure(own, "rows/s", sourced, others, by_jdbc, goals[1]),
    ]


def _by_jdbc(spark: Any, places: Iterable[dict[str, str]]) -> Any:
    first, second = (
        spark.read.format("jdbc").options(**place, dbtable=TABLE).load() for place in places
    )
    return first.unionByName(second)
