"""Rows of a message table as a DataFrame, read through the proxy.

Of acknowledged rows one partition is one slice of the time window on one shard, so ids of any type
divide alike. A task streams its rows: memory holds one Arrow batch, not the slice. A retried task reads
the same rows, because rows acknowledged in a window that has closed no longer change. Rows that wait
are read as they are at the moment, a shard at a time.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pymysql

from spark.endpoint import Column, Endpoint, quoted


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS: Final = 5000
# Not _shard: pyarrow does not look into folders that begin so.
SHARD: Final = "streamfrom_shard"


def slices(low_ns: int, high_ns: int, count: int) -> list[tuple[int, int]]:
    """Cut [low, high) into at most *count* slices that touch and do not overlap."""
    width = -(-(high_ns - low_ns) // count)
    return [(start, min(start + width, high_ns)) for start in range(low_ns, high_ns, width)]


def _decoder(spark_type: str) -> "tuple[pa.DataType, Callable[[bytes], Any]]":
    if spark_type.startswith("decimal"):
        digits, fraction = spark_type[8:-1].split(",")
        return pa.decimal128(int(digits), int(fraction)), lambda raw: Decimal(raw.decode())
    kinds: dict[str, tuple[pa.DataType, Callable[[bytes], Any]]] = {
        "bigint": (pa.int64(), int),
        "double": (pa.float64(), float),
        "binary": (pa.binary(), bytes),
        "string": (pa.string(), bytes.decode),
    }
    return kinds[spark_type]


def arrow_batch(
    columns: "Sequence[Column]", shard: str, rows: "Sequence[Sequence[Any]]"
) -> pa.RecordBatch:
    """Return rows, as the server sent them, as one batch with the shard's name in front."""
    arrays = [pa.array([shard] * len(rows), pa.string())]
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        kind, decode = _decoder(column.spark_type)
        # Text comes decoded already where the column has a character set.
        raw = (value.encode() if isinstance(value, str) else value for value in values)
        arrays.append(pa.array([None if v is None else decode(v) for v in raw], kind))
    return pa.RecordBatch.from_arrays(arrays, names=[SHARD, *(c.name for c in columns)])


def read_rows(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Column]",
    parts: "Sequence[tuple[str, str]]",
) -> "DataFrame":
    """Return the rows of *parts*, each (shard, condition), with `streamfrom_shard` in front.

    A task reads one part; a condition is SQL that holds no value from outside.
    """
    names = ", ".join(quoted(column.name) for column in columns)
    statement = f"SELECT {names} FROM {quoted(table)} WHERE "  # noqa: S608  quoted

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for part in batch.to_pylist():
                connection = endpoint.connect(part["shard"], pymysql.cursors.SSCursor)
                try:
                    with connection.cursor() as cursor:
                        cursor.execute(statement + part["condition"])
                        while rows := cursor.fetchmany(BATCH_ROWS):
                            yield arrow_batch(columns, part["shard"], rows)
                finally:
                    connection.close()

    schema = ", ".join(
        [f"{SHARD} string", *(f"{quoted(c.name)} {c.spark_type}" for c in columns)]
    )
    work = spark.createDataFrame(list(parts), "shard string, condition string")
    return work.repartitionByRange(len(parts), "shard", "condition").mapInArrow(read, schema)


def read_acked(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Column]",
    parts: "Sequence[tuple[str, int, int]]",
) -> "DataFrame":
    """Return the rows acknowledged in *parts* (shard, low, high), with `streamfrom_shard` in front."""
    conditions = [
        (shard, f"time_acked >= {low:d} AND time_acked < {high:d}")
        for shard, low, high in parts
    ]
    return read_rows(spark, endpoint, table, columns, conditions)


def read_waiting(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    columns: "Sequence[Column]",
    shards: "Sequence[str]",
) -> "DataFrame":
    """Return the rows of *shards* that are not acknowledged, with `streamfrom_shard` in front."""
    parts = [(shard, "time_acked IS NULL") for shard in shards]
    return read_rows(spark, endpoint, table, columns, parts)
