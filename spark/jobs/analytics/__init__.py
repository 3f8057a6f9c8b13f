"""Measure a queue: throughput, delays, retries and waiting messages; as Parquet and as an HTML page.

`message_facts` derives facts about messages from rows and `measures` aggregates them, both pure. `page` renders `report.html`. This
module reads and writes: it only reads the table, and a run replaces the files of an earlier run in its folder.
"""

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.endpoint import Endpoint, clock_of, quoted, shards_of
from streamfrom.spark.jobs.analytics import measures, number_format
from streamfrom.spark.jobs.analytics.config import AnalyticsConfig
from streamfrom.spark.jobs.analytics.message_facts import acked_facts, waiting_facts
from streamfrom.spark.jobs.analytics.page import Results, page
from streamfrom.spark.jobs.files import spark_path
from streamfrom.spark.jobs.job import begun
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import acked_parts, read_rows
from streamfrom.spark.table_schema import fields_of, kept_type


if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["AnalyticsConfig", "run"]

CONFIG: Final = AnalyticsConfig

SHOWN: Final = (
    *("by_table", "by_window", "by_window_shard", "by_shard"),
    *("attempts", "waits", "poison"),
)
"""The results that the page shows in full."""
_TENANTS_SHOWN: Final = 25
# The maximum in the folder; the page shows the first of them.
_POISON_ROWS: Final = 1000


def run(
    spark: "SparkSession", config: AnalyticsConfig, progress: Progress | None = None
) -> Report:
    """Measure the table and return the numbers of counted messages.

    `acked` is `sent_once` + `retried` + `never_sent`, and `waiting` the sum of its states.

    Raises:
        RequestError: the table or a column does not exist, or the window is empty or ends in the future.
    """
    progress = begun(spark, progress)
    endpoint, table = config.endpoint, config.table
    name = config.name
    shards = shards_of(endpoint)
    columns = fields_of(endpoint, shards, table, kept_type)
    config = config.resolved(columns)
    chosen = config.needed(columns)
    now_ns = min(clock_of(endpoint, shard) for shard in shards)
    acks_ns = [ack for shard in shards if (ack := _oldest_ack(endpoint, shard, table))]
    low_ns, high_ns = config.span(now_ns, min(acks_ns, default=None))
    bucket_ns = (config.bucket_s or 0) * 10**9 or number_format.bucket_ns(low_ns, high_ns)

    progress.enter("read acknowledged")
    parts = acked_parts(shards, low_ns, high_ns)
    acked = acked_facts(
        read_rows(spark, endpoint, table, chosen, parts), config.tenant, config.created
    )
    acked = measures.with_window(acked, "acked_ns", bucket_ns).persist()
    acked.count()
    progress.enter("read waiting")
    not_acked = [(shard, "time_acked IS NULL") for shard in shards]
    rows = read_rows(spark, endpoint, table, chosen, not_acked).persist()
    rows.count()
    # Read the clocks after the rows, so that no row is newer than its clock.
    clocks_ns = {shard: clock_of(endpoint, shard) for shard in shards}
    waiting = waiting_facts(rows, config.tenant, config.created, clocks_ns)

    progress.enter("measure")
    folder = config.out.resolve() / endpoint.keyspace / table / "analytics"
    stored = {
        result: _stored(spark, frame, folder / result)
        for result, frame in _measured(acked, waiting, name, config).items()
    }
    # Messages acknowledged after the window are not read, so writes can only be counted if the window is open.
    arrivals = []
    if config.created and config.high_ns is None:
        inside = f"created_ns >= {low_ns} AND created_ns < {high_ns}"
        new = measures.written(acked.filter(inside), waiting.filter(inside), bucket_ns)
        arrivals = _rows(_stored(spark, new, folder / "written"))
    progress.enter("report")
    tenants = stored["by_tenant"] if config.tenant else stored["by_tenant"].limit(0)
    busiest = tenants.orderBy("acked", ascending=False).limit(_TENANTS_SHOWN)
    rows_of = {result: _rows(stored[result]) for result in SHOWN}
    rows_of |= {"tenants": _rows(busiest), "written": arrivals}
    rows_of["by_shard"].sort(key=itemgetter("shard"))
    (total,) = rows_of["by_table"]
    results = Results(
        table=name,
        low_ns=low_ns,
        high_ns=high_ns,
        bucket_ns=bucket_ns,
        made_ns=min(clocks_ns.values()),
        rows=rows_of,
        tenants_total=tenants.count(),
        poison_sends=config.poison_sends,
        created=config.created,
    )
    (folder / "report.html").write_text(page(results), encoding="utf-8")
    rows.unpersist()
    acked.unpersist()
    progress.leave()
    counts = {
        key: total[key] for key in ("acked", "sent_once", "retried", "never_sent", "skewed")
    }
    states = {row["state"].replace(" ", "_"): row["messages"] for row in results.states}
    counts |= {"waiting": sum(states.values())}
    counts |= {f"waiting_{state}": many for state, many in states.items()}
    counts |= {"poison": results.suspects}
    return Report("analytics", name, counts, progress.steps_s, (str(folder / "report.html"),))


def _measured(
    acked: "DataFrame", waiting: "DataFrame", name: str, config: AnalyticsConfig
) -> "dict[str, DataFrame]":
    frames = {
        result: measures.measure(acked, name, by) for result, by in measures.GROUPINGS.items()
    }
    return frames | {
        "attempts": measures.attempts(acked, name),
        "waits": measures.waits(waiting, name, config.poison_sends),
        "poison": measures.poison(waiting, name, config.poison_sends, _POISON_ROWS),
    }


def _stored(spark: "SparkSession", frame: "DataFrame", folder: "Path") -> "DataFrame":
    """Write a result and read it back, so that it is computed once."""
    frame.write.mode("overwrite").parquet(spark_path(folder))
    return spark.read.schema(frame.schema).parquet(spark_path(folder))


def _rows(frame: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def _oldest_ack(endpoint: Endpoint, shard: str, table: str) -> int | None:
    oldest = f"SELECT MIN(time_acked) FROM {quoted(table)} WHERE time_acked > 0"  # noqa: S608  quoted
    ((told,),) = endpoint.ask(oldest, shard=shard)
    return None if told is None else int(told)
