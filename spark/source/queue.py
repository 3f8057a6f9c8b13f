"""The queue as a stream: a batch takes due messages, and they are acknowledged when Spark has committed it.

The claimed ids are in the offset, which Spark writes down before the batch runs, so a batch that failed holds the same messages
again. Spark asks `latestOffset(start)` only when the batch that ended at *start* is committed, so that is where its
acknowledgement begins; it goes on while the next batch is planned and read, and the one after that waits for it. `commit` comes
a batch late and never for the last one; a run that goes on after a crash acknowledges again what `partitions` begins at. One that
dies between the claim and the offset loses nothing: the lease ends and the messages are due again.
With `acknowledge=never` the program that runs the batch acknowledges, by the ids and the shard that each row came from.
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
# How long after an empty look at the queue comes the next.
IDLE_S: Final = 0.1
Found = TypeVar("Found")


class QueueReader(StreamReader):
    """Takes messages on the driver, reads them by id on the executors."""

    def __init__(
        self,
        options: "Options",
        shards: "tuple[str, ...]",
        fields: "Sequence[Field]",
        columns: "Mapping[str, str]",
        shard_place: int | None = None,
    ) -> None:
        """*fields* are read; *columns* are all of the table, with their MySQL types.

        shard_place: the place of the column `SHARD` among the fields; None without it.
        """
        super().__init__(options, shards, fields)
        self.columns = columns
        self.shard_place = shard_place
        # Connections and a thread are made by the process that needs them: Spark pickles a reader.
        self.opened: dict[str, ClaimShard] = {}
        # Apart: a claim of many messages, or an ack that waits for a lock, may take longer than a lease.
        self.opened_to_renew: dict[str, ClaimShard] = {}
        self.renewer: LeaseRenewer | None = None
        # The last batch whose acknowledgement has begun, and that itself until it is over.
        self.acked = 0
        self.acking: Future[None] | None = None
        self.acker: ThreadPoolExecutor | None = None
        # With AvailableNow: what was due on each shard when it began, but for what was taken since.
        self.left: dict[str, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch."""
        return offset_of("queue", self.table, sequence=0, claims={})

    @told_plainly()
    def prepareForTriggerAvailableNow(self) -> None:
        """Note how much is due: no more is taken, however much comes meanwhile."""
        for name in self.shards:
            self.left[name] = self._shard(name).count_due()

    @told_plainly()
    def latestOffset(self, start: "dict[str, Any]", limit: "ReadLimit") -> dict[str, Any]:
        """Claim the next batch, and begin to acknowledge the one that ended at *start*.

        Raises:
            RequestError: the checkpoint is of another query.
            JobError: a shard cannot be reached, and no other has messages; or the batch before could not be acknowledged.
        """
        sequence, before = self._read(start)
        self._settle()
        claims: Claims = {}
        try:
            claims = self._claim(sequence, self.rows_of(limit))
        finally:
            # Not before the claim: servers would do both at once, and this can wait.
            self._ack(sequence, before)
            if not claims:
                self._settle()  # there may be no other time
        if not claims:
            if not self.left:
                # Spark asks again at once, a hundred times a second.
                time.sleep(IDLE_S)
            return start
        self._renewer().hold(claims)
        return offset_of("queue", self.table, sequence=sequence + 1, claims=claims)

    def _claim(self, turn: int, room: int) -> "Claims":
        """Claim at most *room*; each shard has an equal share, and takes over what others left of theirs."""
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
        """Return what *work* says for each shard with what it is given; their servers work side by side."""
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
            # From before this process: the lease may be over, and is ours again if no other consumer took them.
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
        """Yield a part's rows, with their shard where it is asked for."""
        for batch in super().read(partition):
            if self.shard_place is None:
                yield batch
            else:
                assert isinstance(partition, TablePartition)
                shards = pa.repeat(pa.scalar(partition.shard), batch.num_rows)
                yield batch.add_column(self.shard_place, SHARD, shards)

    @told_plainly()
    def commit(self, end: "dict[str, Any]") -> None:
        """Begin to acknowledge the batch that ended at *end*, if that did not happen yet."""
        self._ack(*self._read(end))

    def stop(self) -> None:
        """Hold nothing any more. What a batch had that did not end is read again after a restart."""
        if self.acker is not None:
            self.acker.shutdown()
        if self.renewer is not None:
            self.renewer.stop()
        for shard in (*self.opened.values(), *self.opened_to_renew.values()):
            shard.close()

    def _ack(self, sequence: int, claims: "Claims") -> None:
        """Begin to acknowledge the batch with the number *sequence*, unless that was begun before; `_settle` waits for it."""
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
        """Wait until what was begun to be acknowledged is.

        Raises:
            JobError: it could not be; the batch counts as not acknowledged.
        """
        acking, self.acking = self.acking, None
        if acking is not None:
            try:
                acking.result()
            except BaseException:
                self.acked -= 1
                raise

    def _read(self, told: "dict[str, Any]") -> "tuple[int, Claims]":
        """Return an offset's number and claims; JSON has made texts of the epochs."""
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
    """Divide *room* equally: the first shards get the remainder, one each, and a shard without a share is left out."""
    each, more = divmod(room, len(names))
    shares = {name: each + (place < more) for place, name in enumerate(names)}
    return {name: share for name, share in shares.items() if share}
