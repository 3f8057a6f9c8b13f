"""Which stream holds which messages of one shard, and until when.

A message is *held* by the receiver that it was sent to, from its delivery until it is acked,
deleted or made due sooner, or until its *lease* ends: the ``time_next`` that its claim wrote.
Pure: no clock, no I/O.

A message costs one `Lease`, which stands in a dict by its id and in a heap by its end. What is
given back leaves the dict at once and the heap when its turn comes, or when stale leases are the
most of it; so neither is ever searched.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streamfrom.engine.messaging.message import ClaimedRow


# Below this many a heap is not worth to be made anew.
STALE_MIN: Final = 1000
# One question for the rows of held messages: as many ids as a claim has, at most.
LOOK_IDS_MAX: Final = 500


class Lease(NamedTuple):
    """A message in flight: held by *receiver* until a moment in nanoseconds since 1970."""

    until_ns: int
    id: bytes
    receiver: int


class Leases:
    """The messages of one shard that streams hold.

    What a receiver holds is counted by the caller: every method that ends leases returns them.
    """

    def __init__(self) -> None:
        self._held: dict[bytes, Lease] = {}
        self._ends: list[Lease] = []
        # In the order of the commits: a seed of the simulator is one history.
        self._to_look_at: dict[bytes, None] = {}
        self._is_any_suspect = False  # all that are held are to be looked at
        self._looking_at: dict[bytes, Lease] | None = None

    def __len__(self) -> int:
        """Return how many messages are held."""
        return len(self._held)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._held.values())

    @property
    def ends(self) -> int:
        """Return how many ends wait for their time, stale ones among them."""
        return len(self._ends)

    def give(self, receiver: int, rows: Iterable[ClaimedRow]) -> list[Lease]:
        """Note that *receiver* holds *rows*; return the leases of others that this ends."""
        replaced = []
        for row in rows:
            lease = Lease(row.due_next_ns, row.id, receiver)
            before = self._held.get(row.id)
            if before is not None:
                replaced.append(before)
            self._held[row.id] = lease
            heapq.heappush(self._ends, lease)
        return replaced

    def give_back(self, ident: bytes) -> Lease | None:
        """End the lease of a message, and return it; None for one that nobody holds."""
        lease = self._held.pop(ident, None)
        if len(self._ends) > 2 * len(self._held) + STALE_MIN:
            self._ends = list(self._held.values())
            heapq.heapify(self._ends)
        return lease

    def give_back_of(self, receiver: int, ident: bytes) -> None:
        """End the lease of a message if *receiver* has it: it may have been sent again since."""
        lease = self._held.get(ident)
        if lease is not None and lease.receiver == receiver:
            self.give_back(ident)

    def ended(self, now_ns: int) -> list[Lease]:
        """End the leases that are over, and return them.

        One whose row a commit may have changed waits for what the row says: it may be longer.
        """
        ended = []
        while self._ends and self._ends[0].until_ns <= now_ns:
            lease = heapq.heappop(self._ends)
            if self._held.get(lease.id) is lease and not self._is_suspect(lease.id):
                del self._held[lease.id]
                ended.append(lease)
        return ended

    def first_end_ns(self) -> int | None:
        """Return when the next lease ends, or None when nothing is held."""
        while self._ends and self._held.get(self._ends[0].id) is not self._ends[0]:
            heapq.heappop(self._ends)
        return self._ends[0].until_ns if self._ends else None

    def clear(self) -> None:
        """Forget everything; the answer to a question that is under way counts no more."""
        self._held.clear()
        self._ends.clear()
        self._to_look_at.clear()
        self._is_any_suspect = False
        if self._looking_at is not None:
            self._looking_at = {}

    # Rows that a commit may have changed

    def suspect(self, idents: Iterable[bytes] | None) -> None:
        """Note that the rows of *idents*, or any, may be acked, deleted or rescheduled."""
        if idents is None:
            # Which ones these are is asked when the look begins: a commit costs nothing here,
            # however many messages are held.
            self._is_any_suspect = True
            return
        for ident in idents:
            if ident in self._held:
                self._to_look_at[ident] = None

    def _is_suspect(self, ident: bytes) -> bool:
        return (
            self._is_any_suspect
            or ident in self._to_look_at
            or (self._looking_at is not None and ident in self._looking_at)
        )

    def next_look(self) -> tuple[bytes, ...]:
        """Return the held messages whose rows must be read now; one question at a time."""
        if self._looking_at is not None:
            return ()
        if self._is_any_suspect and not self._to_look_at:
            self._to_look_at = dict.fromkeys(self._held)
            self._is_any_suspect = False
        if not self._to_look_at:
            return ()
        self._looking_at = {}
        while self._to_look_at and len(self._looking_at) < LOOK_IDS_MAX:
            ident = next(iter(self._to_look_at))
            del self._to_look_at[ident]
            lease = self._held.get(ident)
            if lease is not None:
                self._looking_at[lease.id] = lease
        if not self._looking_at:
            self._looking_at = None
            return ()
        return tuple(self._looking_at)

    def looked(self, time_next_ns: Mapping[bytes, int]) -> tuple[list[Lease], list[Lease]]:
        """Take in when the unacked rows that were asked for are due.

        A row that is gone, acked, or due before its lease would end has been given back: its
        lease is returned in the first list. One that is due later is held for longer: a
        heartbeat, in the second list. A message that was sent again meanwhile is left alone.
        """
        given_back, prolonged = [], []
        for ident, lease in (self._looking_at or {}).items():
            if self._held.get(ident) is not lease:
                continue
            until_ns = time_next_ns.get(ident, 0)
            if until_ns < lease.until_ns:
                self.give_back(ident)
                given_back.append(lease)
            elif until_ns > lease.until_ns:
                longer = lease._replace(until_ns=until_ns)
                self._held[ident] = longer
                heapq.heappush(self._ends, longer)
                prolonged.append(longer)
            else:
                heapq.heappush(self._ends, lease)  # it may have ended meanwhile
        self._looking_at = None
        return given_back, prolonged

    def look_failed(self) -> None:
        """Note that a question had no answer; it is not asked again.

        The leases end by themselves; until then the rows count as held, which sends nothing twice.
        """
        for lease in (self._looking_at or {}).values():
            heapq.heappush(self._ends, lease)
        self._looking_at = None
