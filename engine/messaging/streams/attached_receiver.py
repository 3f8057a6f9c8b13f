"""A receiver as its table's scheduler sees it, and how rows are divided among receivers.

**When a receiver is served.** A message never waits while a receiver has room for it, with one
exception: a receiver that still holds more than half of its prefetch, and whose room is less than
a batch and less than the number of due messages, lets room gather for GATHER_NS. Otherwise a consumer that
acks its messages one by one would cause a claim, and so a commit, for each ack. Waiting costs that consumer nothing: it has
half a prefetch to work on. A lone message always fits, and is sent at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.streams.prefetch_window import FIRST


if TYPE_CHECKING:
    from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
    from streamfrom.engine.sharding.keyspace import ShardName


# A few commits of a durable server: acks that arrive within it share one claim.
GATHER_NS: Final = 10 * 10**6
# The room of a receiver without a limit: no claim is as large.
UNLIMITED: Final = 1 << 31


@dataclass(slots=True)
class AttachedReceiver:
    """One open stream.

    shards, columns, prefetch, keys, window_first: as in `engine.messaging.table.message.Receiver`.
    limit: how many messages the stream may hold; 0 for no limit.
    window: sets the limit of a stream whose prefetch is `auto`; None for others.
    held: how many messages the stream holds: sent, and neither acked nor due again.
    sent: how many messages the stream was sent since it began.
    is_reserved: a claim for the stream is under way.
    has_batch: a batch was delivered, and the stream's socket has not taken it yet.
    gathering_since_ns: when due messages began to wait for the stream to have more room.
    full_since_ns: since when the prefetch is full without an ack.
    is_reported: it was logged that the stream is full and acks nothing.
    rows_left: how many more rows the stream takes before it ends; None for a stream without end.
    has_rows_elsewhere: other dispatchers have sent rows to the stream, which has an end.
    share: how many messages of this process the stream may hold; None for no limit of its own.
    next_share: the share from the end of the current claim on; None if the share stays.
    owes_answer: the member with the client must be notified how many messages the stream holds, until they fit the share.
    has_wanted: the member with the client was notified that the share is full while messages are due.
    reports_progress: the member with the client is notified of its progress, while others dispatch to it as well.
    progress_ns: its last progress: an ack of a message that it holds, or a delivery while it held none.
    has_worked: it has made progress other than by a delivery.
    has_stalled: it made no progress for too long. It is served last until it does.
    """

    id: int
    shards: frozenset[ShardName] | None
    columns: tuple[str, ...]
    prefetch: int | None
    limit: int
    held: int = 0
    is_reserved: bool = False
    has_batch: bool = False
    gathering_since_ns: int | None = None
    full_since_ns: int | None = None
    is_reported: bool = False
    opened_ns: int = 0
    sent: int = 0
    rows_left: int | None = None
    has_rows_elsewhere: bool = False
    keys: frozenset[bytes] | None = None
    share: int | None = None
    next_share: int | None = None
    owes_answer: bool = False
    has_wanted: bool = False
    reports_progress: bool = False
    window: PrefetchWindow | None = None
    window_first: int = FIRST
    progress_ns: int = 0
    has_worked: bool = False
    has_stalled: bool = False

    @property
    def is_for_member(self) -> bool:
        """Return whether its client is connected to another member of the fleet."""
        return self.id < 0

    def covers(self, shard: ShardName) -> bool:
        """Return whether the stream gets messages of *shard*."""
        return self.shards is None or shard in self.shards

    @property
    def room(self) -> int:
        """Return how many more messages it may hold.

        A stream with a limit of rows waits for its answer, so no other stream is served before it for having more room.
        """
        if self.rows_left is not None:
            return UNLIMITED if self.rows_left else 0
        # Called a dozen times for a lone message; usually there is a limit and no share.
        most = self.limit if self.limit and self.share is None else self.most
        if most == UNLIMITED:
            return UNLIMITED
        room = most - self.held
        return room if room > 0 else 0

    @property
    def most(self) -> int:
        """Return how many messages sent by this process it may hold."""
        limit = self.limit or UNLIMITED
        return limit if self.share is None else min(self.share, limit)

    def at_most(self, batch: int) -> int:
        """Return how many rows it can be given at once, if the table's batches have *batch* rows.

        A stream with a limit of rows has set that number itself.
        """
        return batch if self.rows_left is None else self.rows_left

    def gathered_ns(self, rows: int, now_ns: int) -> int:
        """Return when it takes as many rows as it has room for, if *rows* would fill a batch: 0 for at once."""
        is_half = 2 * self.held <= self.most
        if self.room >= rows or is_half or self.rows_left is not None:
            return 0
        if self.gathering_since_ns is None:
            self.gathering_since_ns = now_ns
        return self.gathering_since_ns + GATHER_NS

    def took(self, rows: int, now_ns: int) -> None:
        """Count *rows* that it is given."""
        if not self.held:
            self.progress_ns = now_ns
        self.held += rows
        self.sent += rows
        if self.rows_left is not None:
            self.rows_left -= rows
        self.gathering_since_ns = None
        if self.room == 0 and self.full_since_ns is None:
            self.full_since_ns = now_ns

    def acted(self, now_ns: int) -> None:
        """Note work on a message that it holds, by its client or on its behalf."""
        self.progress_ns, self.has_worked, self.has_stalled = now_ns, True, False
        self.full_since_ns = None
        self.is_reported = False


def shares(rows: int, rooms: Sequence[int], most: Sequence[int]) -> list[int]:
    """Return how many of *rows* go to each of *rooms*, which fall; none gets more than its *most*.

    The receiver with most room gets rows until the next one has as much room, then these two in turn, and so on.
    Receivers with equal room get equal shares; the last ones may get one row fewer.
    """
    if len(rooms) < 2:
        return [min(rows, *rooms, *most)] if rooms else []
    # The lowest room that all can be brought down to, except those whose batch is full before.
    low, high = 0, rooms[0]
    if rooms[-1] == high and min(most) == max(most):
        low = high = max(0, high - rows // len(rooms))
    while low < high:
        level = (low + high) // 2
        taken = (min(one, room - level) for room, one in zip(rooms, most, strict=True))
        if sum(count for count in taken if count > 0) <= rows:
            high = level
        else:
            low = level + 1
    found = [min(one, max(0, room - low)) for room, one in zip(rooms, most, strict=True)]
    left = rows - sum(found)
    for index, room in enumerate(rooms):
        if left <= 0:
            break
        if found[index] < min(most[index], room) and room - found[index] == low:
            found[index] += 1
            left -= 1
    return found
