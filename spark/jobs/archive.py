"""Save the acknowledged messages of a window as Parquet, then purge exactly those.

stage → verify → publish → purge. A run may be killed at any moment; simply run it again. Before
the manifest it starts over; after the manifest it only purges. Rows are purged by the ids read back from the
published files, and only while they are still acknowledged in the window, so no row is purged that is
not archived. A row whose acknowledgement was committed after the read stays, and is counted.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.dataset as ds
import pymysql

from streamfrom.spark.endpoint import IN_UTC, marked, quoted, shards_of
from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.checksum import Checksum, checksums, total
from streamfrom.spark.jobs.files import spark_path
from streamfrom.spark.jobs.job import WINDOW, JobConfig, begun, broken_off
from streamfrom.spark.jobs.manifest import (
    Manifest,
    archive_locked,
    publish,
    published,
    staged_at,
)
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import (
    SHARD,
    acked_between,
    acked_parts,
    check_closed,
    count_rows,
    read_rows,
)
from streamfrom.spark.session import SPARK_ERRORS
from streamfrom.spark.table_schema import fields_of, kept_type


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PURGE_ROWS: Final = 1000


@dataclass(frozen=True)
class ArchiveConfig(JobConfig):
    """The window [low, high) of `time_acked`, in nanoseconds, of the table to archive, and the place of the archive."""

    OPTIONS = f"""
  out  --out DIR  a folder all executors share
{WINDOW}"""

    out: Path
    low_ns: int
    high_ns: int


CONFIG: Final = ArchiveConfig


def run(
    spark: "SparkSession", config: ArchiveConfig, progress: Progress | None = None
) -> Report:
    """Archive and purge one window.

    Returns:
        A report in which `archived` = `purged` + `gone_before`; `left` acknowledged rows of the
        window are still in the table, because they were acknowledged after the read.

    Raises:
        RequestError: the window is open, or the table or archive is unsuitable.
        JobError: the staged rows differ from the table's, or the job broke off. Only archived rows
            were purged.
    """
    progress = begun(spark, progress)
    endpoint, table = config.endpoint, config.table
    shards = shards_of(endpoint)
    columns = fields_of(endpoint, shards, table, kept_type)
    check_closed(endpoint, shards, config.high_ns, "--to")
    home = config.out.resolve() / endpoint.keyspace / table
    window = Manifest(config.low_ns, config.high_ns)
    data, staging = home / window.name, staged_at(home, window)
    with archive_locked(home), broken_off():
        manifest = published(home, window)
        parts = acked_parts(shards, config.low_ns, config.high_ns)
        rows = read_rows(spark, endpoint, table, columns, parts)
        if manifest is None:
            progress.enter("stage")
            if staging.exists():
                # Spark would leave shards of a killed run if its partitionOverwriteMode is dynamic.
                shutil.rmtree(staging)
            rows.write.partitionBy(SHARD).parquet(spark_path(staging))
            progress.enter("verify")
            staged = _checksum(_read(spark, staging, rows))
            if _checksum(rows) != staged:
                raise JobError(
                    "the staged rows are not those of the table, which changed meanwhile: run again,"
                    " and keep vt_purge_after longer than the age of --from"
                )
            progress.enter("publish")
            manifest = replace(window, rows=staged.rows, checksum=staged.bits)
            publish(home, manifest)
            progress.enter("check")
            is_whole = _count(data) == manifest.rows
        else:
            # The files may have changed since an earlier run.
            progress.enter("check")
            is_whole = _is_whole(data, manifest, rows)
        if not is_whole:
            raise JobError(f"{data} lacks rows of its manifest: restore it; nothing was purged")
        progress.enter("purge")
        purged = _purge(config, data, manifest.rows, progress)
        left = count_rows(endpoint, shards, table, acked_between(config.low_ns, config.high_ns))
    progress.leave()
    counts = {
        "archived": manifest.rows,
        "purged": purged,
        "gone_before": manifest.rows - purged,
        "left": left,
    }
    return Report("archive", config.name, counts, progress.steps_s, (str(data),))


def _checksum(rows: "DataFrame") -> Checksum:
    return total(checksums(rows, SHARD))


def _is_whole(folder: Path, manifest: Manifest, like: "DataFrame") -> bool:
    if not folder.is_dir():
        return False
    try:
        found = _checksum(_read(like.sparkSession, folder, like))
    except SPARK_ERRORS:
        return False
    return found == Checksum(manifest.rows, manifest.checksum)


def _read(spark: "SparkSession", folder: Path, like: "DataFrame") -> "DataFrame":
    # The schema is given, because Spark would guess the type of shard names such as 80-.
    return (
        spark.read.schema(like.schema)
        .parquet(spark_path(folder))
        .select(*map(quoted, like.columns))
    )


def _files(folder: Path) -> Any:
    return sorted(folder.glob(f"{SHARD}=*/*.parquet"))


def _count(folder: Path) -> int:
    return sum(ds.dataset(str(path), format="parquet").count_rows() for path in _files(folder))


def _purge(config: ArchiveConfig, folder: Path, total: int, progress: Progress) -> int:
    """Delete the archived rows of *folder*; return how many were still in the table."""
    purged = done = 0
    for path in _files(folder):
        shard = path.parent.name.partition("=")[2]
        batches = ds.dataset(str(path), format="parquet").to_batches(
            columns=["id"], batch_size=PURGE_ROWS
        )
        try:
            with config.endpoint.connect(shard, IN_UTC) as connection:
                for ids in (batch.column(0).to_pylist() for batch in batches if batch.num_rows):
                    marks = ", ".join(["%s"] * len(ids))
                    inside = acked_between(config.low_ns, config.high_ns)
                    statement = (
                        f"DELETE FROM {marked(config.table)} WHERE id IN ({marks}) AND {inside}"  # noqa: S608  quoted
                    )
                    with connection.cursor() as cursor:
                        purged += cursor.execute(statement, ids)
                    done += len(ids)
                    progress.rows(done, total)
        except pymysql.err.MySQLError as error:
            raise JobError(
                f"the purge broke off: {error}; run again, it goes on there"
            ) from error
    return purged
