"""Rows of a DataFrame into a message table, as often as one likes.

A row whose id is in the table stays as it is there (`spark.jobs.writing`), so a task, a batch or a whole job that runs again
adds nothing twice, as long as its ids are the same: they are to be made of the data, never drawn.
Rows that were written stay when a job fails.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from streamfrom.spark.endpoint import Endpoint, shards_of
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.enqueue.fitting import matched
from streamfrom.spark.jobs.writing import insert_batches, targets_of
from streamfrom.spark.source.batch import told_apart, told_plainly
from streamfrom.spark.source.type_conversion import converter
from streamfrom.spark.table_schema import fields_of


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from streamfrom.spark.source.options import Options

# Nothing is cut to what a column holds, and times mean what they mean to Spark.
STRICT: Final = "SET sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES'), time_zone = '+00:00'"


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote: its rows, and how many of them were new."""

    rows: int
    inserted: int


@dataclass(frozen=True)
class WritePlan:
    """Where rows go, and what is sent of each value, by the table's column names."""

    endpoint: "Endpoint"
    table: str
    converters: "dict[str, Callable[[Any], Any]]"

    @told_plainly()
    def write(self, arrow: "Iterator[pa.RecordBatch]") -> Written:
        """Insert all rows whose ids are new.

        Raises:
            JobError: the proxy or a shard broke off or refused a value.
        """
        rows = inserted = 0
        names, converters = list(self.converters), list(self.converters.values())
        with told_apart(self.endpoint, "of the keyspace"):
            for some, new in insert_batches(
                self.endpoint, self.table, names, arrow, STRICT, converters
            ):
                rows += some
                inserted += new
        return Written(rows, inserted)


def plan_of(options: "Options", schema: "StructType", *, overwrite: bool) -> WritePlan:
    """Check all that can be known before the first row.

    Raises:
        RequestError: the mode is not append, the table is no message table, or the columns do not fit.
    """
    if overwrite:
        raise RequestError(
            'messages are only added: .mode("append"); archive and purge take them away'
        )
    if options.shards:
        raise RequestError("option shards is for reading: rows go where the vindex says")
    if options.where:
        raise RequestError("option where is for reading: filter the DataFrame")
    endpoint, table = options.endpoint, options.table
    shards = shards_of(endpoint)
    fields_of(endpoint, shards, table)
    targets = matched(schema.names, targets_of(endpoint, shards[0], table), [])
    if not any(target.name == "id" for target in targets.values()):
        raise RequestError(
            "the DataFrame has no column id: make one of the data, so that a retry writes the same"
            " (streamfrom-spark enqueue does), since drawn ids would double messages"
        )
    converters = {
        target.name: converter(name, schema[name].dataType, target.mysql_type)
        for name, target in targets.items()
    }
    return WritePlan(endpoint, table, converters)


class TaskWriter:
    """Each task inserts its rows; nothing is left to do at the end."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Insert the rows of one task."""
        return self.plan.write(iterator)


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    """`df.write`."""


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    """`df.writeStream`: a batch that Spark runs again inserts what its first run did not."""
