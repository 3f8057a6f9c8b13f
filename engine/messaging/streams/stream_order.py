"""The order in which a stream was sent the messages that it holds, and how far its consumer has come. Pure.

``vt_ack_wait`` is the time that a consumer has for one message, not for everything it was sent. A consumer reads ahead, so
the leases of messages it has not reached follow its *progress*: an ack, a reschedule, a heartbeat or a deletion of a message that
the stream holds.

* A message is leased until its stream's last progress + its own wait, as long as no message sent after it has made progress.
* Then it is *overtaken*: it keeps its lease, and later progress does not extend it.

A stream's progress costs nothing per message. Messages that were sent together on one shard are a `Batch`; its leases
are read as later than stored (`Batch.lag_ns`), and are brought up to date together, once, before the first of
them would end. Over all shards a stream has one order and one progress.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName


# Stands for the unknown stream of a former dispatcher; no receiver has this number.
NOBODY: Final = 0


@dataclass(slots=True, eq=False)
class Batch:
    """Messages of one shard that one stream was sent together, in the order of sending.

    row: the position of the first of them among all rows that the stream was sent from here, counted from 0.
    ends_ns: the ends of the leases by id, as rows show them or soon will, without later progress.
    base_ns: the progress that is in them.
    overtaken_ns: the last progress that counts for them; None while that is their stream's.
    look_ns: when to look at the leases together; 0 while they are looked at one by one.
    """

    stream: StreamOrder
    shard: ShardName
    ends_ns: dict[bytes, int]
    sent_ns: int
    base_ns: int
    overtaken_ns: int | None = None
    row: int = 0
    look_ns: int = 0

    @property
    def lag_ns(self) -> int:
        """Return how much later than `ends_ns` the leases end."""
        progress_ns = self.overtaken_ns
        if progress_ns is None:
            progress_ns = self.stream.progress_ns
        # However long a claim took, and whatever else the stream held: the wait starts when the message is delivered.
        progress_ns = max(progress_ns, self.sent_ns)
        return progress_ns - self.base_ns if progress_ns > self.base_ns else 0

    def clock_set_back(self, idents: Iterable[bytes], by_ns: int) -> None:
        """Move times that were planned by the former clock; the ends of *idents* are known."""
        for ident in idents:
            self.ends_ns[ident] -= by_ns
        self.sent_ns -= by_ns
        if self.base_ns < FOREVER_NS:
            self.base_ns -= by_ns
        if self.overtaken_ns is not None:
            self.overtaken_ns -= by_ns

    def passed(self, ident: bytes) -> Batch | None:
        """Take out messages that were sent before *ident*, and are thereby overtaken; None if there are none."""
        ends_ns = self.ends_ns
        if self.overtaken_ns is not None or next(iter(ends_ns)) == ident:
            return None
        passed: dict[bytes, int] = {}
        for one, end_ns in ends_ns.items():
            if one == ident:
                break
            passed[one] = end_ns
        for one in passed:
            del ends_ns[one]
        progress_ns = self.stream.progress_ns
        return Batch(
            self.stream, self.shard, passed, self.sent_ns, self.base_ns, progress_ns, self.row
        )

    def behind(self, ident: bytes) -> Batch | None:
        """Take out messages that were sent after *ident*; None if there are none."""
        idents = [*self.ends_ns]
        ends_ns = {one: self.ends_ns.pop(one) for one in idents[idents.index(ident) + 1 :]}
        if not ends_ns:
            return None
        return replace(self, ends_ns=ends_ns, look_ns=0)


class StreamOrder:
    """The messages of one stream, over all shards.

    batches: its batches, in the order of sending.
    unreached: those of them that are not overtaken.
    progress_ns: when it last made progress.
    expiring: batches that end soon unless the stream makes progress before.
    is_over: nothing counts as progress, because its connection has ended and its messages soon go to others.
    """

    __slots__ = ("batches", "expiring", "is_over", "progress_ns", "receiver", "unreached")

    def __init__(self, receiver: int) -> None:
        self.receiver = receiver
        self.batches: dict[Batch, None] = {}
        self.progress_ns = 0
        self.is_over = receiver == NOBODY
        self.expiring: list[Batch] = []
        self.unreached: OrderedDict[Batch, None] = OrderedDict()

    def put(self, alone: Batch, batch: Batch, behind: Batch | None, *, is_first: bool) -> None:
        """Make a message that stands *alone* now the first in progress, or keep its place in *batch*.

        behind: the messages of *batch* that were sent after it.
        """
        unreached = self.unreached
        if alone.overtaken_ns is not None:
            return
        unreached[alone] = None
        if behind is not None:
            unreached[behind] = None
        # The order in which a former dispatcher sent messages is not known.
        if batch.base_ns == FOREVER_NS:
            return
        if is_first:
            unreached.move_to_end(alone, last=False)
            return
        after = list(unreached)
        for one in after[after.index(batch) + 1 : after.index(alone)]:
            unreached.move_to_end(one)

    def progressed(self, now_ns: int) -> None:
        """Note progress."""
        if not self.is_over:
            self.progress_ns = max(self.progress_ns, now_ns)

    def reached(self, batch: Batch, before_ns: int) -> None:
        """Let everything be overtaken that was sent before *batch*; *before_ns* was the last progress until then."""
        unreached = self.unreached
        if batch not in unreached:
            return
        while (first := next(iter(unreached))) is not batch:
            first.overtaken_ns = before_ns
            del unreached[first]

    def passed_by(self, rows: int, before_ns: int) -> None:
        """Let everything be overtaken of the first *rows*; *before_ns* was the last progress until then."""
        unreached = self.unreached
        while unreached and (first := next(iter(unreached))).row < rows:
            first.overtaken_ns = before_ns
            del unreached[first]


class Streams:
    """The order of all streams of one table that hold messages, by receiver.

    wait_ns: the wait of messages that a former dispatcher sent, which only their rows show.
    renewable: batches whose leases are to be brought up to date.
    attached: the open streams.
    reporting: others dispatch to some streams too, so progress is reported.
    progressed: the rows in whose batches streams have made progress since the last report, by receiver.
    """

    def __init__(self, wait_ns: int = 0) -> None:
        self.wait_ns = wait_ns
        self.renewable: list[Batch] = []
        self.attached: Container[int] = ()
        self.reporting = False
        self.progressed: dict[int, int] = {}
        self._orders: dict[int, StreamOrder] = {}

    def clock_set_back(self, by_ns: int) -> None:
        """Count progress by the new clock from now on."""
        for stream in self._orders.values():
            stream.progress_ns -= by_ns

    def get(self, receiver: int) -> StreamOrder | None:
        """Return the order of a stream's messages; None if it holds none."""
        return self._orders.get(receiver)

    def sent(
        self,
        receiver: int,
        shard: ShardName,
        ends_ns: dict[bytes, int],
        sent_ns: int,
        base_ns: int,
        row: int = 0,
    ) -> Batch:
        """Note that a stream is sent messages, the first of which is *row* of its rows."""
        stream = self._orders.get(receiver)
        if stream is None:
            stream = self._orders[receiver] = StreamOrder(receiver)
            if base_ns < FOREVER_NS:  # not from a former dispatcher
                stream.progressed(sent_ns)
        batch = Batch(stream, shard, ends_ns, sent_ns, base_ns, row=row)
        stream.unreached[batch] = None
        return batch

    def alone(
        self, batch: Batch, ident: bytes, until_ns: int, now_ns: int, *, follows: bool
    ) -> Batch:
        """Move a message from *batch* into a batch of its own, and make its lease end at *until_ns*.

        now_ns: this moment if the message itself makes progress.
        follows: later progress extends the lease.
        """
        stream = batch.stream
        is_known = batch.base_ns < FOREVER_NS
        end_ns = batch.ends_ns.pop(ident)
        wait_ns = end_ns - batch.base_ns if is_known else self.wait_ns
        overtaken_ns = batch.overtaken_ns
        if overtaken_ns is not None:
            overtaken_ns = max(overtaken_ns, now_ns)
        return Batch(
            stream,
            batch.shard,
            {ident: until_ns},
            # Only its row shows when a former dispatcher sent it.
            batch.sent_ns if is_known else min(batch.sent_ns, until_ns - wait_ns),
            until_ns - wait_ns if follows else FOREVER_NS,
            overtaken_ns,
            batch.row,
        )

    def reached(self, batches: Collection[Batch], now_ns: int, *, renews: bool = True) -> None:
        """Note progress in *batches*, all at the same moment.

        renews: bring leases that would end soon up to date at once.
        """
        before_ns = [batch.stream.progress_ns for batch in batches]
        for batch, ns in zip(batches, before_ns, strict=True):
            stream = batch.stream
            stream.progressed(now_ns)
            stream.reached(batch, ns)
            if renews:
                self._expires_not(stream)
            if self.reporting:
                row = self.progressed.get(stream.receiver, 0)
                self.progressed[stream.receiver] = max(row, batch.row)

    def progressed_by(self, receiver: int, now_ns: int) -> None:
        """Note progress with messages that a stream no longer holds."""
        if (stream := self._orders.get(receiver)) is not None:
            stream.progressed(now_ns)
            self._expires_not(stream)

    def reached_elsewhere(self, receiver: int, rows: int, now_ns: int) -> None:
        """Note progress with messages that another process sent to a stream, after the first *rows* from here."""
        if (stream := self._orders.get(receiver)) is not None:
            before_ns = stream.progress_ns
            stream.progressed(now_ns)
            stream.passed_by(rows, before_ns)
            self._expires_not(stream)

    def _expires_not(self, stream: StreamOrder) -> None:
        if stream.expiring:
            self.renewable += stream.expiring
            stream.expiring = []

    def gone(self, batch: Batch) -> None:
        """Note that a stream holds nothing of *batch* any more."""
        stream = batch.stream
        del stream.batches[batch]
        stream.unreached.pop(batch, None)
        if not stream.batches:
            del self._orders[stream.receiver]
