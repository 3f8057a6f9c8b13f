"""Rows of a DataFrame into a message table, as often as one likes.

A row whose id is in the table stays as it is there (`spark.jobs.writing`), so a task, a batch or a whole job that runs again
adds nothing twice, as long as its ids are the same: they are to be made of the data, never drawn.
Rows that were written stay when a job fails.

A Spark type is taken for a MySQL type only if the server cuts and rounds none of its values silently. What a value alone can show (too
large, too long, no such enum member) the server refuses by itself, since it is asked to be strict.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from streamfrom.spark.endpoint import Endpoint, shards_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.enqueue.fitting import matched, members_of
from streamfrom.spark.jobs.writing import insert_batches, targets_of
from streamfrom.spark.source.batch import told_apart, told_plainly
from streamfrom.spark.table_schema import base_of, fields_of


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

    from streamfrom.spark.source.options import Options


_WHOLE: Final = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_INTEGERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"}
)
_NO_TEXT: Final = frozenset({"decimal", "double", "float", "date", "datetime", "timestamp"})
_IN_DOUBLE: Final = frozenset({"float", "double", "tinyint", "smallint", "int"})
_BYTES: Final = re.compile("binary|blob|geometry|vector")
_MICROS_DIGITS: Final = 6
_CENTURY: Final = 100
_NUMBER: Final = re.compile(r"\s*[+-]?\d+")


def _same(value: Any) -> Any:
    return value


def converter(name: str, given: "DataType", mysql_type: str) -> "Callable[[Any], Any]":
    """Return what makes of a value of the Spark type *given* the one to send; NULL is not asked about.

    Raises:
        RequestError: *mysql_type* does not hold all its values as they are.
    """
    kind = given.simpleString()
    base = base_of(mysql_type)
    sizes = [int(size) for size in re.findall(r"\d+", mysql_type)]
    scale = int(kind[:-1].split(",")[1]) if kind.startswith("decimal") else 0
    is_whole = kind in _WHOLE or (kind.startswith("decimal") and scale == 0)
    if base in {"datetime", "timestamp"} and kind in {"timestamp", "timestamp_ntz"}:
        if (base == "timestamp") == (kind == "timestamp"):
            return _moment_writer(name, mysql_type, sizes[0] if sizes else 0)
    elif (
        (base in _INTEGERS and base != "year" and is_whole)
        or (base == "decimal" and (is_whole or scale) and scale <= sizes[1])
        or (base == "double" and kind in _IN_DOUBLE)
        or (base == "float" and kind == "float")
        or (base == "date" and kind == "date")
    ):
        if base in {"double", "float"} and sizes:
            return _rounded_writer(name, mysql_type, sizes[1])
        return int if kind == "boolean" else _same
    elif base == "year" and is_whole:
        return _year_writer(name)
    elif kind == "binary" and base == "binary":
        return _whole_bytes_writer(name, sizes[0])
    elif kind == "binary" and _BYTES.search(base):
        return bytes
    elif kind == "string" and base in {"enum", "set"}:
        return _member_writer(name, mysql_type)
    elif kind == "string" and base == "time":
        return _time_writer(name, mysql_type, sum(sizes))
    elif kind == "string" and base in {"char", "varchar"}:
        return _text_writer(name, mysql_type, sizes[0])
    elif kind == "string" and base not in _INTEGERS | _NO_TEXT and not _BYTES.search(base):
        return _same
    raise RequestError(
        f"column {name!r} is {kind} and the table's {mysql_type} would not hold that exactly: cast it"
    )


def _whole_bytes_writer(name: str, size: int) -> "Callable[[Any], bytes]":
    def written(value: Any) -> bytes:
        if len(value) < size:
            raise JobError(
                f"column {name!r}: binary({size}) would add zeros to {bytes(value)!r}: bring all {size} bytes"
            )
        return bytes(value)

    return written


def _rounded_writer(name: str, mysql_type: str, digits: int) -> "Callable[[Any], Any]":
    stored = Struct("f" if mysql_type.startswith("float") else "d")

    def written(value: Any) -> Any:
        if stored.unpack(stored.pack(round(value, digits))) != (value,):
            raise JobError(f"column {name!r}: {mysql_type} would round {value}: round it first")
        return value

    return written


def _text_writer(name: str, mysql_type: str, size: int) -> "Callable[[Any], str]":
    def written(value: str) -> str:
        # Blanks at the end a server would cut, however strict it is.
        if len(value) > size:
            raise JobError(f"column {name!r}: {mysql_type} cannot hold {value!r}: cut it first")
        return value

    return written


def _year_writer(name: str) -> "Callable[[Any], int]":
    def written(value: Any) -> int:
        if 0 < value < _CENTURY:
            raise JobError(f"column {name!r}: year would take {value} for another year")
        return int(value)

    return written


def _member_writer(name: str, mysql_type: str) -> "Callable[[Any], str]":
    members = members_of(mysql_type)

    def written(value: str) -> str:
        # A server takes a number in a text for the member with this number.
        if _NUMBER.fullmatch(value) and value not in members:
            raise JobError(f"column {name!r}: {mysql_type} has no {value!r}")
        return value

    return written


def _time_writer(name: str, mysql_type: str, digits: int) -> "Callable[[Any], str]":
    def written(value: str) -> str:
        if value.partition(".")[2][digits:].strip("0"):
            raise JobError(f"column {name!r}: {_cannot_hold(mysql_type, value, digits)}")
        return value

    return written


def _cannot_hold(mysql_type: str, value: str, digits: int) -> str:
    return f"{mysql_type} cannot hold {value}: cut it to {digits} digits of a second first"


def _moment_writer(name: str, mysql_type: str, digits: int) -> "Callable[[Any], str]":
    unit = 10 ** (_MICROS_DIGITS - digits)

    def written(moment: datetime) -> str:
        utc = moment.astimezone(UTC) if moment.tzinfo else moment
        if utc.microsecond % unit:
            raise JobError(
                f"column {name!r}: {_cannot_hold(mysql_type, utc.isoformat(), digits)}"
            )
        # Not strftime, which writes the year 70 as a server reads 1970.
        return utc.replace(tzinfo=None).isoformat(" ", "microseconds")

    return written


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
