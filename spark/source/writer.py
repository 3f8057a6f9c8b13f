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
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from streamfrom.spark.endpoint import Endpoint, declared, shards_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.enqueue.fitting import matched, members_of
from streamfrom.spark.jobs.writing import insert_batches
from streamfrom.spark.source.batch import told_apart, told_plainly
from streamfrom.spark.table_schema import base_of, fields_of


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

    from streamfrom.spark.source.options import Options


_WHOLE: Final = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "bit"})
_NO_TEXT: Final = frozenset(
    {"decimal", "double", "float", "date", "datetime", "timestamp", "year"}
)
# The Spark types whose values are all in the MySQL type.
_INSIDE: Final = {
    "double": {"float", "double", "tinyint", "smallint", "int"},
    "float": {"float"},
    "date": {"date"},
    "datetime": {"timestamp_ntz"},
    "timestamp": {"timestamp"},
}
_BYTES: Final = re.compile("binary|blob|geometry|vector")
_MICROS_DIGITS: Final = 6
_CENTURY: Final = 100
_NUMBER: Final = re.compile(r"\s*[+-]?\d+")


def _same(value: Any) -> Any:
    return value


class Rule(NamedTuple):
    """What is sent of a value.

    fits: whether the server keeps a value that it does not refuse; None if it keeps all.
    else_: what it does to the others, and what to do instead.
    """

    send: "Callable[[Any], Any]" = _same
    fits: "Callable[[Any], bool] | None" = None
    else_: str = ""


def converter(name: str, given: "DataType", mysql_type: str) -> "Callable[[Any], Any]":
    """Return what makes of a value of the Spark type *given* the one to send; NULL is not asked about.

    Raises:
        RequestError: *mysql_type* does not hold all its values as they are.
    """
    kind = given.simpleString()
    rule = _rule(kind, mysql_type)
    if rule is None:
        raise RequestError(
            f"column {name!r} is {kind} and the table's {mysql_type} would not hold that exactly: cast it"
        )
    send, fits, else_ = rule
    if fits is None:
        return send

    def sent(value: Any) -> Any:
        if not fits(value):
            raise JobError(f"column {name!r}: {mysql_type} {else_.format(value)}")
        return send(value)

    return sent


def _rule(kind: str, mysql_type: str) -> Rule | None:
    base = base_of(mysql_type)
    sizes = [int(size) for size in re.findall(r"\d+", mysql_type)]
    digits = sum(sizes)  # of a second
    scale = int(kind[:-1].split(",")[1]) if kind.startswith("decimal") else 0
    is_whole = kind in _WHOLE or (kind.startswith("decimal") and scale == 0)
    cut = f"cannot hold {{}}: cut it to {digits} digits of a second first"
    match kind, base:
        case _, "year" if is_whole:
            return Rule(
                int, lambda year: not 0 < year < _CENTURY, "would take {} for another year"
            )
        case _, "decimal" if (is_whole or scale) and scale <= sizes[1]:
            return Rule()
        case _, _ if is_whole and base in _INTEGERS:
            return Rule()
        case _, "datetime" | "timestamp" if kind in _INSIDE[base]:
            unit = 10 ** (_MICROS_DIGITS - digits)
            return Rule(_in_utc, lambda moment: moment.microsecond % unit == 0, cut)
        case _, "float" | "double" if kind in _INSIDE[base] and sizes:
            form = base[0]

            def is_round(value: Any) -> bool:
                return unpack(form, pack(form, round(value, sizes[1]))) == (value,)

            return Rule(_same, is_round, "would round {}: round it first")
        case _, _ if kind in _INSIDE.get(base, ()):
            return Rule()
        case "binary", "binary":
            more = f"would add zeros to {{!r}}: bring all {sizes[0]} bytes"
            return Rule(bytes, lambda value: len(value) >= sizes[0], more)
        case "binary", _ if _BYTES.search(base):
            return Rule(bytes)
        case "string", "enum" | "set":
            # A server takes a number in a text for the member with this number.
            members = members_of(mysql_type)
            return Rule(
                _same,
                lambda text: text in members or not _NUMBER.fullmatch(text),
                "has no {!r}",
            )
        case "string", "time":
            return Rule(_same, lambda text: not text.partition(".")[2][digits:].strip("0"), cut)
        case "string", "char" | "varchar":
            # Blanks at the end a server would cut, however strict it is.
            return Rule(
                _same, lambda text: len(text) <= sizes[0], "cannot hold {!r}: cut it first"
            )
        case "string", _ if base not in _INTEGERS | _NO_TEXT and not _BYTES.search(base):
            return Rule()
    return None


def _in_utc(moment: datetime) -> str:
    utc = moment.astimezone(UTC) if moment.tzinfo else moment
    # Not strftime, which writes the year 70 as a server reads 1970.
    return utc.replace(tzinfo=None).isoformat(" ", "microseconds")


# Nothing is cut to what a column holds, and times mean what they mean to Spark.
STRICT: Final = "SET sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES'), time_zone = '+00:00'"


@dataclass(frozen=True)
class WritePlan:
    """Where rows go, and what is sent of each value, by the table's column names."""

    endpoint: "Endpoint"
    table: str
    converters: "dict[str, Callable[[Any], Any]]"

    def insert(self, arrow: "Iterator[pa.RecordBatch]") -> "Iterator[tuple[int, int]]":
        """Insert all rows whose ids are new, and yield for each statement how many rows it has, and how many were new.

        Raises:
            JobError: the proxy or a shard broke off or refused a value.
        """
        names, converters = list(self.converters), list(self.converters.values())
        with told_plainly(), told_apart(self.endpoint, "of the keyspace"):
            yield from insert_batches(
                self.endpoint, self.table, names, arrow, STRICT, converters
            )


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
    targets = matched(schema.names, declared(endpoint, shards[0], table), [])
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
        for _ in self.plan.insert(iterator):
            pass
        return WriterCommitMessage()


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    """`df.write`."""


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    """`df.writeStream`: a batch that Spark runs again inserts what its first run did not."""
