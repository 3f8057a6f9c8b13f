"""The files of a consumer next to Spark's own checkpoint: its owner, and the outcome of its last batch.

DIR/streamfrom.json    the table, the sink and a name that no other checkpoint has
DIR/outcome.json       the last batch in the sink
DIR/spark/             Spark's checkpoint
"""

import json
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.files import locked, written_whole


if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from streamfrom.spark.source.offsets import Id


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """How a batch ended: the number of messages read, of rows in the sink, and the messages that return to the queue.

    left: ids by shard, epoch and reason; without a reason they failed only together with others.
    """

    read: int
    rows: int
    left: "tuple[tuple[str, int, str | None, Sequence[Id]], ...]" = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of one consumer."""

    home: "Path"

    @property
    def of_spark(self) -> "Path":
        """The folder of Spark's checkpoint."""
        return self.home / "spark"

    def name_for(self, table: str, sink: str) -> str:
        """Return the checkpoint's name; a new checkpoint belongs to *table* and *sink* from now on.

        If Spark's own part has no batch, batch numbers start over, so the checkpoint gets a new name. Otherwise a sink would mistake new
        batches for old ones, and their messages would be acknowledged without having been processed.

        Raises:
            RequestError: the folder belongs to another consumer or query.
        """
        card = self.home / "streamfrom.json"
        fix = "give this one a --checkpoint of its own"
        if not card.exists():
            if any((self.home / name).exists() for name in ("metadata", "offsets", "commits")):
                raise RequestError(f"{self.home} is the checkpoint of another query: {fix}")
            told: dict[str, Any] = {"table": table, "sink": sink, "name": uuid.uuid4().hex[:12]}
            written_whole(card, json.dumps(told))
        try:
            told = json.loads(card.read_text())
            theirs = (told["table"], told["sink"])
            name = str(told["name"])
        except (ValueError, LookupError, TypeError) as error:
            raise RequestError(f"{card} is damaged: restore it, or {fix}") from error
        if theirs != (table, sink):
            raise RequestError(
                f"{self.home} is the checkpoint of a consumer of {theirs[0]} into {theirs[1]}, this one"
                f" is of {table} into {sink}: {fix}"
            )
        if not any((self.of_spark / "offsets").glob("[0-9]*")):
            told["name"] = name = uuid.uuid4().hex[:12]
            (self.home / "outcome.json").unlink(missing_ok=True)
            written_whole(card, json.dumps(told))
        return name

    def outcome(self, number: int) -> BatchOutcome | None:
        """Return how batch *number* ended, if it is the last one whose rows the sink has.

        Raises:
            JobError: an earlier version wrote it down.
        """
        path = self.home / "outcome.json"
        try:
            told = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        if told["batch"] != number:
            return None
        if "outcome" in told:
            raise JobError(
                f"{path} is of an earlier version: remove it and run again; rows that are in the table are not written"
                " again"
            )
        return BatchOutcome(told["read"], told["rows"], tuple(map(tuple, told["left"])))

    def keep(self, number: int, outcome: BatchOutcome) -> None:
        """Store the outcome of batch *number* durably."""
        told = json.dumps({"batch": number} | asdict(outcome))
        written_whole(self.home / "outcome.json", told)

    def locked(self) -> "AbstractContextManager[None]":
        """Lock this folder against other consumers. Raises RequestError if another one is running."""
        refusal = f"another consumer works with {self.home}: stop it, or give this one a --checkpoint of its own"
        return locked(self.home, RequestError(refusal))
