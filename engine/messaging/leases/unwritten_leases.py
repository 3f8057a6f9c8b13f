"""The leases of one shard that exist only in this process's memory, and when they are written.

| lease                                             | when its row shows it                                               |
|---------------------------------------------------|---------------------------------------------------------------------|
| of a redelivery; every lease with `vt_lease =     | before the message is sent, by its claim (`claims.claim_writes`)    |
| written`, `vt_max_in_flight` or a group           |                                                                     |
| of a first delivery                               | `vt_lease_delay` after it was sent, unless its ack came before      |
| extended by progress                              | before its row is due (`streams.stream_order`)                      |
| either of these two                               | at once: before a reschedule, a heartbeat, or a statement that      |
|                                                   | frees ids without naming them (`Effect.needs_leases`); when the     |
|                                                   | stream's connection has ended, when the table ends or the clock is  |
|                                                   | set back, and if they are more than half of a cache                 |
| of a locked row                                   | 250 ms later; if the server refuses the row, when `gates.set_aside` |
|                                                   | tries it again                                                      |
| unwritten when another member takes over          | never: that member sends the message again. A member that is        |
|                                                   | elected again still knows what it sent, and writes it               |

`engine.messaging.leases.lease_rows` has the statement.

A first delivery writes nothing (`engine.messaging.claims.claim_writes`). So until its lease is written or its ack comes, the row
looks as if it had never been sent. Polls of this row are ignored, and no plain read sends the message
again. The next time it is claimed, and the claim counts the delivery that the row does not show.

An extended lease (`engine.messaging.streams.stream_order`) is written as well, before its row is due; until then polls of
the row are ignored too. Pure: no clock, no I/O.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import LateWrites, MessageKey


# No more ids than a claim has: one short transaction.
WRITTEN_AT_ONCE: Final = 500
# A locked row is most likely being acked, which is soon over.
AGAIN_NS: Final = 250 * 10**6


class UnwrittenLeases:
    """Messages that were sent and whose rows do not show it, in the order in which their leases are to be written.

    timers: the keys of messages that were never sent before, by id, due when their leases end. The shard's queue holds the
        same keys and updates them.
    shown_ns: the end that the row shows of leases that were extended since; shared with `engine.messaging.leases.leases.Leases`.
    """

    def __init__(self, timers: dict[bytes, MessageKey], shown_ns: Mapping[bytes, int]) -> None:
        self.timers: Final = timers
        self.shown_ns: Final = shown_ns
        # When to write some of them, a number that distinguishes entries, and their ids, of which many are acked before.
        self._moments: list[tuple[int, int, tuple[bytes, ...]]] = []
        self._numbers = 0
        self._writing: frozenset[bytes] = frozenset()
        # Until then no lease is written early, because the last statement wrote none.
        self._paused_ns = 0

    def __len__(self) -> int:
        return len(self.timers.keys() | self.shown_ns.keys())

    def __iter__(self) -> Iterator[bytes]:
        yield from self.timers
        yield from self.shown_ns.keys() - self.timers.keys()

    def __bool__(self) -> bool:
        return bool(self.timers or self.shown_ns)

    def __contains__(self, ident: object) -> bool:
        return ident in self.timers or ident in self.shown_ns

    def is_being_written(self, ident: bytes) -> bool:
        """Return whether a statement under way may write the lease of a message."""
        return ident in self._writing

    def sent(self, timers: Collection[MessageKey], write_ns: int) -> None:
        """Note messages that were sent for the first time; their leases are written at *write_ns*."""
        self.timers.update((timer.id, timer) for timer in timers)
        self._note(write_ns, tuple(timer.id for timer in timers))

    def renewed(self, idents: Iterable[bytes], now_ns: int) -> None:
        """Note messages whose leases were extended beyond their rows; they are written at once."""
        self._note(now_ns, tuple(idents))

    def clock_set_back(self, by_ns: int) -> None:
        """Make sent messages due sooner by as much, including those whose leases have ended."""
        for ident, timer in self.timers.items():
            self.timers[ident] = timer._replace(time_next_ns=timer.time_next_ns - by_ns)

    def forget(self, idents: Iterable[bytes]) -> None:
        """Forget messages that were acked or deleted."""
        timers = self.timers
        for ident in idents:
            timers.pop(ident, None)

    def hurry(self, idents: Iterable[bytes] | None) -> None:
        """Write the leases of *idents*, or of all messages, at once."""
        asked = (*self.timers, *self.shown_ns) if idents is None else idents
        wanted = tuple(dict.fromkeys(i for i in asked if i in self))
        if wanted:
            self._note(0, wanted)

    def next_write(self, now_ns: int, at_most: int) -> tuple[bytes, ...]:
        """Return the messages whose leases to write now, oldest first. One statement runs at a time. *at_most* may stay unwritten."""
        if self._writing:
            return ()
        found: dict[bytes, None] = {}
        while self._moments and len(found) < WRITTEN_AT_ONCE:
            write_ns, _, idents = self._moments[0]
            are_few = len(self.timers) - len(found) <= at_most
            if write_ns > now_ns and (are_few or now_ns < self._paused_ns):
                break
            heapq.heappop(self._moments)
            left = [ident for ident in idents if ident in self and ident not in found]
            room = WRITTEN_AT_ONCE - len(found)
            found.update(dict.fromkeys(left[:room]))
            if left[room:]:
                self._note(write_ns, tuple(left[room:]))
        self._writing = frozenset(found)
        return tuple(found)

    def written(
        self, result: LateWrites | None, now_ns: int, again_ns: Mapping[bytes, int]
    ) -> tuple[list[bytes], list[bytes]]:
        """Process the result of a write; return the messages that it covered: those to try again, and the others.

        again_ns: when to try again the rows that the server refuses.
        """
        asked, self._writing = self._writing, frozenset()
        for ident, again_at_ns in again_ns.items():
            self._note(again_at_ns, (ident,))
        again = asked if result is None else asked.intersection((*result.locked, *again_ns))
        # In the order of sending, because a seed of the simulator must give one history.
        left = tuple(sorted(i for i in again if i in self and i not in again_ns))
        if left:
            self._note(now_ns + AGAIN_NS, left)
        self._paused_ns = 0 if asked - again else now_ns + AGAIN_NS
        return sorted(again), sorted(asked - again)

    def next_ns(self) -> int:
        """Return when to write the next lease."""
        while self._moments and not self._writing:
            write_ns, number, idents = self._moments[0]
            if idents[0] in self:
                return write_ns
            left = tuple(ident for ident in idents if ident in self)
            if left:
                self._moments[0] = write_ns, number, left
            else:
                heapq.heappop(self._moments)
        return FOREVER_NS

    def _note(self, write_ns: int, idents: tuple[bytes, ...]) -> None:
        self._numbers += 1
        heapq.heappush(self._moments, (write_ns, self._numbers, idents))
