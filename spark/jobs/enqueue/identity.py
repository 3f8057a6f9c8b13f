"""Ids that a retry gives again, and when each message is due.

Nothing here depends on how Spark divides the rows, so the same input has the same ids and, from
the same start, the same times.
"""

import time
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window, functions as F

from streamfrom.spark.endpoint import quoted


# The rows are ranked in so many parts, each on one executor at a time.
_PARTS: Final = 64
_CONTENT: Final = "streamfrom_content"


def derived_id(columns: "Sequence[Column]", *, is_integer: bool) -> "Column":
    """Return an id made of the values of *columns*.

    An integer one is 63 bits of xxhash64: among ten million messages two are alike with a chance of
    one in 200,000, which the job finds and refuses. A text is the SHA-256 in hexadecimal digits.
    """
    texts = [column.cast("string") for column in columns]
    if is_integer:
        # NULLs leave a hash as it was, so which values are NULL is hashed as well.
        nulls = [text.isNull() for text in texts]
        return F.xxhash64(*texts, *nulls).bitwiseAND(F.lit(2**63 - 1))
    return F.sha2(F.to_json(F.array(*texts)), 256)


def with_content(frame: "DataFrame") -> "DataFrame":
    """Add a hash of all that a row holds but its id."""
    others = [F.col(quoted(name)) for name in frame.columns if name != "id"]
    nulls = [other.isNull() for other in others]
    return frame.withColumn(_CONTENT, F.xxhash64(*others, *nulls) if others else F.lit(0))


def clashes(frame: "DataFrame") -> "DataFrame":
    """Return the ids under which *frame* (see `with_content`) has rows that differ."""
    counted = frame.groupBy("id").agg(
        F.min(_CONTENT).alias("low"), F.max(_CONTENT).alias("high")
    )
    return counted.filter(F.col("low") != F.col("high")).select("id")


def one_each(frame: "DataFrame") -> "DataFrame":
    """Return *frame* (see `with_content`) with each id once, and without the hash."""
    return frame.dropDuplicates(["id"]).drop(_CONTENT)


def with_due(frame: "DataFrame", start_ns: int | None, rate_per_s: float | None) -> "DataFrame":
    """Set `time_next` so that messages become due from *start_ns* on (by default now), *rate_per_s* of them each second.

    They are evenly spaced, in an order that follows from a hash of their ids. Without a rate all are
    due at the start, without either when the table says.
    """
    if start_ns is None and rate_per_s is None:
        return frame
    start_ns = time.time_ns() if start_ns is None else start_ns
    if rate_per_s is None:
        return frame.withColumn("time_next", F.lit(start_ns).cast("bigint"))
    hashed = frame.withColumn("streamfrom_hash", F.xxhash64("id")).withColumn(
        "streamfrom_part", F.pmod(F.col("streamfrom_hash"), F.lit(_PARTS))
    )
    sizes: dict[int, int] = dict(hashed.groupBy("streamfrom_part").count().collect())
    before, firsts = 0, []
    for part in sorted(sizes):
        firsts += [F.lit(int(part)), F.lit(before)]
        before += sizes[part]
    if not firsts:
        return frame.withColumn("time_next", F.lit(start_ns).cast("bigint"))
    in_part = F.row_number().over(
        Window.partitionBy("streamfrom_part").orderBy("streamfrom_hash", "id")
    )
    rank = F.create_map(*firsts)[F.col("streamfrom_part").cast("int")] + in_part - 1
    due = F.lit(start_ns) + F.floor(rank * F.lit(1e9 / rate_per_s))
    return hashed.withColumn("time_next", due.cast("bigint")).drop(
        "streamfrom_hash", "streamfrom_part"
    )
