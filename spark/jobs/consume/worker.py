"""Process one batch: into the sink or back into the queue, and only then acknowledge it.

    read → work → (isolate) → keep the outcome → publish → acknowledge → commit

If killed anywhere, Spark runs the same batch again: all of it until the checkpoint has its outcome, afterwards only the later steps.
A message is acknowledged when the sink has its results. A failed message returns to the queue, which retries, parks and
moves messages by its own settings.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome
from streamfrom.spark.jobs.consume.function import Function, applied, run_through, told
from streamfrom.spark.jobs.consume.isolation import isolated
from streamfrom.spark.jobs.reading import SHARD


if TYPE_CHECKING:
    from streamfrom.spark.jobs.consume.checkpoint import Checkpoint
    from streamfrom.spark.jobs.consume.sinks import ResultSink
    from streamfrom.spark.jobs.progress import Progress
    from streamfrom.spark.source.claims import ClaimShard
    from streamfrom.spark.source.offsets import Id

PLACE: Final = "streamfrom_place"
_WAIT_MAX_S: Final = 3600.0


@dataclass
class Worker:
    """Processes batches; `failure` is the error with which it gave up.

    retry_s: how long a message waits after its first send failed; each further failure doubles it.
    """

    function: "Function"
    sink: "ResultSink"
    checkpoint: "Checkpoint"
    shards: "dict[str, ClaimShard]"
    progress: "Progress"
    retry_s: float
    counts: Counter[str] = field(default_factory=Counter)
    failure: Exception | None = None
    stopping: Event = field(default_factory=Event)

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Process one batch.

        Raises:
            JobError: it was not completed; run it again.
        """
        try:
            self._work_through(batch, number)
        except Exception as error:
            self.failure = error
            raise

    def wait_s(self, epoch: int) -> float:
        """Return how long a message waits after its *epoch*-th send failed."""
        doublings = min(max(epoch - 1, 0), 30)
        return min(self.retry_s * 2.0**doublings, max(_WAIT_MAX_S, self.retry_s))

    def close(self) -> None:
        """Close the shards' connections."""
        for shard in self.shards.values():
            shard.close()

    def _work_through(self, batch: "DataFrame", number: int) -> None:
        self.progress.enter("read")
        # Read once, however often the function is tried. Leave out messages that others have acknowledged meanwhile.
        messages = batch.filter("time_acked IS NULL").persist()
        try:
            keys = messages.select(SHARD, "id", "epoch").toArrow()
            outcome = self.checkpoint.outcome(number)
            if outcome is None and not len(keys):
                return  # a stream begins with an empty batch if nothing is due
            if outcome is None:
                outcome = self._worked(messages, number, keys)
                self.progress.enter("publish")
                self.checkpoint.keep(number, outcome)
            self.sink.publish(number)
        finally:
            messages.unpersist()
        self.progress.enter("acknowledge")
        self._acknowledge(keys, outcome)
        left = sum(len(ids) for *_, ids in outcome.left)
        # Count in the run that completes the batch, even if little was left to do; a killed run has reported nothing.
        self.counts += Counter(
            read=outcome.read,
            done=outcome.read - left,
            left=left,
            rows_out=outcome.rows,
        )
        left = self.counts["left"]
        self.progress.passed(self.counts["read"], {"left": left} if left else {})
        self.progress.enter("commit")

    def _worked(self, messages: "DataFrame", number: int, keys: pa.Table) -> BatchOutcome:
        """Write a batch to the sink, without the messages that fail."""
        self.progress.enter("work")
        try:
            rows = self.sink.write(number, self._applied(messages))
        except Exception as error:  # noqa: BLE001  a user's function may raise anything
            self.progress.enter("isolate")
            numbered = _numbered(messages, keys).persist()
            try:
                return self._isolated(numbered, number, keys, error)
            finally:
                numbered.unpersist()
        return BatchOutcome(len(keys), rows)

    def _isolated(
        self, numbered: "DataFrame", number: int, keys: pa.Table, error: Exception
    ) -> BatchOutcome:
        """Isolate and write a batch that failed with *error* as a whole."""
        failing = self._failing(numbered, number, len(keys), error)
        good = numbered.filter(~F.col(PLACE).isin(list(failing)))
        try:
            rows = self.sink.write(number, self._applied(good))
        except Exception as again:
            raise JobError(
                f"batch {number} fails even without the {len(failing)} messages that fail by"
                f" themselves: {told(again)}; nothing of it was acknowledged, run it again"
            ) from again
        messages = self._messages(keys)
        left: defaultdict[tuple[str, int, str | None], list[Id]] = defaultdict(list)
        for place, reason in failing.items():
            shard, epoch, ident = messages[place]
            left[shard, epoch, reason].append(ident)
        return BatchOutcome(len(keys), rows, tuple((*at, ids) for at, ids in left.items()))

    def _failing(
        self, numbered: "DataFrame", number: int, count: int, error: Exception
    ) -> dict[int, str | None]:
        """Return the places of the failing messages, as `isolated` does; verify that the messages are the cause.

        Raises:
            JobError: no message fails, or the function fails without messages, or the query is being stopped.
        """

        def failure_of(places: range) -> str | None:
            if self.stopping.is_set():
                raise JobError("stopped in a batch; run it again")
            some = F.col(PLACE).between(places.start, places.stop - 1)
            try:
                run_through(self._applied(numbered.filter(some)))
            except Exception as reason:  # noqa: BLE001  as above
                return told(reason)
            return None

        failing = isolated(count, failure_of)
        if not failing:
            raise JobError(
                f"batch {number} cannot be written: {told(error)}; nothing of it was acknowledged, fix that"
                " and run it again"
            ) from error
        # In a session that is shutting down, everything fails.
        reason = failure_of(range(0))
        if reason is not None:
            raise JobError(
                f"the function fails without any message: {reason}; nothing of the batch was acknowledged,"
                " fix that and run it again"
            )
        return failing

    def _applied(self, messages: "DataFrame") -> "DataFrame":
        return applied(self.function, messages.drop(SHARD, PLACE))

    def _acknowledge(self, keys: pa.Table, outcome: BatchOutcome) -> None:
        staying = {(shard, ident) for shard, _, _, ids in outcome.left for ident in ids}
        done: defaultdict[str, list[Id]] = defaultdict(list)
        for shard, _, ident in self._messages(keys):
            if (shard, ident) not in staying:
                done[shard].append(ident)
        for shard, acked in done.items():
            self.shards[shard].ack(acked)
        for shard, epoch, reason, ids in outcome.left:
            self.shards[shard].put_back(epoch, ids, self.wait_s(epoch), reason)

    def _messages(self, keys: pa.Table) -> "list[tuple[str, int, Id]]":
        """Return shard, epoch and id of each message, by its place."""
        columns = (keys[name].to_pylist() for name in (SHARD, "epoch", "id"))
        return [
            (shard, int(epoch), self.shards[shard].told(ident))
            for shard, epoch, ident in zip(*columns, strict=True)
        ]


def _numbered(messages: "DataFrame", keys: pa.Table) -> "DataFrame":
    """Return *messages* with the place of each among *keys*."""
    places = pa.array(range(len(keys)), pa.int64())
    told_apart = keys.select([SHARD, "id"]).append_column(PLACE, places)
    numbers = F.broadcast(messages.sparkSession.createDataFrame(told_apart))
    return messages.join(numbers, [SHARD, "id"]).select(*messages.columns, PLACE)
