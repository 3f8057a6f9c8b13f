"""What happens to one batch: into the sink, aside or back into the queue, and only then acknowledged.

    read → work → (isolate → dead letter) → publish → acknowledge → commit

Killed anywhere, Spark runs the same batch again: until it is published all of it, afterwards the acknowledging alone.
A message is acknowledged when the sink has what the function made of it, or the dead letters have the message.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome
from streamfrom.spark.jobs.consume.function import Function, applied, run_through, told
from streamfrom.spark.jobs.consume.isolation import IsolatedFailures, isolated
from streamfrom.spark.jobs.consume.sinks import ERROR
from streamfrom.spark.jobs.reading import SHARD


if TYPE_CHECKING:
    from streamfrom.spark.jobs.consume.sinks import DeadTable, FolderSink, ResultSink
    from streamfrom.spark.jobs.progress import Progress
    from streamfrom.spark.source.claims import ClaimShard
    from streamfrom.spark.source.offsets import Claims

PLACE: Final = "streamfrom_place"
_WAIT_MAX_S: Final = 3600.0


@dataclass
class Worker:
    """Works through batches; `failure` says why it gave up.

    max_attempts: the number of sends after which a message that fails by itself is put aside.
    retry_s: how long a message waits that failed after its first send; twice as long after each further one.
    """

    function: "Function"
    sink: "ResultSink"
    dead_letters: "FolderSink | DeadTable | None"
    shards: "dict[str, ClaimShard]"
    progress: "Progress"
    max_attempts: int
    retry_s: float
    counts: Counter[str] = field(default_factory=Counter)
    failure: Exception | None = None
    stopping: Event = field(default_factory=Event)

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Work through one batch.

        Raises:
            JobError: it did not end; running it again is right.
        """
        try:
            self._work_through(batch, number)
        except Exception as error:
            self.failure = error
            raise

    def wait_s(self, epoch: int) -> float:
        """Return how long a message waits that failed when it was sent for the *epoch*-th time."""
        doublings = min(max(epoch - 1, 0), 30)
        return min(self.retry_s * 2.0**doublings, max(_WAIT_MAX_S, self.retry_s))

    def close(self) -> None:
        """Let the shards' connections go."""
        for shard in self.shards.values():
            shard.close()

    def _work_through(self, batch: "DataFrame", number: int) -> None:
        self.progress.enter("read")
        # Read once, however often the function looks. What others have acknowledged meanwhile is theirs.
        messages = batch.filter("time_acked IS NULL").persist()
        try:
            keys = messages.select(SHARD, "id", "epoch").toArrow()
            outcome = self.sink.outcome(number)
            if outcome is None and not len(keys):
                return  # a stream begins with a batch of nothing where nothing is due
            if outcome is None:
                outcome = self._worked(messages, number, keys)
        finally:
            messages.unpersist()
        self.progress.enter("acknowledge")
        self._acknowledge(keys, outcome)
        left = sum(len(ids) for some in outcome.left.values() for ids in some.values())
        # By the run that ends it, which may find little to do: one that was killed has reported nothing.
        self.counts += Counter(
            read=outcome.read,
            done=outcome.read - outcome.dead - left,
            dead_lettered=outcome.dead,
            left=left,
            rows_out=outcome.rows,
        )
        some = {name: self.counts[name] for name in ("dead_lettered", "left")}
        self.progress.passed(self.counts["read"], {k: n for k, n in some.items() if n})
        self.progress.enter("commit")

    def _worked(self, messages: "DataFrame", number: int, keys: pa.Table) -> BatchOutcome:
        """Bring a batch into the sink without what fails, and that where it belongs."""
        self.progress.enter("work")
        try:
            rows = self.sink.write(number, self._applied(messages))
        except Exception as error:  # noqa: BLE001  a user's function raises what it likes
            self.progress.enter("isolate")
            numbered = _numbered(messages, keys).persist()
            try:
                return self._isolated(numbered, number, keys, error)
            finally:
                numbered.unpersist()
        if self.dead_letters is not None:
            self.dead_letters.put(number, None)
        return self._published(number, BatchOutcome(len(keys), rows))

    def _isolated(
        self, numbered: "DataFrame", number: int, keys: pa.Table, error: Exception
    ) -> BatchOutcome:
        """Do the same for a batch that failed with *error* as a whole."""
        failing = self._verdict(numbered, number, len(keys), error)
        dead: dict[int, str] = {}
        if self.dead_letters is not None:
            epochs = keys["epoch"].to_pylist()
            dead = {
                place: reason
                for place, reason in failing.alone.items()
                if epochs[place] >= self.max_attempts
            }
        good = numbered.filter(~F.col(PLACE).isin(list(failing.all)))
        try:
            rows = self.sink.write(number, self._applied(good))
        except Exception as again:
            raise JobError(
                f"batch {number} fails even without the {len(failing.all)} messages that fail by"
                f" themselves: {told(again)}; nothing of it was acknowledged, run it again"
            ) from again
        if self.dead_letters is not None:
            self.progress.enter("dead letter")
            self.dead_letters.put(number, _with_reasons(numbered, dead) if dead else None)
        left = [place for place in failing.all if place not in dead]
        return self._published(
            number, BatchOutcome(len(keys), rows, len(dead), self._claims(keys, left))
        )

    def _published(self, number: int, outcome: BatchOutcome) -> BatchOutcome:
        self.progress.enter("publish")
        self.sink.publish(number, outcome)
        return outcome

    def _verdict(
        self, numbered: "DataFrame", number: int, count: int, error: Exception
    ) -> "IsolatedFailures":
        """Say which messages fail, after making sure that it is them.

        Raises:
            JobError: no message fails, or the function fails without any, or the query is being stopped.
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

        verdict = isolated(count, failure_of)
        if not verdict.all:
            raise JobError(
                f"batch {number} cannot be written: {told(error)}; nothing of it was acknowledged, fix that"
                " and run it again"
            ) from error
        # A session that is going away fails on anything.
        reason = failure_of(range(0))
        if reason is not None:
            raise JobError(
                f"the function fails without any message: {reason}; nothing of the batch was acknowledged,"
                " fix that and run it again"
            )
        return verdict

    def _applied(self, messages: "DataFrame") -> "DataFrame":
        return applied(self.function, messages.drop(SHARD, PLACE))

    def _acknowledge(self, keys: pa.Table, outcome: BatchOutcome) -> None:
        staying = {
            (shard, ident)
            for shard, by_epoch in outcome.left.items()
            for ids in by_epoch.values()
            for ident in ids
        }
        for name, by_epoch in self._claims(keys, range(len(keys))).items():
            done = {
                epoch: [ident for ident in ids if (name, ident) not in staying]
                for epoch, ids in by_epoch.items()
            }
            self.shards[name].ack(done)
        for name, by_epoch in outcome.left.items():
            self.shards[name].put_back(by_epoch, self.wait_s)

    def _claims(self, keys: pa.Table, places: "Iterable[int]") -> "Claims":
        some = keys.take(pa.array(places, pa.int64()))
        claims: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
        columns = (some[name].to_pylist() for name in (SHARD, "id", "epoch"))
        for shard, ident, epoch in zip(*columns, strict=True):
            claims[shard][int(epoch)].append(self.shards[shard].told(ident))
        return {shard: dict(by_epoch) for shard, by_epoch in claims.items()}


def _numbered(messages: "DataFrame", keys: pa.Table) -> "DataFrame":
    """Return *messages* with each one's place among *keys*."""
    places = pa.array(range(len(keys)), pa.int64())
    told_apart = keys.select([SHARD, "id"]).append_column(PLACE, places)
    numbers = F.broadcast(messages.sparkSession.createDataFrame(told_apart))
    return messages.join(numbers, [SHARD, "id"]).select(*messages.columns, PLACE)


def _with_reasons(numbered: "DataFrame", dead: dict[int, str]) -> "DataFrame":
    """Return the messages at the places of *dead*, with what each one fails with."""
    reasons = numbered.sparkSession.createDataFrame(
        list(dead.items()), f"{PLACE} bigint, {ERROR} string"
    )
    return numbered.join(F.broadcast(reasons), PLACE).drop(PLACE)
