"""Aggregates over messages: counts and percentiles by window, shard and tenant: pure.

Durations are milliseconds, as doubles. Percentiles leave out unknown values and those that a skewed
clock made negative; `…_known` is the number of the remaining messages. Percentiles do not add up, so each
grouping computes its own from the messages.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.jobs.analytics.message_facts import BLOCKED_NS


PERCENTS: Final = (50, 90, 99)
# Of percentile_approx: the rank is off by at most one in this many.
_ACCURACY: Final = 10_000
GROUPINGS: Final = {
    "by_table": (),
    "by_window": ("window_ns",),
    "by_shard": ("shard",),
    "by_tenant": ("tenant",),
    "by_window_shard": ("window_ns", "shard"),
}
"""The results for acknowledged messages, and the columns besides the table by which each is grouped."""


def with_window(frame: "DataFrame", time: str, width_ns: int) -> "DataFrame":
    """Add `window_ns`: the start of the window of width *width_ns* that contains the column *time*."""
    start = F.col(time) - F.pmod(F.col(time), F.lit(width_ns))
    return frame.withColumn("window_ns", start)


def measure(acked: "DataFrame", table: str, by: "Sequence[str]" = ()) -> "DataFrame":
    """Return a row for each group of acknowledged messages, or a row of zeros if there are none.

    acked = sent_once + retried + never_sent; the last were acknowledged without a delivery.
    """
    sends = F.col("sends")
    counted = acked.groupBy(*by).agg(
        F.count("*").alias("acked"),
        F.count_if(sends == 1).alias("sent_once"),
        F.count_if(sends > 1).alias("retried"),
        F.count_if(sends < 1).alias("never_sent"),
        F.count_if("is_skewed").alias("skewed"),
        F.coalesce(F.sum("retries"), F.lit(0)).alias("retries"),
        F.max("retries").alias("retries_max"),
        *_spread("to_ack"),
    )
    return _of(table, counted)


def written(acked: "DataFrame", waiting: "DataFrame", width_ns: int) -> "DataFrame":
    """Return the number of messages written in each window, `window_ns`."""
    times = acked.select("created_ns").unionByName(waiting.select("created_ns"))
    windows = with_window(times, "created_ns", width_ns).groupBy("window_ns")
    return windows.agg(F.count("*").alias("written"))


def attempts(acked: "DataFrame", table: str) -> "DataFrame":
    """Return the number of messages acknowledged after each number of sends."""
    return _of(table, acked.groupBy("sends").agg(F.count("*").alias("acked")))


def waits(waiting: "DataFrame", table: str, poison_sends: int) -> "DataFrame":
    """Return a row for each shard and state: the number of waiting messages, and since or until when they wait.

    suspects: the number of messages that were sent at least *poison_sends* times.
    """
    is_later = (F.col("next_ns") > F.col("now_ns")) & (F.col("next_ns") < BLOCKED_NS)
    until = F.when(is_later, F.col("next_ns") - F.col("now_ns"))
    groups = waiting.withColumn("until_ns", until).groupBy("shard", "state")
    counted = groups.agg(
        F.count("*").alias("messages"),
        F.max("sends").alias("sends_max"),
        F.count_if(F.col("sends") >= poison_sends).alias("suspects"),
        *(part for name in ("overdue", "until", "age") for part in _spread(name)),
    )
    return _of(table, counted)


def poison(waiting: "DataFrame", table: str, sends_min: int, rows_max: int) -> "DataFrame":
    """Return up to *rows_max* messages sent at least *sends_min* times, the most often sent first."""
    suspects = waiting.filter(F.col("sends") >= sends_min)
    order = [F.desc("sends"), F.asc_nulls_last("created_ns"), F.asc("id")]
    columns = ("shard", "id", "tenant", "priority", "sends", "state", "next_ns", "created_ns")
    ages = _ms(F.col("overdue_ns")).alias("overdue_ms"), _ms(F.col("age_ns")).alias("age_ms")
    return _of(table, suspects.orderBy(*order).limit(rows_max).select(*columns, *ages))


def _of(table: str, counted: "DataFrame") -> "DataFrame":
    return counted.select(F.lit(table).alias("table"), "*")


def _ms(nanoseconds: "Column") -> "Column":
    return nanoseconds.cast("double") / 1e6


def _spread(name: str) -> "list[Column]":
    """Return the aggregates of `NAME_ns`, in milliseconds."""
    value = F.when(F.col(f"{name}_ns") >= 0, F.col(f"{name}_ns"))
    # Spark computes this once, since the aggregate is the same in each.
    found = F.percentile_approx(_ms(value), [percent / 100 for percent in PERCENTS], _ACCURACY)
    return [
        F.count(value).alias(f"{name}_known"),
        *(
            found[place].alias(f"{name}_p{percent}_ms")
            for place, percent in enumerate(PERCENTS)
        ),
        _ms(F.max(value)).alias(f"{name}_max_ms"),
    ]
