"""Where results go. A batch is in its sink once `publish` has returned, and then `outcome` says so ever after."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, functions as F

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome, Checkpoint, outcome_of
from streamfrom.spark.jobs.files import flush, spark_path, written_whole
from streamfrom.spark.jobs.frames import mapped


if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from streamfrom.spark.source.writer import WritePlan

BATCH: Final = "streamfrom_batch"
_COUNTS: Final = "rows bigint, inserted bigint"
_OUTCOME: Final = "_outcome.json"


class ResultSink(Protocol):
    """What takes the results of batches, by their numbers."""

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if it is in the sink already."""

    def write(self, number: int, frame: "DataFrame") -> int:
        """Take the results and return how many rows they are; again, if an earlier try broke off."""

    def publish(self, number: int, outcome: BatchOutcome) -> None:
        """Make what was written the sink's for good."""


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

    def withdraw(self, number: int) -> None:
        """Take back what a run published whose batch did not end."""
        if self._data(number).exists():
            shutil.rmtree(self._data(number))

    def _data(self, number: int) -> "Path":
        return self.home / f"{BATCH}={self.name}-{number:08d}"

    def _staging(self, number: int) -> "Path":
        return self.home / "_staging" / f"{self.name}-{number:08d}"


@dataclass(frozen=True, slots=True)
class TableSink:
    """Another message table: what its ids say is there already is not written again."""

    plan: "WritePlan"
    checkpoint: "Checkpoint"

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if it is the last one that did."""
        return self.checkpoint.outcome(number)

    def write(self, number: int, frame: "DataFrame") -> int:
        """Insert the rows whose ids are new, and return how many there are, new or not."""
        return written(frame, self.plan)

    def publish(self, number: int, outcome: BatchOutcome) -> None:
        """Write down that the batch is there."""
        self.checkpoint.keep(number, outcome)


def written(frame: "DataFrame", plan: "WritePlan") -> int:
    """Insert the rows of *frame* whose ids are new, and return how many rows it has."""

    def write(arrow: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa  # on an executor

        done = plan.write(arrow)
        yield pa.RecordBatch.from_pydict({"rows": [done.rows], "inserted": [done.inserted]})

    return int(mapped(frame, write, _COUNTS).agg(F.sum("rows")).collect()[0][0] or 0)


class ConsoleSink:
    """Standard output, a JSON object for each row."""

    def __init__(self, checkpoint: "Checkpoint") -> None:
        self._checkpoint = checkpoint
        self._lines: list[str] = []

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if it is the last one that did."""
        return self._checkpoint.outcome(number)

    def write(self, number: int, frame: "DataFrame") -> int:
        """Hold the lines until they are published."""
        self._lines = [row[0] for row in _as_json(frame).collect()]
        return len(self._lines)

    def publish(self, number: int, outcome: BatchOutcome) -> None:
        """Print the lines."""
        try:
            sys.stdout.writelines(f"{line}\n" for line in self._lines)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise JobError("standard output is closed; run it again") from error
        self._checkpoint.keep(number, outcome)


def _as_json(frame: "DataFrame") -> "DataFrame":
    # A NULL is a value like others.
    return frame.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))
