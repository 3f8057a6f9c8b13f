"""Where results go.

A batch is in its sink once `publish` has returned, and then `outcome` says so ever after.
"""

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome, outcome_of
from streamfrom.spark.jobs.files import flush, spark_path, written_whole
from streamfrom.spark.jobs.writing import counted


if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from streamfrom.spark.jobs.consume.checkpoint import Checkpoint
    from streamfrom.spark.source.writer import WritePlan

BATCH: Final = "streamfrom_batch"
_OUTCOME: Final = "_outcome.json"


@dataclass(frozen=True, slots=True)
class FolderSink:
    """Parquet, a folder for each batch, which appears whole and never changes.

    DIR/streamfrom_batch=NAME-NUMBER/*.parquet, NAME being the checkpoint's.
    """

    home: "Path"
    name: str

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if its folder is there."""
        path = self._data(number) / _OUTCOME
        return outcome_of(path.read_text()) if path.exists() else None

    def write(self, number: int, frame: "DataFrame") -> int:
        """Write the rows next to the folder that will be theirs."""
        staging = self._staging(number)
        frame.write.mode("overwrite").parquet(spark_path(staging))
        return sum(pq.read_metadata(path).num_rows for path in staging.glob("*.parquet"))

    def publish(self, number: int, outcome: BatchOutcome) -> None:
        """Give the folder its name, in place of one that a killed run may have left without being done."""
        staging, data = self._staging(number), self._data(number)
        written_whole(staging / _OUTCOME, outcome.json())
        for path in staging.iterdir():
            flush(path)
        if data.exists():
            shutil.rmtree(data)
        staging.rename(data)
        flush(self.home)

    def _data(self, number: int) -> "Path":
        return self.home / f"{BATCH}={self.name}-{number:08d}"

    def _staging(self, number: int) -> "Path":
        return self.home / "_staging" / f"{self.name}-{number:08d}"


@dataclass(frozen=True, slots=True)
class TableSink:
    """Another message table: what its ids say is there already is not written again; the checkpoint knows the last batch."""

    plan: "WritePlan"
    checkpoint: "Checkpoint"

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if it is the last one that did."""
        return self.checkpoint.outcome(number)

    def write(self, number: int, frame: "DataFrame") -> int:
        """Insert the rows whose ids are new, and return how many there are, new or not."""
        return counted(frame, self.plan.insert)[0]

    def publish(self, number: int, outcome: BatchOutcome) -> None:
        """Write down that the batch is there."""
        self.checkpoint.keep(number, outcome)


ResultSink = FolderSink | TableSink
"""What takes the results of batches, by their numbers: a batch that is written again replaces an earlier try."""
