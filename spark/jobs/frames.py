"""A function over the rows of a frame, whatever its columns are called."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


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
