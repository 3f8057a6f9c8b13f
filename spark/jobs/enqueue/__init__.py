"""Insert messages into a table in bulk, from files or a DataFrame.

Columns, types and ids are checked before anything is written. Ids are given or derived from the rows, never
random, and existing rows are left unchanged, so a run may be killed and run again.
`identity` derives ids and times, `spark.fitting` checks values, both pure; `spark.jobs.writing` writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from streamfrom.spark.endpoint import quoted, shards_of
from streamfrom.spark.errors import RequestError
from streamfrom.spark.fitting import MISFITS, as_sent, matched
from streamfrom.spark.jobs.enqueue.identity import clashes, derived_id, with_due
from streamfrom.spark.jobs.job import DUE, LEAST_RATE, JobConfig, begun
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.writing import counts_of, insert_frame
from streamfrom.spark.session import SPARK_ERRORS, reason_of
from streamfrom.spark.table_schema import Field, fields_of, kept_type


FORMATS: Final = {
    "parquet": {},
    # Quotes are doubled, as in RFC 4180.
    "csv": {"header": "true", "escape": '"', "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
}
"""The formats of files, with Spark's options for reading them: JSON has one object per line."""
_SUFFIXES: Final = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json"}
_EXAMPLES: Final = 3
_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")


@dataclass(frozen=True)
class EnqueueConfig(JobConfig):
    """The rows to insert, their table, their ids, and when they are due.

    source: a DataFrame, or files and folders; columns are matched to the table's by name.
    id_column: the column with the id, by default `id` if it exists. None derives an id from `key`, or from all columns.
    format: the format of the files; by default from the ends of their names.
    """

    OPTIONS = f"""
  source     --input PATH…                a file or folder that all executors see; may be given again
  format     --format {{{",".join(FORMATS)}}}  what they hold; by default what their names end with
  id_column  --id-column C                the column that is the id (id, if there is one)
  key        --key C,C                    columns to make an id of, where none is given (all of them)
{DUE}"""
    LEAST = LEAST_RATE

    source: DataFrame | Sequence[str]
    id_column: str | None = None
    key: tuple[str, ...] = ()
    start_ns: int | None = None
    rate_per_s: float | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        """Raise RequestError if the format of the files is not given, or options contradict each other."""
        super().__post_init__()
        if not isinstance(self.source, DataFrame):
            self.format_of(self.source)
        if self.key and self.id_column:
            raise RequestError("--id-column names an id and --key makes one: choose")

    def format_of(self, paths: "Sequence[str]") -> str:
        """Return the format of the files, one of `FORMATS`."""
        endings = {path.rstrip("/*").rpartition(".")[2].lower() for path in paths}
        kinds = {self.format} if self.format else {_SUFFIXES.get(end) for end in endings}
        kind = kinds.pop()
        if kinds or kind is None:
            raise RequestError(f"--format says what the files hold: {', '.join(FORMATS)}")
        return kind


CONFIG: Final = EnqueueConfig


def run(
    spark: "SparkSession", config: EnqueueConfig, progress: Progress | None = None
) -> Report:
    """Insert the messages that are not in the table yet, and return how many there were.

    `read` is `repeated` (rows equal to another one) + `inserted` + `already_there`.

    Raises:
        RequestError: the files, columns, values or ids do not fit the table. Nothing was written.
        JobError: it broke off; written rows stay, and running it again writes the rest.
    """
    progress = begun(spark, progress)
    endpoint, table = config.endpoint, config.table
    fields = fields_of(endpoint, shards_of(endpoint), table, kept_type)
    targets = {target.name: target for target in fields}
    progress.enter("check")
    try:
        sent = _checked(_read(spark, config), config, targets)
        rows = sent.drop(MISFITS).distinct()
        read = sent.count()
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
    messages = with_due(rows, config.start_ns, config.rate_per_s)
    progress.enter("write")
    written, inserted = insert_frame(messages, endpoint, table, read)
    sent.unpersist()
    progress.leave()
    counts = counts_of(read, written, inserted)
    return Report("enqueue", config.name, counts, progress.steps_s)


def _read(spark: "SparkSession", config: EnqueueConfig) -> DataFrame:
    if isinstance(config.source, DataFrame):
        return config.source
    kind = config.format_of(config.source)
    return spark.read.options(**FORMATS[kind]).format(kind).load(list(config.source))


def _checked(
    given: DataFrame, config: EnqueueConfig, targets: "Mapping[str, Field]"
) -> DataFrame:
    """Return the columns of the table that *given* fills, converted by `as_sent`."""
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
    if not any(target.name == "id" for target in found.values()):
        key = [F.col(quoted(name)) for name in config.key or sorted(named.columns)]
        is_integer = targets["id"].mysql_type.startswith(_INTEGERS)
        named = named.withColumn("id", derived_id(key, is_integer=is_integer))
        found = {"id": targets["id"], **found}
    return as_sent(named, found, "Nothing was written")
