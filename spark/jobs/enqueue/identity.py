"""Ids that are the same in a retry, and the time at which each message is due.

Nothing here depends on how Spark divides the rows, so the same input has the same ids and, from
the same start, the same times.
"""

import time
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.jobs.checksum import row_hash


def derived_id(columns: "Sequence[Column]", *, is_integer: bool) -> "Column":
    """Return an id derived from the values of *columns*.

    An integer id is 63 bits of xxhash64: ten million messages contain a collision with a probability of
    1 in 200,000, which the job detects and refuses. A text is the SHA-256 in hexadecimal digits.
    """
    texts = [column.cast("string") for column in columns]
    if is_integer:
        return row_hash(texts).bitwiseAND(F.lit(2**63 - 1))
    return F.sha2(F.to_json(F.array(*texts)), 256)


def clashes(frame: "DataFrame") -> "DataFrame":
    """Return the ids that distinct rows of *frame* have in common."""
    return frame.groupBy("id").count().filter("count > 1").select("id")


def with_due(frame: "DataFrame", start_ns: int | None, rate_per_s: float | None) -> "DataFrame":
    """Set `time_next` so that messages become due from *start_ns* on (by default now), about *rate_per_s* of them each second.

    Each gets a pseudo-random time from a hash of its id, the same in every run. Without a rate all are
    due at the start; without either, the table's default applies.
    """
    if start_ns is None and rate_per_s is None:
        return frame
    due = F.lit(time.time_ns() if start_ns is None else start_ns)
    if rate_per_s is not None:
        length_ns = frame.count() * 1e9 / rate_per_s
        # 53 bits of the hash, which fit a double.
        due += F.floor(F.shiftrightunsigned(F.xxhash64("id"), 11) * F.lit(length_ns / 2**53))
    return frame.withColumn("time_next", due.cast("bigint"))
