"""Rows of a message table as a DataFrame, read through the proxy.

A partition of acknowledged rows is one slice of the time window on one shard, so ids of any type
are divided evenly. A task streams its rows: memory holds one Arrow batch, not the slice. A retried task reads
the same rows, because rows acknowledged in a closed window no longer change. Waiting rows
are read in their current state, one shard at a time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streamfrom.spark.endpoint import Endpoint, clock_of, quoted
from streamfrom.spark.errors import RequestError
from streamfrom.spark.table_schema import Field, ddl_of, fetch_rows
from streamfrom.spark.worker_memory import keep_loaded


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Not _shard: pyarrow skips folders whose names begin with an underscore.
SHARD: Final = "streamfrom_shard"
# Slices of a window on each shard.
SLICES: Final = 4
# After this time, every acknowledging transaction should have committed.
CLOSED_NS: Final = 60 * 10**9


def slices(low_ns: int, high_ns: int, count: int) -> list[tuple[int, int]]:
    """Divide [low, high) into up to *count* adjacent slices."""
    width = -(-(high_ns - low_ns) // count)
    return [(start, min(start + width, high_ns)) for start in range(low_ns, high_ns, width)]


def read_rows(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Field]",
    parts: "Sequence[tuple[str, str]]",
) -> "DataFrame":
    """Return the rows of *parts*, each (shard, condition), with `streamfrom_shard` as the first column.

    A task reads one part; a condition is SQL without user input.
    """

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        keep_loaded()
        for batch in batches:
            for part in batch.to_pylist():
                shard = pa.scalar(part["shard"])
                for rows in fetch_rows(
                    endpoint, part["shard"], table, columns, part["condition"]
                ):
                    yield rows.add_column(0, SHARD, pa.repeat(shard, rows.num_rows))

    schema = f"{SHARD} string, {ddl_of(columns)}"
    work = spark.createDataFrame(list(parts), "shard string, condition string")
    return work.repartitionByRange(len(parts), "shard", "condition").mapInArrow(read, schema)


def acked_between(low_ns: int, high_ns: int) -> str:
    """Return the condition for rows that were acknowledged in [low, high)."""
    return f"time_acked >= {low_ns:d} AND time_acked < {high_ns:d}"


def acked_parts(shards: "Sequence[str]", low_ns: int, high_ns: int) -> list[tuple[str, str]]:
    """Return the parts (shard, condition) in which several tasks read the rows acknowledged in [low, high)."""
    conditions = [acked_between(*each) for each in slices(low_ns, high_ns, SLICES)]
    return [(shard, condition) for shard in shards for condition in conditions]


def count_rows(endpoint: Endpoint, shards: "Sequence[str]", table: str, condition: str) -> int:
    """Return how many rows on *shards* match *condition*, SQL without user input."""
    counted = f"SELECT COUNT(*) FROM {quoted(table)} WHERE {condition}"  # noqa: S608  quoted, numbers
    return sum(int(endpoint.ask(counted, shard=shard)[0][0]) for shard in shards)


def mapped(
    frame: "DataFrame",
    work: "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]",
    schema: str,
) -> "DataFrame":
    """Return `frame.mapInArrow(work, schema)` for columns of any name; PySpark itself misreads a dot or a backtick in a name."""
    names = list(frame.columns)

    def named(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return work(batch.rename_columns(names) for batch in batches)

    return frame.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(named, schema)


def check_closed(
    endpoint: "Endpoint", shards: "Sequence[str]", until_ns: int, option: str
) -> None:
    """Check that *until_ns*, the value of *option*, is at least a minute ago by this machine's clock and by those of the shards.

    Raises:
        RequestError: it is not; the text names the clock that is furthest behind, since it may be wrong.
    """
    clocks_ns = {"this machine": time.time_ns()}
    clocks_ns |= {f"shard {shard}": clock_of(endpoint, shard) for shard in shards}
    now_ns, last = min((now_ns, place) for place, now_ns in clocks_ns.items())
    if until_ns > now_ns - CLOSED_NS:
        told = datetime.fromtimestamp(now_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        raise RequestError(
            f"{option} must lie a minute back by every clock, and that of {last} says {told} UTC"
        )
