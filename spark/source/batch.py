"""The batch reader: one task for each shard, or for each range of ids on it.

A task is one streamed SELECT at `keyspace:shard`, so memory holds one Arrow batch. Tasks share no snapshot: one task may see
a change made during the read and another may not; a retried task reads again.

An option filters rows on the shards. Spark could also push the filters of a query down, but it stores the reader's answer
with the DataFrame, and reuses it for the next query on it, whatever its filters are, and for all branches of a self-join
(4.1 to 4.3). So the source accepts none.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from streamfrom.spark.endpoint import Endpoint, quoted
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.table_schema import Field, fetch_rows
from streamfrom.spark.worker_memory import keep_loaded


if TYPE_CHECKING:
    import pyarrow as pa

    from streamfrom.spark.source.options import Options


# The driver raises these as failures of the server: a value of another type or no geometry, a number too large, a trigger's SIGNAL,
# a text that is no JSON, and a violated CHECK, in MySQL and in MariaDB, whose JSON is such a CHECK.
_WRONG_VALUES: Final = frozenset({1292, 1366, 1416, 1644, 1690, 3140, 3819, 4025})
_VALUE_ERRORS: Final = (pymysql.err.DataError, pymysql.err.IntegrityError)
# Errors that waiting does not fix: missing privileges, and statements that the proxy does not support.
_REFUSED: Final = frozenset({1044, 1142, 1227, 1235})
# The client library's own errors, such as a lost connection.
_CLIENTS_OWN: Final = range(2000, 3000)
# A column or table that existed when it was loaded.
_GONE: Final = frozenset({1054, 1146})


# Spark's own switch. A worker checks it when it reports its fatal error, and then ends.
_HIDE_TRACE: Final = "SPARK_HIDE_TRACEBACK"
# Set only in workers. Elsewhere, the switch would hide the traces of other functions.
_WORKERS: Final = ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_DIR")


@dataclass
class TablePartition(InputPartition):
    """The rows of one shard that match a condition with a `%s` placeholder for each of *values*."""

    shard: str
    condition: str
    values: tuple[Any, ...] = ()


@contextmanager
def told_plainly() -> "Iterator[None]":
    """Show a JobError without its trace; an unforeseen error keeps its trace."""
    try:
        yield
    except JobError:
        if any(name in os.environ for name in _WORKERS):
            os.environ[_HIDE_TRACE] = "1"
        raise


@contextmanager
def told_apart(endpoint: "Endpoint", shard: str) -> "Iterator[None]":
    """Convert a driver's error to a JobError that names the place, and whether to wait or to fix something."""
    try:
        yield
    except pymysql.err.MySQLError as error:
        code, keyspace = error.args[0], repr(endpoint.keyspace)
        # The driver itself refuses an infinity, without an error number.
        is_unsent = isinstance(error, pymysql.err.ProgrammingError) and len(error.args) == 1
        if is_unsent or code in _WRONG_VALUES or isinstance(error, _VALUE_ERRORS):
            told = f"{keyspace} refuses a row: {error}; correct the data, then run it again: what is written stays as it is"
        elif code in _GONE:
            told = f"{keyspace} has changed: {error}; load the table again"
        elif code in _REFUSED:
            told = f"{keyspace} refuses that: {error}; ask the operator of the proxy for it"
        else:
            told = (
                f"the proxy at {endpoint.host}:{endpoint.port} or shard {shard} of {keyspace} broke off: {error}; run it"
                " again when it is back"
            )
        raise JobError(told) from error


class PartReader:
    """A reader whose planned parts are read on executors."""

    def __init__(
        self, options: "Options", shards: "tuple[str, ...]", fields: "Sequence[Field]"
    ) -> None:
        self.options = options
        self.shards = shards
        self.fields = fields

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a part.

        Raises:
            JobError: the proxy or the shard broke off.
        """
        assert isinstance(partition, TablePartition)
        keep_loaded()
        endpoint, shard = self.options.endpoint, partition.shard
        place = endpoint, shard, self.options.table, self.fields
        with told_plainly(), told_apart(endpoint, shard):
            yield from fetch_rows(*place, partition.condition, partition.values)


class StreamReader(PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The base of streams: a checkpoint that belongs to one table, and a limit for batches."""

    @property
    def table(self) -> str:
        """The table with its keyspace."""
        return f"{self.options.endpoint.keyspace}.{self.options.table}"

    def getDefaultReadLimit(self) -> "ReadLimit":
        """Return the default size of a batch."""
        return ReadMaxRows(self.options.max_rows_per_batch)

    def rows_of(self, limit: "ReadLimit") -> int:
        """Return the number of rows that *limit* allows."""
        if isinstance(limit, ReadMaxRows):
            return int(limit.max_rows)
        return self.options.max_rows_per_batch


class BatchReader(PartReader, DataSourceReader):
    """Reads the current rows of a message table."""

    @told_plainly()
    def partitions(self) -> "Sequence[TablePartition]":
        """Return a part for each shard, or several if ids are whole numbers.

        Raises:
            RequestError: a shard refuses the condition of the option.
        """
        condition = ""
        if self.options.where:
            condition = _enclosed(self.options.where).replace("%", "%%")
            self._check(self.shards[0])
        found = []
        for shard in self.shards:
            for bounds in self._ranges(shard):
                whole = " AND ".join(text for text in (condition, bounds) if text)
                found.append(TablePartition(shard, whole))
        return found

    def _check(self, shard: str) -> None:
        """Let *shard* validate the condition, both bare and in parentheses, so that it cannot close them early."""
        table, where = quoted(self.options.table), self.options.where
        sql = f"SELECT 1 FROM {table} WHERE {where}\nAND {_enclosed(where)} LIMIT 0"  # noqa: S608  the user's own
        with told_apart(self.options.endpoint, shard):
            try:
                self.options.endpoint.ask(sql, shard=shard)
            except pymysql.err.MySQLError as error:
                if error.args[0] in _CLIENTS_OWN:
                    raise
                raise RequestError(
                    f"option where: {error}; it takes a condition in SQL"
                ) from error

    def _ranges(self, shard: str) -> list[str]:
        count = self.options.partitions_per_shard
        if count == 1:
            return [""]
        sql = f"SELECT MIN(id), MAX(id) FROM {quoted(self.options.table)}"  # noqa: S608  quoted
        with told_apart(self.options.endpoint, shard):
            ((low, high),) = self.options.endpoint.ask(sql, shard=shard)
        return id_ranges(low, high, count)


def _enclosed(condition: str) -> str:
    # The line break ends a comment that would swallow the parenthesis.
    return f"({condition}\n)"


def id_ranges(low: str | None, high: str | None, count: int) -> list[str]:
    """Return up to *count* conditions that together match each id exactly once.

    One condition matches all if ids are no whole numbers or there are none.
    """
    try:
        first, last = int(low or ""), int(high or "")
    except ValueError:
        return [""]
    step = max(1, -(-(last - first + 1) // count))
    cuts = list(range(first + step, last + 1, step))
    # Open at both ends, because rows may be added after the bounds were read.
    lows = ["", *(f"id >= {cut}" for cut in cuts)]
    highs = [*(f"id < {cut}" for cut in cuts), ""]
    return [" AND ".join(filter(None, pair)) for pair in zip(lows, highs, strict=True)]
