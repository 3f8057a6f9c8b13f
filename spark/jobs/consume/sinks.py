"""Where results go: a batch that is written is there for good once it is published, which may be done again."""

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
    """Parquet, a folder for each batch, which appears whole and never changes.

    DIR/streamfrom_batch=NAME-NUMBER/*.parquet, NAME being the checkpoint's.
    """

    home: "Path"
    name: str

    def write(self, number: int, frame: "DataFrame") -> int:
        """Write the rows next to the folder that will be theirs, and return how many there are."""
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
    """Another message table: what its ids say is there already is not written again."""

    plan: "WritePlan"

    def write(self, _: int, frame: "DataFrame") -> int:
        """Insert the rows whose ids are new, and return how many there are, new or not."""
        return counted(frame, self.plan.insert)[0]

    def publish(self, _: int) -> None:
        """Do nothing: rows that are written are there."""


ResultSink = FolderSink | TableSink
"""What takes the results of batches, by their numbers: a batch that is written again replaces an earlier try."""
