"""One stream between two members, from both of its ends. Pure: messages to send go to a function.

At the dispatcher it is a `Receiver` like any other, whose rows spend credit. At the member that has the
client its rows go into the client's own receiver, together with those that are dispatched there.

Rows of a stream are numbered in the order in which they are sent. The member that has the client reports how many
its socket has taken, always as the total, so a report that is lost, doubled or late does no harm.
Rows that are sent and not reported are *away*; more is sent only while these are below WINDOW_BYTES. So a
stalled consumer holds back only its own rows, as the flow control of HTTP/2 does for
bytes, but by what the client took and not by what some buffer took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import EngineError
from streamfrom.engine.fleet import peer_link
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.table.message import PeerRow, receiver_numbers


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClaimedRow, Receiver, RowOfStream
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


# A millisecond or two of small rows for a fast consumer; a large row goes alone.
WINDOW_BYTES: Final = 256 << 10
# The overhead of a row in its message, without the bytes that the client gets.
ROW_BYTES: Final = 64


class RowsMissing(EngineError):
    """Rows of a stream between members were lost on the way, so the stream begins again."""


class RowsAway:
    """The dispatcher's side of one stream."""

    def __init__(self, window_bytes: int = WINDOW_BYTES) -> None:
        self._window_bytes = window_bytes
        self._rows: deque[ClaimedRow] = deque()
        self._bytes = 0
        self._taken = 0

    @property
    def has_credit(self) -> bool:
        """True while more may be sent; the last batch may exceed the window."""
        return self._bytes < self._window_bytes

    def send(self, rows: Sequence[ClaimedRow]) -> int:
        """Count *rows* as away and return the number of the first one."""
        first = self._taken + len(self._rows)
        self._rows += rows
        self._bytes += sum(_size(row.payload) for row in rows)
        return first

    def reported(self, taken: int) -> bool:
        """Process how many rows the client's socket has taken; return whether there is credit again.

        Raises:
            RowsMissing: it has taken more than it was sent.
        """
        if taken > self._taken + len(self._rows):
            raise RowsMissing("a member reports rows that it was not sent")
        had_credit = self.has_credit
        while self._taken < taken:
            self._bytes -= _size(self._rows.popleft().payload)
            self._taken += 1
        return self.has_credit and not had_credit

    def unsent(self, taken: int) -> tuple[ClaimedRow, ...]:
        """Return the rows that the client never got, by the last report of a stream that is over.

        Raises:
            RowsMissing: as `reported`.
        """
        self.reported(taken)
        return tuple(self._rows)


def _size(payload: bytes) -> int:
    return len(payload) + ROW_BYTES


# The most ids per shard that the next dispatcher gets for a stream without a prefetch.
HELD_REPORTED_MAX: Final = 10_000
_TYPES: Final = attrgetter("types")


class RemoteReceiver:
    """The dispatcher's end: `engine.messaging.table.message.Receiver` for a client of another member.

    held_by: returns the messages it holds.
    away: its rows that are on their way.
    """

    def __init__(
        self,
        opened: peer_link.OpenStream,
        send: Callable[[peer_link.FromDispatcher], None],
        held_by: Callable[[Receiver], Mapping[ShardName, tuple[bytes, ...]]],
    ) -> None:
        self.id = -next(receiver_numbers)
        self.opened = opened
        self.shards: frozenset[ShardName] | None = frozenset(opened.shards)
        self.keys = None if opened.keys is None else frozenset(opened.keys)
        self.columns = opened.columns
        self.prefetch = opened.prefetch
        self.window_first = opened.window_first
        self.rows_max = opened.rows_max
        self.connection_id = opened.connection_id
        self.away = RowsAway()
        self._send = send
        self._held_by = held_by
        send(peer_link.RowsSent(opened.receiver, 0, ()))

    def deliver(self, rows: Sequence[ClaimedRow]) -> bool:
        """Send *rows*; False when the client has to take some before there are more."""
        # All of one batch have one type, unless an ALTER came between the statements of a claim.
        for types, part in groupby(rows, _TYPES):
            sent = tuple(part)
            payloads = tuple(row.payload for row in sent)
            self._send(
                peer_link.RowsSent(self.opened.receiver, self.away.send(sent), payloads, types)
            )
        return self.away.has_credit

    def end(self, error: StreamfromError) -> None:
        """Report to the other member that it must find another dispatcher, with the facts that one needs."""
        held = {shard: ids[:HELD_REPORTED_MAX] for shard, ids in self._held_by(self).items()}
        self._send(peer_link.StreamEnded(self.opened.receiver, str(error), held))

    def finish(self) -> None:
        """Report that the stream has all its rows."""
        self._send(events.Finish(self.opened.receiver))

    def report(self, found: events.StreamReport) -> None:
        """Report to the member with the client, which sees by itself when rows come."""
        if not isinstance(found, events.Deliver):
            self._send(replace(found, receiver=self.opened.receiver))


class StreamElsewhere:
    """The end of the member that has the client.

    Attributes:
        number: of the stream, on its link.
        shards: the shards whose messages it brings.
        is_served: the dispatcher has taken it.
        is_finished: it has an end, and the dispatcher has given its due rows.
    """

    def __init__(
        self, number: int, shards: frozenset[ShardName], window_bytes: int = WINDOW_BYTES
    ) -> None:
        self.number = number
        self.shards = shards
        self.is_served = self.is_finished = False
        self._report_bytes = window_bytes // 4
        self._received = self._unreported = self._refused = 0

    def receive(self, message: peer_link.RowsSent) -> list[PeerRow]:
        """Return the new rows of *message* for the client.

        Raises:
            RowsMissing: rows before it never came.
        """
        if message.first > self._received:
            raise RowsMissing("rows of a stream were lost between two members")
        new = message.payloads[self._received - message.first :]
        self._received += len(new)
        self._unreported += sum(map(_size, new))
        return [PeerRow(payload, self.number, message.types) for payload in new]

    def refused(self, rows: int) -> None:
        """Note that the client's receiver, which is gone, did not take the last *rows*."""
        self._refused += rows

    def taken(self) -> peer_link.RowsTaken | None:
        """Return the report for when the client's socket has taken everything, once that is a quarter of the window."""
        if self._unreported < self._report_bytes:
            return None
        self._unreported = 0
        return peer_link.RowsTaken(self.number, self._received)

    def closed(self, unsent: Sequence[RowOfStream]) -> peer_link.CloseStream:
        """Return the end of the stream. unsent: rows that the client's receiver was given and never sent."""
        waiting = sum(isinstance(row, PeerRow) and row.stream == self.number for row in unsent)
        return peer_link.CloseStream(self.number, self._received - self._refused - waiting)
