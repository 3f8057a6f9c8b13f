"""What many messages have in common: counts and percentiles by window, shard, tenant: pure.

Durations are milliseconds, as doubles. Percentiles leave out what is not known and what a skewed
clock made negative; `…_known` says how many messages they are of. Percentiles do not add up, so each
grouping computes its own from the messages.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.jobs.analytics.message_facts import BLOCKED_NS


PERCENTS: Final = (50, 90, 99)
# Of percentile_approx: the rank is off by at most one in so many.
_ACCURACY: Final = 10_000
GROUPINGS: Final = {
    "by_table": (),
    "by_window": ("window_ns",),
    "by_shard": ("shard",),
    "by_tenant": ("tenant",),
    "by_window_shard": ("window_ns", "shard"),
    "by_window_shard_tenant": ("window_ns", "shard", "tenant"),
}
"""Each result of acknowledged messages, and what a row of it is about in addition to the table."""


def with_window(frame: "DataFrame", time: str, width_ns: int) -> "DataFrame":
    """Add `window_ns`: the start of the window of *width_ns* that the column *time* is in."""
    start = F.col(time) - F.pmod(F.col(time), F.lit(width_ns))
    return frame.withColumn("window_ns", start)


def measure(acked: "DataFrame", table: str, by: "Sequence[str]" = ()) -> "DataFrame":
    """Return a row for each group of acknowledged messages, and a row of zeros if there are none.

    acked = sent_once + retried + never_sent; the last were acknowledged without a delivery.
    """
    sends = F.col("sends")
    counted = acked.groupBy(*by).agg(
        F.count("*").alias("acked"),
        F.count_if(sends == 1).alias("sent_once"),
        F.count_if(sends > 1).alias("retried"),
        F.count_if(sends < 1).alias("never_sent"),
        F.coalesce(F.sum("retries"), F.lit(0)).alias("retries"),
        F.count_if("is_skewed").alias("skewed"),
        F.percentile_approx("retries", _percents(), _ACCURACY).alias("retries_p"),
        F.max("retries").alias("retries_max"),
        *_spread("to_ack"),
        *_spread("lag"),
    )
    retries = [
        F.col("retries_p")[place].alias(f"retries_p{percent}")
        for place, percent in enumerate(PERCENTS)
    ]
    return counted.select(
        F.lit(table).alias("table"),
        *by,
        *("acked", "sent_once", "retried", "never_sent", "skewed", "retries"),
        *retries,
        "retries_max",
        *_flat("to_ack"),
        *_flat("lag"),
    )


def written(acked: "DataFrame", waiting: "DataFrame", width_ns: int) -> "DataFrame":
    """Return how many messages were written in each window, `window_ns`."""
    times = acked.select("created_ns").unionByName(waiting.select("created_ns"))
    windows = with_window(times, "created_ns", width_ns).groupBy("window_ns")
    return windows.agg(F.count("*").alias("written"))


def attempts(acked: "DataFrame", table: str) -> "DataFrame":
    """Return how many messages were acknowledged after each number of sends."""
    counted = acked.groupBy("sends").agg(F.count("*").alias("acked"))
    return counted.select(F.lit(table).alias("table"), "sends", "acked")


def waits(waiting: "DataFrame", table: str, poison_sends: int) -> "DataFrame":
    """Return a row for each shard and state: how many messages wait, and since or until when.

    suspects: the number of messages that were sent *poison_sends* times or more.
    """
    is_later = (F.col("next_ns") > F.col("now_ns")) & (F.col("next_ns") < BLOCKED_NS)
    until = F.when(is_later, F.col("next_ns") - F.col("now_ns"))
    counted = (
        waiting.withColumn("until_ns", until)
        .groupBy("shard", "state")
        .agg(
            F.count("*").alias("messages"),
            F.count_if("is_skewed").alias("skewed"),
            F.max("sends").alias("sends_max"),
            F.count_if(F.col("sends") >= poison_sends).alias("suspects"),
            *(part for name in ("overdue", "until", "age") for part in _spread(name)),
        )
    )
    return counted.select(
        F.lit(table).alias("table"),
        *("shard", "state", "messages", "skewed", "sends_max", "suspects"),
        *(part for name in ("overdue", "until", "age") for part in _flat(name)),
    )


def poison(waiting: "DataFrame", table: str, sends_min: int, rows_max: int) -> "DataFrame":
    """Return at most *rows_max* messages sent *sends_min* times or more, the most often sent first."""
    suspects = waiting.filter(F.col("sends") >= sends_min)
    order = [F.desc("sends"), F.asc_nulls_last("created_ns"), F.asc("id")]
    return _listed(suspects.orderBy(*order).limit(rows_max), table)


def oldest(waiting: "DataFrame", table: str, rows_max: int) -> "DataFrame":
    """Return the at most *rows_max* messages that have been ready for longest."""
    known = waiting.filter(F.col("overdue_ns") >= 0)
    order = [F.desc("overdue_ns"), F.asc("id")]
    return _listed(known.orderBy(*order).limit(rows_max), table)


def _listed(waiting: "DataFrame", table: str) -> "DataFrame":
    return waiting.select(
        F.lit(table).alias("table"),
        *("shard", "id", "tenant", "priority", "sends", "state"),
        *("next_ns", "created_ns"),
        _ms("overdue_ns").alias("overdue_ms"),
        _ms("age_ns").alias("age_ms"),
    )


def _percents() -> "Column":
    return F.array(*(F.lit(percent / 100) for percent in PERCENTS))


def _ms(name: str) -> "Column":
    return F.col(name).cast("double") / 1e6


def _spread(name: str) -> "list[Column]":
    """Return the aggregates of `NAME_ns` that `_flat` takes apart."""
    value = F.when(F.col(f"{name}_ns") >= 0, F.col(f"{name}_ns"))
    return [
        F.count(value).alias(f"{name}_known"),
        F.percentile_approx(value, _percents(), _ACCURACY).alias(f"{name}_p"),
        F.max(value).alias(f"{name}_max_ns"),
    ]


def _flat(name: str) -> "list[Column]":
    percentiles = [
        (F.col(f"{name}_p")[place].cast("double") / 1e6).alias(f"{name}_p{percent}_ms")
        for place, percent in enumerate(PERCENTS)
    ]
    longest = _ms(f"{name}_max_ns").alias(f"{name}_max_ms")
    return [F.col(f"{name}_known"), *percentiles, longest]
