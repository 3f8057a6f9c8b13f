"""Rows of a message table as a DataFrame, read through the proxy.

Of acknowledged rows one partition is one slice of the time window on one shard, so ids of any type
divide alike. A task streams its rows: memory holds one Arrow batch, not the slice. A retried task reads
the same rows, because rows acknowledged in a window that has closed no longer change. Rows that wait
are read as they are at the moment, a shard at a time.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streamfrom.spark.endpoint import IN_UTC, Endpoint, clock_of, quoted
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.checksum import Checksum, of_batch, of_server, total
from streamfrom.spark.table_schema import Field, ddl_of, fetch_rows
from streamfrom.spark.worker_memory import keep_loaded


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Not _shard: pyarrow does not look into folders that begin so.
SHARD: Final = "streamfrom_shard"
# Of a window, on each shard.
SLICES: Final = 4
# By then a transaction that acknowledges has been committed.
CLOSED_NS: Final = 60 * 10**9
CHECKSUMS: Final = "shard string, condition string, rows bigint, bits string"


def slices(low_ns: int, high_ns: int, count: int) -> list[tuple[int, int]]:
    """Cut [low, high) into at most *count* slices that touch and do not overlap."""
    width = -(-(high_ns - low_ns) // count)
    return [(start, min(start + width, high_ns)) for start in range(low_ns, high_ns, width)]


def read_rows(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Field]",
    parts: "Sequence[tuple[str, str]]",
) -> "DataFrame":
    """Return the rows of *parts*, each (shard, condition), with `streamfrom_shard` in front.

    A task reads one part; a condition is SQL that holds no value from outside.
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
    return _work(spark, parts).mapInArrow(read, schema)


def checksums_of_servers(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Field]",
    parts: "Sequence[tuple[str, str]]",
) -> dict[tuple[str, str], Checksum]:
    """Return the checksum of the rows of each of *parts*, (shard, condition), computed by the servers."""

    def compute(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for part in batch.to_pylist():
                with endpoint.connect(part["shard"], IN_UTC) as connection:
                    found = of_server(connection, table, columns, part["condition"])
                yield as_batch(found, part["shard"], part["condition"])

    return checksums(_work(spark, parts).mapInArrow(compute, CHECKSUMS))


def checksum_of_frame(frame: "DataFrame", columns: "Sequence[Field]") -> Checksum:
    """Return the checksum of the rows of *frame*, which has *columns*."""

    def compute(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            yield as_batch(of_batch(batch, columns))

    return total(checksums(mapped(frame, compute, CHECKSUMS)).values())


def as_batch(found: Checksum, shard: str = "", condition: str = "") -> pa.RecordBatch:
    """Return a checksum as a row that `checksums` reads."""
    # As text: Spark has no integer of 64 bits without a sign.
    row = {"shard": shard, "condition": condition, "rows": found.rows, "bits": str(found.bits)}
    return pa.RecordBatch.from_pylist([row])


def checksums(frame: "DataFrame") -> dict[tuple[str, str], Checksum]:
    """Return the checksum of each (shard, condition) of *frame*, which has `CHECKSUMS`; that of no rows for all others."""
    found: defaultdict[tuple[str, str], Checksum] = defaultdict(Checksum)
    for row in frame.collect():
        found[row["shard"], row["condition"]] += Checksum(row["rows"], int(row["bits"]))
    return found


def _work(spark: "SparkSession", parts: "Sequence[tuple[str, str]]") -> "DataFrame":
    """Return *parts*, a task each."""
    work = spark.createDataFrame(list(parts), "shard string, condition string")
    return work.repartitionByRange(len(parts), "shard", "condition")


def acked_between(low_ns: int, high_ns: int) -> str:
    """Return the condition for rows that were acknowledged in [low, high)."""
    return f"time_acked >= {low_ns:d} AND time_acked < {high_ns:d}"


def acked_parts(shards: "Sequence[str]", low_ns: int, high_ns: int) -> list[tuple[str, str]]:
    """Return the parts (shard, condition) by which several tasks read what was acknowledged in [low, high)."""
    conditions = [acked_between(*each) for each in slices(low_ns, high_ns, SLICES)]
    return [(shard, condition) for shard in shards for condition in conditions]


def count_rows(endpoint: Endpoint, shards: "Sequence[str]", table: str, condition: str) -> int:
    """Return how many rows on *shards* fulfil *condition*, SQL that holds no value from outside."""
    counted = f"SELECT COUNT(*) FROM {quoted(table)} WHERE {condition}"  # noqa: S608  quoted, numbers
    return sum(int(endpoint.ask(counted, shard=shard)[0][0]) for shard in shards)


def mapped(
    frame: "DataFrame",
    work: "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]",
    schema: str,
) -> "DataFrame":
    """Return `frame.mapInArrow(work, schema)` for columns of any name; PySpark takes a dot or a backtick in one for its own."""
    names = list(frame.columns)

    def named(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return work(batch.rename_columns(names) for batch in batches)

    return frame.toDF(*(f"c{place}" for place in range(len(names)))).mapInArrow(named, schema)


def check_closed(
    endpoint: "Endpoint", shards: "Sequence[str]", until_ns: int, option: str
) -> None:
    """Make sure that *until_ns*, the value of *option*, lies a minute back by this machine's clock and by those of the shards.

    Raises:
        RequestError: it does not; the clock that is furthest behind is named, since it may be wrong.
    """
    clocks_ns = {"this machine": time.time_ns()}
    clocks_ns |= {f"shard {shard}": clock_of(endpoint, shard) for shard in shards}
    now_ns, last = min((now_ns, place) for place, now_ns in clocks_ns.items())
    if until_ns > now_ns - CLOSED_NS:
        told = datetime.fromtimestamp(now_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        raise RequestError(
            f"{option} must lie a minute back by every clock, and that of {last} says {told} UTC"
        )
