"""The destinations of results: a written batch is durable once published, and publishing can be repeated."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.files import flush, flush_all, spark_path
from streamfrom.spark.jobs.writing import counted


if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from streamfrom.spark.source.writer import WritePlan

BATCH: Final = "streamfrom_batch"


@dataclass(frozen=True, slots=True)
class FolderSink:
    """A Parquet sink with a folder per batch, which appears as a whole and never changes.

    DIR/streamfrom_batch=NAME-NUMBER/*.parquet, NAME being the checkpoint's.
    """

    home: "Path"
    name: str

    def write(self, number: int, frame: "DataFrame") -> int:
        """Write the rows to a staging folder; return how many there are."""
        staging = self._staging(number)
        frame.write.mode("overwrite").parquet(spark_path(staging))
        flush_all(staging)
        # A batch without this folder counts as published, so its name must be on the disk, too.
        flush(staging.parent)
        flush(self.home)
        return sum(pq.read_metadata(path).num_rows for path in staging.glob("*.parquet"))

    def publish(self, number: int) -> None:
        """Give the folder its name, unless it has it.

        Raises:
            JobError: another folder has the name.
        """
        if (staging := self._staging(number)).exists():
            data = self.home / f"{BATCH}={staging.name}"
            if data.exists():
                raise JobError(
                    f"{data} is there already: remove it if a run of an earlier version was killed; if the checkpoint"
                    " was restored from a backup, use a new --checkpoint"
                )
            staging.rename(data)
            flush(self.home)

    def _staging(self, number: int) -> "Path":
        return self.home / "_staging" / f"{self.name}-{number:08d}"


@dataclass(frozen=True, slots=True)
class TableSink:
    """Another message table. Rows whose ids it has already are not written again."""

    plan: "WritePlan"

    def write(self, _: int, frame: "DataFrame") -> int:
        """Insert the rows whose ids are new; return the number of all rows, new or not."""
        return counted(frame, self.plan.insert)[0]

    def publish(self, _: int) -> None:
        """Do nothing: written rows are already published."""


ResultSink = FolderSink | TableSink
"""A sink for the results of batches, by number: writing a batch again replaces an earlier try."""
