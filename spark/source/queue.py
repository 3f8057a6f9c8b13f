"""The queue as a stream: a batch claims due messages, which are acknowledged once Spark has committed it.

The offset contains the claimed ids, and Spark stores it before the batch runs, so a failed batch holds the same messages
again. Spark calls `latestOffset(start)` only when the batch that ended at *start* is committed, so its acknowledgement starts
there; it continues while the next batch is planned and read, and the one after that waits for it. `commit` comes
a batch late, and never for the last one; a run that continues after a crash acknowledges again the batch before its first `partitions`. A run that
dies between the claim and the offset loses nothing: the lease ends and the messages are due again.
With `acknowledge=never`, the program that runs the batch acknowledges, by the ids and the shard that each row came from.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.reading import SHARD
from streamfrom.spark.source.batch import StreamReader, TablePartition, told_plainly
from streamfrom.spark.source.claims import ClaimShard, LeaseRenewer
from streamfrom.spark.source.offsets import Claims, Id, by_shard, offset_of


if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

    from streamfrom.spark.source.options import Options
    from streamfrom.spark.table_schema import Field

PART_ROWS: Final = 5000
# How long to wait after finding the queue empty.
IDLE_S: Final = 0.1
Found = TypeVar("Found")


class QueueReader(StreamReader):
    """Claims messages on the driver and reads them by id on the executors."""

    def __init__(
        self,
        options: "Options",
        shards: "tuple[str, ...]",
        fields: "Sequence[Field]",
        columns: "Mapping[str, str]",
        shard_place: int | None = None,
    ) -> None:
        """Read *fields*; *columns* are all columns of the table, with their MySQL types.

        shard_place: the place of the column `SHARD` among the fields; None without it.
        """
        super().__init__(options, shards, fields)
        self.columns = columns
        self.shard_place = shard_place
        # Spark pickles a reader, so each process creates its own connections and threads when needed.
        self.opened: dict[str, ClaimShard] = {}
        # Apart: a claim of many messages, or an ack that waits for a lock, may take longer than a lease.
        self.opened_to_renew: dict[str, ClaimShard] = {}
        self.renewer: LeaseRenewer | None = None
        # The last batch whose acknowledgement has begun, and that acknowledgement while it runs.
        self.acked = 0
        self.acking: Future[None] | None = None
        self.acker: ThreadPoolExecutor | None = None
        # With AvailableNow: the messages on each shard that were due at the start and are not claimed yet.
        self.left: dict[str, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch."""
        return offset_of("queue", self.table, sequence=0, claims={})

    @told_plainly()
    def prepareForTriggerAvailableNow(self) -> None:
        """Record how many messages are due, as the limit for this run."""
        for name in self.shards:
            self.left[name] = self._shard(name).count_due()

    @told_plainly()
    def latestOffset(self, start: "dict[str, Any]", limit: "ReadLimit") -> dict[str, Any]:
        """Claim the next batch, and begin to acknowledge the one that ended at *start*.

        Raises:
            RequestError: the checkpoint belongs to another query.
            JobError: a shard is unreachable and no other has messages, or the previous batch could not be acknowledged.
        """
        sequence, before = self._read(start)
        self._settle()
        claims: Claims = {}
        try:
            claims = self._claim(sequence, self.rows_of(limit))
        finally:
            # After the claim: servers would do both at once, and this can wait.
            self._ack(sequence, before)
            if not claims:
                self._settle()  # this may be the last call
        if not claims:
            if not self.left:
                # Spark calls this again at once, a hundred times a second.
                time.sleep(IDLE_S)
            return start
        self._renewer().hold(claims)
        return offset_of("queue", self.table, sequence=sequence + 1, claims=claims)

    def _claim(self, turn: int, room: int) -> "Claims":
        """Claim up to *room* messages; each shard has an equal share, and takes over the unused shares of others."""
        first = turn % len(self.shards)
        asked = list(self.shards[first:] + self.shards[:first])
        claims: Claims = {}
        failures: list[JobError] = []
        while room and (asked := [name for name in asked if self.left.get(name, 1)]):
            shares = {
                name: min(share, self.left.get(name, share))
                for name, share in shares_of(room, asked).items()
            }
            for name, won in self._at_once(self._claimed, shares).items():
                taken = 0
                if isinstance(won, JobError):
                    failures.append(won)
                else:
                    for epoch, ids in won.items():
                        taken += len(ids)
                        claims.setdefault(name, {}).setdefault(epoch, []).extend(ids)
                room -= taken
                if name in self.left:
                    self.left[name] = self.left[name] - taken if taken else 0
                if taken < shares[name]:
                    asked.remove(name)
        if failures and not claims:
            raise failures[0]
        return claims

    def _claimed(self, name: str, share: int) -> "dict[int, list[Id]] | JobError":
        try:
            return self._shard(name).claim(share, self.options.lease_s)
        except JobError as error:
            return error

    def _at_once(
        self, work: "Callable[[str, Any], Found]", given: "Mapping[str, Any]"
    ) -> "dict[str, Found]":
        """Call *work* for each shard with its value in *given*, in parallel; return the results."""
        with ThreadPoolExecutor(len(self.shards)) as threads:
            return dict(zip(given, threads.map(work, given, given.values()), strict=True))

    @told_plainly()
    def partitions(
        self, start: "dict[str, Any]", end: "dict[str, Any]"
    ) -> "Sequence[TablePartition]":
        """Return the parts of the batch that ends at *end*, which may run again after a failure."""
        self._ack(*self._read(start))
        _, claims = self._read(end)
        renewer = self._renewer()
        if not renewer.holds(claims):
            # Claimed by an earlier process: the lease may be over, but is renewed if no other consumer has claimed them.
            renewer.hold(claims)
            renewer.renew_all()
        found = []
        for name, by_epoch in claims.items():
            ids = [ident for some in by_epoch.values() for ident in some]
            for low in range(0, len(ids), PART_ROWS):
                condition, values = self._shard(name).where_ids(ids[low : low + PART_ROWS])
                found.append(TablePartition(name, condition, values))
        return found

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Yield a part's rows, with their shard if requested."""
        for batch in super().read(partition):
            if self.shard_place is None:
                yield batch
            else:
                assert isinstance(partition, TablePartition)
                shards = pa.repeat(pa.scalar(partition.shard), batch.num_rows)
                yield batch.add_column(self.shard_place, SHARD, shards)

    @told_plainly()
    def commit(self, end: "dict[str, Any]") -> None:
        """Begin to acknowledge the batch that ended at *end*, if that has not happened yet."""
        self._ack(*self._read(end))

    def stop(self) -> None:
        """Release all leases and connections. An unfinished batch is read again after a restart."""
        if self.acker is not None:
            self.acker.shutdown()
        if self.renewer is not None:
            self.renewer.stop()
        for shard in (*self.opened.values(), *self.opened_to_renew.values()):
            shard.close()

    def _ack(self, sequence: int, claims: "Claims") -> None:
        """Begin to acknowledge the batch with the number *sequence*, unless that has begun; `_settle` waits for it."""
        if sequence <= self.acked:
            return
        self._settle()
        if self.acker is None:
            self.acker = ThreadPoolExecutor(1)
        self.acked = sequence
        self.acking = self.acker.submit(self._acknowledge, claims)

    def _acknowledge(self, claims: "Claims") -> None:
        if self.options.acknowledge == "commit":
            self._at_once(
                lambda name, by_epoch: self._shard(name).ack([*chain(*by_epoch.values())]),
                claims,
            )
        self._renewer().let_go(claims)

    def _settle(self) -> None:
        """Wait until the acknowledgement that was begun is complete.

        Raises:
            JobError: it failed; the batch counts as not acknowledged.
        """
        acking, self.acking = self.acking, None
        if acking is not None:
            try:
                acking.result()
            except BaseException:
                self.acked -= 1
                raise

    def _read(self, told: "dict[str, Any]") -> "tuple[int, Claims]":
        """Return an offset's number and claims; JSON has turned the epochs into texts."""
        claims = by_shard(told, "queue", self.table, self.shards, "claims")
        return told["sequence"], {
            shard: {int(epoch): ids for epoch, ids in by_epoch.items()}
            for shard, by_epoch in claims.items()
        }

    def _shard(self, name: str) -> ClaimShard:
        return self._among(self.opened, name)

    def _shard_to_renew(self, name: str) -> ClaimShard:
        return self._among(self.opened_to_renew, name)

    def _among(self, opened: "dict[str, ClaimShard]", name: str) -> ClaimShard:
        if name not in opened:
            new = ClaimShard(self.options.endpoint, name, self.options.table, self.columns)
            opened.setdefault(name, new)  # another thread may be here too
        return opened[name]

    def _renewer(self) -> LeaseRenewer:
        if self.renewer is None:
            self.renewer = LeaseRenewer(self._shard_to_renew, self.options.lease_s)
        return self.renewer


def shares_of(room: int, names: "Sequence[str]") -> dict[str, int]:
    """Divide *room* equally; the first shards get one more each for the remainder, and shards without a share are left out."""
    each, more = divmod(room, len(names))
    shares = {name: each + (place < more) for place, name in enumerate(names)}
    return {name: share for name, share in shares.items() if share}
