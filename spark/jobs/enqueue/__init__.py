"""Feed a message table in bulk, from files or a DataFrame.

All is checked before anything is written: columns, types, ids. Ids are given or made of the rows, never
drawn, and what is in the table already stays as it is there, so a run may be killed and run again.
`identity` makes ids and times, `fitting` says what a table takes, both pure; `spark.jobs.writing` writes.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from streamfrom.spark.endpoint import Endpoint, quoted, shards_of
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.enqueue.fitting import fitted, matched, misfits
from streamfrom.spark.jobs.enqueue.identity import (
    clashes,
    derived_id,
    one_each,
    with_content,
    with_due,
)
from streamfrom.spark.jobs.job import RATE, START, Option, adding, begun, check_rate, given
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.writing import TargetColumn, insert_frame, targets_of
from streamfrom.spark.session import SPARK_ERRORS, reason_of
from streamfrom.spark.table_schema import fields_of, kept_type


if TYPE_CHECKING:
    import argparse


FORMATS: Final = {
    "parquet": {},
    # Quotes are doubled, as in RFC 4180.
    "csv": {"header": "true", "escape": '"', "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
}
"""What files may hold, and how Spark is to read them: JSON has one object a line."""
_SUFFIXES: Final = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json"}
_EXAMPLES: Final = 3
_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class Files:
    """Files or folders that all executors see, and what they hold: one of `FORMATS`."""

    paths: tuple[str, ...]
    format: str


@dataclass(frozen=True, slots=True)
class EnqueueConfig:
    """The rows to insert, their table, their ids, and when they are due.

    source: the rows; their columns are the table's, by name.
    id_column: which of them is the id; `id`, if there is one. None makes an id of `key`, or of all columns.
    """

    endpoint: Endpoint
    table: str
    source: Files | DataFrame
    id_column: Annotated[
        str | None,
        Option("--id-column", "C", "the column that is the id (id, if there is one)"),
    ] = None
    key: Annotated[
        tuple[str, ...],
        Option("--key", "C,C", "columns to make an id of, where none is given (all of them)"),
    ] = ()
    start_ns: Annotated[int | None, START] = None
    rate_per_s: Annotated[float | None, RATE] = None


def add_options(parser: "argparse.ArgumentParser") -> None:
    """Add the files, and what becomes id and time."""
    parser.add_argument(
        "--input",
        required=True,
        action="append",
        metavar="PATH",
        help="a file or folder that all executors see; may be given again",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="what they hold; by default what their names end with"
    )
    adding(EnqueueConfig)(parser)


def configured(options: "argparse.Namespace", endpoint: Endpoint) -> EnqueueConfig:
    """Return what the command line asks for.

    Raises:
        RequestError: the format of the files is not given, or options contradict each other.
    """
    endings = {path.rstrip("/*").rpartition(".")[2].lower() for path in options.input}
    kinds = {options.format} if options.format else {_SUFFIXES.get(end) for end in endings}
    kind = kinds.pop()
    if kinds or kind is None:
        raise RequestError(f"--format says what the files hold: {', '.join(FORMATS)}")
    if options.key and options.id_column:
        raise RequestError("--id-column names an id and --key makes one: choose")
    check_rate(options.rate_per_s)
    source = Files(tuple(options.input), kind)
    return EnqueueConfig(endpoint, options.table, source, **given(options, EnqueueConfig))


def run(
    spark: "SparkSession", config: EnqueueConfig, progress: Progress | None = None
) -> Report:
    """Write what is not in the table yet, and return how many messages that were.

    `read` is `repeated` (rows equal to another one) + `inserted` + `already_there`.

    Raises:
        RequestError: the files, columns, values or ids do not fit the table. Nothing was written.
        JobError: it broke off; what was written stays, and running it again writes the rest.
    """
    progress = begun(spark, progress)
    endpoint, table = config.endpoint, config.table
    shards = shards_of(endpoint)
    fields_of(endpoint, shards, table, kept_type)
    targets = {target.name: target for target in targets_of(endpoint, shards[0], table)}
    progress.enter("check")
    try:
        rows = with_content(_checked(_read(spark, config.source), config, targets)).persist()
        read = rows.count()
    except SPARK_ERRORS as error:
        raise RequestError(
            f"cannot read the input: {reason_of(error)}; nothing was written"
        ) from error
    differing = [str(row[0]) for row in clashes(rows).limit(_EXAMPLES).collect()]
    if differing:
        raise RequestError(
            f"rows that differ have the same id, such as {', '.join(differing)}: give each its own"
            " (--id-column), or name columns that distinguish them (--key); nothing was written"
        )
    messages = one_each(rows)
    if config.start_ns is not None or config.rate_per_s is not None:
        start_ns = time.time_ns() if config.start_ns is None else config.start_ns
        messages = with_due(messages, start_ns, config.rate_per_s)
    progress.enter("write")
    written, inserted = insert_frame(messages, endpoint, table, read, progress)
    rows.unpersist()
    progress.leave()
    counts = {
        "read": read,
        "repeated": read - written,
        "inserted": inserted,
        "already_there": written - inserted,
    }
    return Report("enqueue", f"{endpoint.keyspace}.{table}", counts, progress.steps_s)


def _read(spark: "SparkSession", source: Files | DataFrame) -> DataFrame:
    if isinstance(source, DataFrame):
        return source
    return (
        spark.read.options(**FORMATS[source.format])
        .format(source.format)
        .load(list(source.paths))
    )


def _checked(
    given: DataFrame, config: EnqueueConfig, targets: "Mapping[str, TargetColumn]"
) -> DataFrame:
    """Return the columns of the table that *given* fills, each value as the server is sent it."""
    named = given
    if config.id_column and config.id_column != "id":
        if config.id_column not in given.columns or "id" in given.columns:
            raise RequestError(
                f"--id-column: the input needs a column {config.id_column!r} and none called id;"
                f" it has {', '.join(given.columns)}"
            )
        named = given.withColumnRenamed(config.id_column, "id")
    for name in config.key:
        if name not in given.columns:
            raise RequestError(f"--key: the input has no column {name!r}")
    is_scheduled = config.start_ns is not None or config.rate_per_s is not None
    if is_scheduled and "time_next" in given.columns:
        raise RequestError("the input has time_next: leave --start and --rate away, or drop it")
    found = matched(named.columns, list(targets.values()), ["id"])
    columns = [(name, fitted(named, name, target)) for name, target in found.items()]
    wrong = misfits(named, columns)
    if wrong:
        raise RequestError(f"{'; '.join(wrong)}. Nothing was written")
    values = [fit.value.alias(fit.target.name) for _, fit in columns]
    if "id" in {fit.target.name for _, fit in columns}:
        return named.select(*values)
    key = [F.col(quoted(name)) for name in config.key or sorted(named.columns)]
    kind = targets["id"].mysql_type
    made = derived_id(key, is_integer=kind.startswith(_INTEGERS))
    whole = named.withColumn("id", made)
    misfit = misfits(whole, [("id", fitted(whole, "id", targets["id"]))])
    if misfit:
        raise RequestError(f"no id can be made that {kind} holds: --id-column names one")
    return whole.select(F.col("id"), *values)
