"""Acks of one shard that clients were answered before they are written, as with `vt_ack = early`. Pure: no clock, no I/O.

They are gathered for a few milliseconds and written in one transaction. Until then a row looks as if its message waited, and
polls of it are ignored. A dispatcher that dies loses them: these messages are sent again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from typing import Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


# With the transaction itself an ack is written within 10 ms of its answer.
GATHER_NS: Final = 5 * 10**6
# One short transaction.
WRITTEN_AT_ONCE: Final = 500
# No more are taken: clients wait for a server that does not keep up, as with any other ack.
UNWRITTEN_MAX: Final = 20_000
# A locked row is tried again after this time.
LOCKED_PAUSE_NS: Final = 250 * 10**6
FAILED_FIRST_NS: Final = 50 * 10**6
FAILED_LAST_NS: Final = 2 * 10**9


class EarlyAcks:
    """The acks that exist only in memory, in the order in which they came.

    acked_ns: the future ``time_acked`` of each message, by id. The shard's queue reads it, too.
    is_on: the table has `vt_ack = early`.
    """

    def __init__(self, acked_ns: dict[bytes, int]) -> None:
        self.acked_ns: Final = acked_ns
        self.is_on = False
        self._gathered: dict[bytes, None] = {}
        self._write_ns = FOREVER_NS  # when to write the gathered acks
        self._writing: tuple[bytes, ...] = ()
        # When to try again rows that were locked or refused, and which; soonest first.
        self._locked: list[tuple[int, tuple[bytes, ...]]] = []
        self._failures = 0

    def __len__(self) -> int:
        return len(self.acked_ns)

    def __contains__(self, ident: bytes) -> bool:
        return ident in self.acked_ns

    @property
    def takes_more(self) -> bool:
        """Return whether acks are taken early, because earlier ones are written as they should be."""
        return self.is_on and not self._failures and len(self.acked_ns) < UNWRITTEN_MAX

    def add(self, idents: Iterable[bytes], acked_ns: int, now_ns: int) -> None:
        """Take acks whose clients are answered now."""
        for ident in idents:
            self.acked_ns[ident] = acked_ns
            self._gathered[ident] = None
        self._write_ns = min(self._write_ns, now_ns + GATHER_NS)

    def hurry(self) -> None:
        """Write everything at once that is not locked."""
        if self._gathered or self._locked:
            self._gathered.update((ident, None) for _, ids in self._locked for ident in ids)
            self._locked.clear()
            self._write_ns = 0

    def next_write(self, now_ns: int) -> tuple[tuple[bytes, int], ...]:
        """Return ids and times to write now, at most WRITTEN_AT_ONCE. One statement runs at a time."""
        if self._writing or self.next_ns() > now_ns:
            return ()
        while self._locked and self._locked[0][0] <= now_ns:
            self._gathered.update(dict.fromkeys(self._locked.pop(0)[1]))
        self._writing = tuple(self._gathered)[:WRITTEN_AT_ONCE]
        for ident in self._writing:
            del self._gathered[ident]
        self._write_ns = now_ns if self._gathered else FOREVER_NS
        return tuple((ident, self.acked_ns[ident]) for ident in self._writing)

    def written(
        self, locked: Iterable[bytes] | None, now_ns: int, again_ns: Mapping[bytes, int]
    ) -> tuple[bytes, ...]:
        """Process the result of a write; return the finished ids.

        locked: the rows that were locked; None for a failed write.
        again_ns: the rows that the server refuses, and when to try each again.
        """
        asked, self._writing = self._writing, ()
        if locked is None:
            pause_ns = min(FAILED_FIRST_NS << min(self._failures, 10), FAILED_LAST_NS)
            self._failures += 1
            self._gathered = {**dict.fromkeys(asked), **self._gathered}
            self._write_ns = now_ns + pause_ns
            return ()
        self._failures = 0
        again = frozenset(locked)
        if left := tuple(ident for ident in asked if ident in again):
            insort(self._locked, (now_ns + LOCKED_PAUSE_NS, left))
        for ident, again_at_ns in again_ns.items():
            insort(self._locked, (again_at_ns, (ident,)))
        done = tuple(ident for ident in asked if ident not in again and ident not in again_ns)
        for ident in done:
            del self.acked_ns[ident]
        return done

    def next_ns(self) -> int:
        """Return when the next write begins."""
        if self._writing:
            return FOREVER_NS
        return min(self._write_ns, self._locked[0][0] if self._locked else FOREVER_NS)
