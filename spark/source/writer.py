"""Insert rows of a DataFrame into a message table, idempotently.

A row whose id is in the table is left unchanged (`spark.jobs.writing`), so a task, a batch or a whole job that runs again
adds nothing twice, as long as its ids are the same: derive them from the data, never at random.
Written rows stay when a job fails.
A value that the table would not hold exactly fails the task (`spark.fitting`).
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
from streamfrom.spark.fitting import NESTED, matched, sender
from streamfrom.spark.jobs.writing import insert_batches
from streamfrom.spark.source.batch import told_apart, told_plainly
from streamfrom.spark.table_schema import fields_of


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from streamfrom.spark.source.options import Options


# No value is cut to fit a column, and times have the same meaning as in Spark.
STRICT: Final = "SET sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES'), time_zone = '+00:00'"


@dataclass(frozen=True)
class WritePlan:
    """The destination of rows, and the converter for each value, by the table's column names."""

    endpoint: "Endpoint"
    table: str
    converters: "dict[str, Callable[[Any], Any]]"

    def insert(self, arrow: "Iterator[pa.RecordBatch]") -> "Iterator[tuple[int, int]]":
        """Insert all rows whose ids are new; yield, for each statement, how many rows it has and how many were new.

        Raises:
            JobError: the proxy or a shard broke off or refused a value.
        """
        names, converters = list(self.converters), list(self.converters.values())
        with told_plainly(), told_apart(self.endpoint, "of the keyspace"):
            yield from insert_batches(
                self.endpoint, self.table, names, arrow, STRICT, converters
            )


def plan_of(options: "Options", schema: "StructType", *, overwrite: bool) -> WritePlan:
    """Check everything that can be known before the first row.

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
    targets = matched(schema.names, fields_of(endpoint, shards_of(endpoint), table), [])
    if not any(target.name == "id" for target in targets.values()):
        raise RequestError(
            "the DataFrame has no column id: make one of the data, so that a retry writes the same"
            " (streamfrom-spark enqueue does), since drawn ids would double messages"
        )
    for name in targets:
        kind = schema[name].dataType.simpleString()
        if kind.startswith(NESTED):
            raise RequestError(
                f"column {name!r} is {kind.partition('<')[0]}: make JSON of it with to_json"
            )
    senders = {target.name: sender(target) for target in targets.values()}
    return WritePlan(endpoint, table, senders)


class TaskWriter:
    """Inserts the rows of each task; there is nothing to do at the end."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Insert the rows of one task."""
        for _ in self.plan.insert(iterator):
            pass
        return WriterCommitMessage()


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    """The writer of `df.write`."""


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    """The writer of `df.writeStream`: if Spark reruns a batch, it inserts the rows that the first run did not."""
