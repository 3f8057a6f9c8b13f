"""Messages of receivers whose connection has ended: they become due again after ``vt_release_after``, before their leases end. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.leases.leases import Lease, Leases
    from streamfrom.engine.messaging.leases.unwritten_leases import UnwrittenLeases
    from streamfrom.engine.messaging.queue.shard_queue import ShardQueue


# A row that cannot be made due sooner is most likely being acked, which is soon over.
SHORTEN_AGAIN_NS: Final = 10**9


@dataclass(slots=True)
class _Leaving:
    """A receiver whose connection has ended while it held messages.

    due_ns: when its messages become due again.
    retry_ns: when to try again those that are not due by then yet.
    """

    due_ns: int
    retry_ns: int = 0
    pause_ns: int = SHORTEN_AGAIN_NS

    def postpone(self, now_ns: int) -> None:
        """Try again after a pause that doubles."""
        self.retry_ns = now_ns + self.pause_ns
        self.pause_ns *= 2


class LeavingReceivers:
    """The receivers of one shard whose connections have ended, by their numbers. *leases*, *unwritten* and *queue* are the shard's."""

    def __init__(self, leases: Leases, unwritten: UnwrittenLeases, queue: ShardQueue) -> None:
        self._leases = leases
        self._unwritten = unwritten
        self._queue = queue
        self._receivers: dict[int, _Leaving] = {}
        self._shortening: tuple[Lease, ...] = ()  # by a statement under way

    def __len__(self) -> int:
        return len(self._receivers)

    def __contains__(self, receiver: object) -> bool:
        return receiver in self._receivers

    def add(self, receiver: int, due_ns: int) -> None:
        """Make the messages of a receiver due again at *due_ns*."""
        self._receivers[receiver] = _Leaving(due_ns)

    def clock_set_back(self, by_ns: int) -> None:
        """Make their messages due sooner by as much."""
        for leaving in self._receivers.values():
            leaving.due_ns -= by_ns

    def retry(self, now_ns: int) -> None:
        """Retry at once the messages that could not be made due sooner."""
        for leaving in self._receivers.values():
            leaving.retry_ns = min(leaving.retry_ns, now_ns)

    def next_ns(self) -> int:
        """Return when to shorten the next leases; FOREVER_NS while a statement does so, or if there are none."""
        if self._shortening or not self._receivers:
            return FOREVER_NS
        return min((one.retry_ns for one in self._receivers.values()), default=FOREVER_NS)

    def next(self, now_ns: int) -> tuple[int, tuple[Lease, ...], int] | None:
        """Return a receiver that has left, its leases that end too late, and when they should end."""
        if self._shortening:
            return None
        for receiver, leaving in list(self._receivers.items()):
            if leaving.retry_ns > now_ns:
                continue
            leases, is_more = self._leases.left(receiver, leaving.due_ns)
            if unwritten := [lease.id for lease in leases if lease.id in self._unwritten]:
                # A row must show its lease before the lease can be shortened.
                self._unwritten.hurry(unwritten)
                leases = [lease for lease in leases if lease.id not in self._unwritten]
                is_more = True
            if leases:
                self._shortening = tuple(leases)
                return receiver, self._shortening, leaving.due_ns
            if is_more:
                leaving.postpone(now_ns)
            else:
                del self._receivers[receiver]
        return None

    def shortened(self, receiver: int, ids: Collection[bytes], now_ns: int) -> bool:
        """Process which rows of the leases of *receiver* are due sooner now; return whether a poll is needed."""
        leaving, written, is_lost = self._receivers[receiver], set(ids), False
        leases, self._shortening = self._shortening, ()
        for lease in leases:
            key = self._queue.get(lease.id)
            if lease.id in written:
                if key is not None and key.time_next_ns == lease.until_ns:
                    self._queue.add(key._replace(time_next_ns=leaving.due_ns), now_ns)
                else:
                    # The message was not in the queue, or something else has happened to it.
                    is_lost = True
        if len(written) < len(leases):
            leaving.postpone(now_ns)
        # A poll may have seen the rows before this answer came: messages that were sent again belong to another receiver.
        held = self._leases.ids_of(receiver)
        self._leases.shorten([one for one in ids if one in held], leaving.due_ns)
        return is_lost
