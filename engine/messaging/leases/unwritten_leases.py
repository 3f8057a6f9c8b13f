"""The leases of one shard that are in this process's memory alone, and when they are to be written.

| which lease                                       | when its row shows it                                               |
|---------------------------------------------------|---------------------------------------------------------------------|
| of a redelivery; of every one with `vt_lease =    | before it is sent, by its claim (`claims.claim_writes`)             |
| written`, `vt_max_in_flight` or a group           |                                                                     |
| of a first delivery                               | `vt_lease_delay` after it was sent, unless its ack came before      |
| one that progress has made longer                 | before its row is due (`streams.stream_order`)                      |
| any of the last two                               | at once: before a reschedule, a heartbeat, or what frees ids that   |
|                                                   | it does not name (`Effect.needs_leases`); when its stream's         |
|                                                   | connection has ended, when the table ends or the clock is set back, |
|                                                   | and if they are more than half of a cache                           |
| one whose row is locked                           | 250 ms later; one that the server refuses, when `gates.set_aside`   |
|                                                   | tries it again                                                      |
| what is not written when another member takes     | never: that one sends the message again. A member that is elected   |
| over                                              | again knows what it sent, and writes it                             |

`engine.messaging.leases.lease_rows` has the statement.

A first delivery writes nothing (`engine.messaging.claims.claim_writes`). So until its lease is written or its ack comes the row
looks as if it had never been sent. What a poll says of such a message is not believed, and no plain read sends it
again. It is claimed the next time, and the claim counts the send that the row does not show.

A lease that has become longer (`engine.messaging.streams.stream_order`) is written as well, before its row is due; until then the row
is not believed either. Pure: no clock, no I/O.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import LateWrites, MessageKey


# As many ids as a claim has, at most: one short transaction.
WRITTEN_AT_ONCE: Final = 500
# A row that is locked is being acked, most likely: then it is over soon.
AGAIN_NS: Final = 250 * 10**6


class UnwrittenLeases:
    """Which messages were sent and do not show it, in the order in which their leases are to be written.

    timers: the keys of messages that were never sent before, by id, due when their leases end. The shard's queue holds the
        same keys and updates them.
    shown_ns: what rows say of messages whose leases are longer by now; it is the `engine.messaging.leases.leases.Leases`'.
    """

    def __init__(self, timers: dict[bytes, MessageKey], shown_ns: Mapping[bytes, int]) -> None:
        self.timers: Final = timers
        self.shown_ns: Final = shown_ns
        # When some of them are to be written, a number that distinguishes entries, their ids: many are acked before.
        self._moments: list[tuple[int, int, tuple[bytes, ...]]] = []
        self._numbers = 0
        self._writing: frozenset[bytes] = frozenset()
        # Until then none is written before its moment: the last writing wrote none.
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
        """Return whether a statement is under way that may write the lease of a message."""
        return ident in self._writing

    def sent(self, timers: Collection[MessageKey], write_ns: int) -> None:
        """Note messages that were sent for the first time; their leases are written at *write_ns*."""
        self.timers.update((timer.id, timer) for timer in timers)
        self._note(write_ns, tuple(timer.id for timer in timers))

    def renewed(self, idents: Iterable[bytes], now_ns: int) -> None:
        """Note messages whose rows show leases that are longer by now; they are written at once."""
        self._note(now_ns, tuple(idents))

    def clock_set_back(self, by_ns: int) -> None:
        """Let messages that were sent be due as much sooner, also those whose leases have ended."""
        for ident, timer in self.timers.items():
            self.timers[ident] = timer._replace(time_next_ns=timer.time_next_ns - by_ns)

    def forget(self, idents: Iterable[bytes]) -> None:
        """Forget messages that were acked or deleted."""
        timers = self.timers
        for ident in idents:
            timers.pop(ident, None)

    def hurry(self, idents: Iterable[bytes] | None) -> None:
        """Let leases be written at once, of *idents* or of all messages."""
        asked = (*self.timers, *self.shown_ns) if idents is None else idents
        wanted = tuple(dict.fromkeys(i for i in asked if i in self))
        if wanted:
            self._note(0, wanted)

    def next_write(self, now_ns: int, at_most: int) -> tuple[bytes, ...]:
        """Return whose leases to write now, the oldest first; one statement at a time. *at_most* may be unwritten longer."""
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
        """Take in what a writing found; return which messages were asked for and are tried again, and which are not.

        again_ns: when the rows are tried again that the server does not write.
        """
        asked, self._writing = self._writing, frozenset()
        for ident, again_at_ns in again_ns.items():
            self._note(again_at_ns, (ident,))
        again = asked if result is None else asked.intersection((*result.locked, *again_ns))
        # In the order of sending: a seed of the simulator is one history.
        left = tuple(sorted(i for i in again if i in self and i not in again_ns))
        if left:
            self._note(now_ns + AGAIN_NS, left)
        self._paused_ns = 0 if asked - again else now_ns + AGAIN_NS
        return sorted(again), sorted(asked - again)

    def next_ns(self) -> int:
        """Return when the next lease is to be written."""
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
