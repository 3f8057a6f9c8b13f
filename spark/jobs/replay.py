"""Bring archived messages back into a queue.

Only published windows are read, and all their rows must be there. A message comes back as a new
one: never sent, never acknowledged, due by the table's default or `--start`. With its old id it is inserted
unless the table has it; with a new id, derived from the old one and a label, there may be a copy for
each label. Either way a run may be killed and run again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window as Over, functions as F

from streamfrom.spark.endpoint import shards_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.fitting import MISFITS, as_sent, matched
from streamfrom.spark.jobs.enqueue.identity import derived_id, with_due
from streamfrom.spark.jobs.files import spark_path
from streamfrom.spark.jobs.job import DUE, LEAST_RATE, WINDOW, JobConfig, begun
from streamfrom.spark.jobs.manifest import Manifest, archive_locked, manifests
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import SHARD
from streamfrom.spark.jobs.writing import counts_of, insert_frame
from streamfrom.spark.session import SPARK_ERRORS, reason_of
from streamfrom.spark.table_schema import Field, fields_of, kept_type


# The columns of an archived message that a new one does not keep.
_PAST: Final = frozenset({"epoch", "time_next", "time_acked"})


@dataclass(frozen=True)
class ReplayConfig(JobConfig):
    """The archived messages to bring back and how: by default all of the window [low, high) of `time_acked`, with their old ids."""

    OPTIONS = f"""
  archive   --archive DIR       the --out of the archive job
  archived  --archived-table T  the table they were in, if not --table
{WINDOW}
  where     --where SQL         a condition on the archived columns
  without   --without C,C       archived columns to leave out
  label     --new-ids LABEL     copies under ids made of the old and LABEL
{DUE}"""
    LEAST = LEAST_RATE

    archive: Path
    archived: str | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    where: str | None = None
    without: tuple[str, ...] = ()
    label: str | None = None
    start_ns: int | None = None
    rate_per_s: float | None = None


CONFIG: Final = ReplayConfig


def run(
    spark: "SparkSession", config: ReplayConfig, progress: Progress | None = None
) -> Report:
    """Insert the messages that the table does not have, and return how many there were.

    `read` is `repeated` (an id archived more than once, of which the last counts) + `inserted` +
    `already_there`.

    Raises:
        RequestError: nothing is published there, or it does not fit the table. Nothing was written.
        JobError: the archive lacks rows, or the job broke off; running it again writes the rest.
    """
    progress = begun(spark, progress)
    endpoint, table = config.endpoint, config.table
    targets = fields_of(endpoint, shards_of(endpoint), table, kept_type)
    home = config.archive.resolve() / endpoint.keyspace / (config.archived or table)
    window = config.low_ns, config.high_ns
    found = [manifest for manifest in manifests(home) if manifest.has_part_of(*window)]
    if not found:
        raise RequestError(
            f"nothing is published in {home} for this window: check --archive, --archived-table,"
            " --from and --to"
        )
    # While the archive job still purges a window, it would also purge restored messages.
    with archive_locked(home):
        progress.enter("check")
        try:
            read, sent = _messages(spark, config, home, found, targets)
        except SPARK_ERRORS as error:
            raise RequestError(
                f"cannot read the archive so: {reason_of(error)}; nothing was written"
            ) from error
        rows = with_due(sent.drop(MISFITS), config.start_ns, config.rate_per_s)
        progress.enter("write")
        written, inserted = insert_frame(rows, endpoint, table, read)
        sent.unpersist()
    progress.leave()
    counts = {"windows": len(found)} | counts_of(read, written, inserted)
    return Report("replay", config.name, counts, progress.steps_s)


def last_of_each(rows: DataFrame) -> DataFrame:
    """Return, for each id, the row that was acknowledged last."""
    order = Over.partitionBy("id").orderBy(F.desc("time_acked"))
    ranked = rows.withColumn("streamfrom_rank", F.row_number().over(order))
    return ranked.filter("streamfrom_rank = 1").drop("streamfrom_rank")


def _messages(
    spark: "SparkSession",
    config: ReplayConfig,
    home: Path,
    found: "Sequence[Manifest]",
    targets: "Sequence[Field]",
) -> tuple[int, DataFrame]:
    """Return the number of selected archived messages, and each of them once, converted for the table."""
    parts = [_whole(spark, home, manifest) for manifest in found if manifest.rows]
    if not parts:
        raise RequestError("the published windows hold no message")
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    if config.low_ns is not None:
        rows = rows.filter(F.col("time_acked") >= config.low_ns)
    if config.high_ns is not None:
        rows = rows.filter(F.col("time_acked") < config.high_ns)
    if config.where:
        rows = rows.filter(F.expr(config.where))
    read = rows.count()
    by_name = {target.name: target for target in targets}
    if config.label is not None:
        made = [F.col("id"), F.col("time_acked"), F.lit(config.label)]
        is_integer = "int" in by_name["id"].mysql_type
        rows = rows.withColumn("id", derived_id(made, is_integer=is_integer))
    left_out = _PAST.union(config.without, (one.name for one in targets if one.is_generated))
    kept = [name for name in rows.columns if name not in left_out]
    cure = "Alter the table or leave columns out (--without); nothing was written"
    return read, as_sent(last_of_each(rows), matched(kept, targets, []), cure)


def _whole(spark: "SparkSession", home: Path, manifest: Manifest) -> DataFrame:
    """Return the rows of a published window, after checking that none is missing."""
    data = home / manifest.name
    try:
        rows = spark.read.parquet(spark_path(data)).drop(SHARD)
        count = rows.count()
    except SPARK_ERRORS as error:
        raise JobError(f"cannot read {data}: {reason_of(error)}; restore it") from error
    if count != manifest.rows:
        raise JobError(
            f"{data} has {count} rows and its manifest says {manifest.rows}: restore it; nothing was"
            " written"
        )
    return rows
