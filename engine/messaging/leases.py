"""Which stream holds which messages of one shard, and until when.

A message is *held* by the receiver that it was sent to, from its delivery until it is acked,
deleted or rescheduled, or until its *lease* ends: the ``time_next`` that its claim wrote, or a
heartbeat since. Pure: no clock, no I/O.

A message stands in two dicts, of ids to receivers and of a receiver's ids to their ends. Numbers and
bytes alone: a `Lease` for each message, which the garbage collector walks, made a drain 4 % dearer. The
heap has the ends by batches: nearly all messages are acked before the first of their batch would end,
and then the heap has nothing to do with them.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from streamfrom.engine.messaging.message import ClaimedRow


# Below this many a heap is not worth to be made anew.
STALE_MIN: Final = 1000
# One question for the rows of held messages: as many ids as a claim has, at most.
LOOK_IDS_MAX: Final = 500
# Who holds what a former dispatcher has sent; no receiver has this number.
NOBODY: Final = 0
# The end of a lease that only the row knows: a former dispatcher gave it. Before every other.
UNKNOWN_NS: Final = -1
# After a failed question, the rows of such leases are read again.
ASK_AGAIN_NS: Final = 250 * 10**6
# Of a million leases that end at the same time no turn of the loop ends more.
ENDED_MAX: Final = 1000


class Lease(NamedTuple):
    """A message in flight: held by *receiver* until a moment in nanoseconds since 1970."""

    until_ns: int
    id: bytes
    receiver: int


class Leases:
    """The messages of one shard that streams hold.

    How many a receiver holds of all shards is counted by the caller: what ends leases returns whose.
    """

    def __init__(self) -> None:
        # The receiver of each message, and when it was sent. A batch has one such tuple.
        self._receivers: dict[bytes, tuple[int, int]] = {}
        self._ends_ns: dict[int, dict[bytes, int]] = {}  # by receiver
        # The end of the first of some leases, a number that tells entries apart, their ids.
        self._ends: list[tuple[int, int, tuple[bytes, ...]]] = []
        self._numbers = 0
        self._ids_in_ends = 0
        # Rows that a commit may have changed: whether by a heartbeat alone. In the order of
        # the commits: a seed of the simulator is one history.
        self._to_look_at: dict[bytes, bool] = {}
        self._all_by_heartbeat: bool | None = None  # all that are held are suspect; None if not
        self._looking_at: dict[bytes, tuple[Lease, bool]] | None = None

    def __len__(self) -> int:
        """Return how many messages are held."""
        return len(self._receivers)

    def __iter__(self) -> Iterator[Lease]:
        for receiver, ends_ns in self._ends_ns.items():
            for ident, until_ns in ends_ns.items():
                yield Lease(until_ns, ident, receiver)

    @property
    def of_clients(self) -> int:
        """Return how many are of this process's own clients."""
        return sum(len(ends_ns) for receiver, ends_ns in self._ends_ns.items() if receiver > 0)

    @property
    def ends(self) -> int:
        """Return how many ends wait for their time, stale ones among them."""
        return self._ids_in_ends

    def ids_of(self, receiver: int) -> Collection[bytes]:
        """Return which messages *receiver* holds."""
        return self._ends_ns.get(receiver, {}).keys()

    def holders(self, idents: Iterable[bytes]) -> list[int]:
        """Return who holds each of those messages that somebody holds."""
        known = self._receivers
        return [known[ident][0] for ident in idents if ident in known]

    def get(self, ident: bytes) -> Lease | None:
        """Return the lease of a message; None for one that nobody holds."""
        sending = self._receivers.get(ident)
        if sending is None:
            return None
        receiver, _ = sending
        return Lease(self._ends_ns[receiver][ident], ident, receiver)

    def is_sure(self, ident: bytes, now_ns: int) -> bool:
        """Return whether a message is held, as far as is known, and nothing has come in between."""
        lease = self.get(ident)
        return lease is not None and lease.until_ns > now_ns and not self._is_suspect(ident)

    def since_ns(self, receiver: int) -> int | None:
        """Return when the first of the messages that *receiver* holds was sent; None without any."""
        return min((self._receivers[ident][1] for ident in self.ids_of(receiver)), default=None)

    # Messages come and go

    def give(self, receiver: int, rows: Iterable[ClaimedRow], now_ns: int = 0) -> list[Lease]:
        """Note that *receiver* holds *rows* from now on; return the leases of others that this ends."""
        ends_ns = {row.id: row.due_next_ns for row in rows}
        replaced: list[Lease] = []
        # Hardly ever: it takes a message that is sent again while its lease here runs. One set
        # operation tells for a whole batch.
        if not self._receivers.keys().isdisjoint(ends_ns):
            replaced = [
                lease for ident in ends_ns if (lease := self.give_back(ident)) is not None
            ]
        self._receivers.update(dict.fromkeys(ends_ns, (receiver, now_ns)))
        self._ends_ns.setdefault(receiver, {}).update(ends_ns)
        # One entry for the batch, at its first end: most of its messages are acked before that,
        # and the few that are left get entries of their own in `ended`.
        self._note_end(min(ends_ns.values()), tuple(ends_ns))
        return replaced

    def found(self, until_ns: Mapping[bytes, int], now_ns: int) -> None:
        """Note messages that a former dispatcher has in flight; each is looked at, as it may be acked meanwhile."""
        for ident, end_ns in until_ns.items():
            lease = self.get(ident)
            if lease is not None and lease.until_ns == UNKNOWN_NS:
                self._set_end(lease, end_ns)
                self.suspect((ident,), by_heartbeat=True)
        ends_ns = {i: end_ns for i, end_ns in until_ns.items() if i not in self._receivers}
        if ends_ns:
            self._receivers.update(dict.fromkeys(ends_ns, (NOBODY, now_ns)))
            self._ends_ns.setdefault(NOBODY, {}).update(ends_ns)
            self._note_end(min(ends_ns.values()), tuple(ends_ns))
            self.suspect(ends_ns, by_heartbeat=True)

    def take_over(self, receiver: int, idents: Iterable[bytes], now_ns: int) -> int:
        """Note that *receiver* holds messages that a former dispatcher sent to it; return how many.

        Messages that another receiver holds were sent again since, and are left out. The rows of all others are read:
        acked ones are given back, and the leases of the rest end when their rows say.
        """
        known = self._receivers
        new = [i for i in dict.fromkeys(idents) if i not in known or known[i][0] == NOBODY]
        if new:
            found = self._ends_ns.get(NOBODY, {})
            ends_ns = {ident: found.get(ident, UNKNOWN_NS) for ident in new}
            self.give_back_all(new)
            known.update(dict.fromkeys(new, (receiver, now_ns)))
            self._ends_ns.setdefault(receiver, {}).update(ends_ns)
            self.suspect(new, by_heartbeat=True)
        return len(new)

    def forget_found(self) -> None:
        """Forget what a former dispatcher has in flight."""
        self.give_back_all(tuple(self.ids_of(NOBODY)))

    def give_back(self, ident: bytes) -> Lease | None:
        """End the lease of a message, and return it; None for one that nobody holds."""
        lease = self.get(ident)
        if lease is not None:
            self._remove(lease)
        return lease

    def give_back_all(self, idents: Iterable[bytes]) -> dict[tuple[int, int], int]:
        """End the leases of messages; return how many each receiver had that were sent at the same time.

        The keys are receivers and times.
        """
        receivers, all_ends_ns = self._receivers, self._ends_ns
        counts: dict[tuple[int, int], int] = {}
        for ident in idents:
            sending = receivers.pop(ident, None)
            if sending is not None:
                del all_ends_ns[sending[0]][ident]
                counts[sending] = counts.get(sending, 0) + 1
        for receiver, _ in counts:
            if not all_ends_ns.get(receiver, True):
                del all_ends_ns[receiver]
        return counts

    def give_back_of(self, receiver: int, ident: bytes) -> None:
        """End the lease of a message if *receiver* has it: it may have been sent again since."""
        if ident in self.ids_of(receiver):
            self.give_back(ident)

    def shorten(self, idents: Iterable[bytes], until_ns: int) -> None:
        """Let leases end at *until_ns*."""
        for ident in idents:
            lease = self.get(ident)
            if lease is not None:
                self._set_end(lease, until_ns)

    def ended(self, now_ns: int) -> list[Lease]:
        """End leases that are over, ENDED_MAX or a batch more at a time, and return them.

        One whose row a commit may have changed waits for what the row says: it may be longer.
        """
        ended: list[Lease] = []
        while self._ends and self._ends[0][0] <= now_ns and len(ended) < ENDED_MAX:
            _, _, idents = heapq.heappop(self._ends)
            self._ids_in_ends -= len(idents)
            for ident in idents:
                lease = self.get(ident)
                # A suspect one gets its entry again from `looked` or `look_failed`.
                if lease is None or self._is_suspect(ident):
                    continue
                if lease.until_ns == UNKNOWN_NS:
                    self.suspect((ident,), by_heartbeat=True)
                elif lease.until_ns <= now_ns:
                    self._remove(lease)
                    ended.append(lease)
                else:
                    self._note_end(lease.until_ns, (ident,))
        return ended

    def first_end_ns(self) -> int | None:
        """Return when to look whether leases have ended, or None when nothing is held."""
        held = self._receivers
        while self._ends:
            until_ns, number, idents = self._ends[0]
            # Acks leave the heap alone (a removal there is O(n)): stale entries are dropped
            # when they come to the front.
            if idents[0] in held:
                return until_ns
            left = tuple(ident for ident in idents if ident in held)
            self._ids_in_ends -= len(idents) - len(left)
            if left:
                self._ends[0] = until_ns, number, left
            else:
                heapq.heappop(self._ends)
        return None

    def _remove(self, lease: Lease) -> None:
        del self._receivers[lease.id]
        ends_ns = self._ends_ns[lease.receiver]
        del ends_ns[lease.id]
        if not ends_ns:
            del self._ends_ns[lease.receiver]

    def _set_end(self, lease: Lease, until_ns: int) -> Lease:
        self._ends_ns[lease.receiver][lease.id] = until_ns
        self._note_end(until_ns, (lease.id,))
        return lease._replace(until_ns=until_ns)

    def _note_end(self, until_ns: int, idents: tuple[bytes, ...]) -> None:
        self._numbers += 1
        heapq.heappush(self._ends, (until_ns, self._numbers, idents))
        self._ids_in_ends += len(idents)
        # More stale ids than held ones: building the heap anew costs O(n) once for n acks at
        # least.
        if self._ids_in_ends > 2 * len(self) + STALE_MIN:
            self._ends = [
                (lease.until_ns, number, (lease.id,)) for number, lease in enumerate(self)
            ]
            heapq.heapify(self._ends)
            self._ids_in_ends = self._numbers = len(self._ends)

    # Rows that a commit may have changed

    def suspect(self, idents: Iterable[bytes] | None, *, by_heartbeat: bool = False) -> None:
        """Note that the rows of *idents*, or any, may be acked, deleted or rescheduled.

        by_heartbeat: they may be held for longer, and nothing else.
        """
        if idents is None:
            # Which ones these are is asked when the look begins: a commit costs nothing here,
            # however many messages are held.
            self._all_by_heartbeat = by_heartbeat and self._all_by_heartbeat is not False
            return
        for ident in idents:
            if ident in self._receivers:
                self._to_look_at[ident] = by_heartbeat and self._to_look_at.get(ident, True)

    def suspect_all_but(self, receivers: Container[int]) -> None:
        """Note that rows may be acked or held for longer, but those of *receivers*, which are about to be shortened."""
        for receiver, ends_ns in self._ends_ns.items():
            if receiver not in receivers:
                self.suspect(ends_ns, by_heartbeat=True)

    def _is_suspect(self, ident: bytes) -> bool:
        return (
            self._all_by_heartbeat is not None
            or ident in self._to_look_at
            or (self._looking_at is not None and ident in self._looking_at)
        )

    def next_look(self) -> tuple[bytes, ...]:
        """Return the held messages whose rows must be read now; one question at a time."""
        if self._looking_at is not None:
            return ()
        if self._all_by_heartbeat is not None and not self._to_look_at:
            self._to_look_at = dict.fromkeys(self._receivers, self._all_by_heartbeat)
            self._all_by_heartbeat = None
        looking_at: dict[bytes, tuple[Lease, bool]] = {}
        while self._to_look_at and len(looking_at) < LOOK_IDS_MAX:
            ident = next(iter(self._to_look_at))
            by_heartbeat = self._to_look_at.pop(ident)
            lease = self.get(ident)
            if lease is not None:
                looking_at[ident] = lease, by_heartbeat
        if not looking_at:
            return ()
        self._looking_at = looking_at
        return tuple(looking_at)

    def looked(self, time_next_ns: Mapping[bytes, int]) -> tuple[list[Lease], list[Lease]]:
        """Take in when the unacked rows that were asked for are due.

        A row that is gone, acked, or due at another time has been given back: its lease is
        returned in the first list. One that a heartbeat made due later is held for longer: its
        new lease is in the second list. A message that was sent again meanwhile is left alone.
        """
        given_back, prolonged = [], []
        looking_at, self._looking_at = self._looking_at or {}, None
        for ident, (asked, by_heartbeat) in looking_at.items():
            lease = self.get(ident)
            if lease is None:
                continue
            until_ns = time_next_ns.get(ident, 0)
            # What came after the heartbeat may be what the row shows.
            alone = self._all_by_heartbeat is not False and self._to_look_at.get(ident, True)
            is_longer = (by_heartbeat and alone) or lease.until_ns == UNKNOWN_NS
            # The row says what is known, or the message was sent again since the question.
            if lease.until_ns == until_ns or lease.until_ns != asked.until_ns:
                # Its time may have come meanwhile, when it was not let end.
                self._note_end(lease.until_ns, (ident,))
            elif until_ns > max(lease.until_ns, 0) and is_longer:
                prolonged.append(self._set_end(lease, until_ns))
            else:
                self._remove(lease)
                given_back.append(lease)
        return given_back, prolonged

    def look_failed(self, now_ns: int) -> None:
        """Note that a question had no answer; it is asked again only about leases whose ends are unknown.

        The others end by themselves; until then the rows count as held, which sends nothing twice.
        """
        looking_at, self._looking_at = self._looking_at or {}, None
        for ident in looking_at:
            lease = self.get(ident)
            if lease is not None:
                is_unknown = lease.until_ns == UNKNOWN_NS
                end_ns = now_ns + ASK_AGAIN_NS if is_unknown else lease.until_ns
                self._note_end(end_ns, (ident,))

    # What is left by a receiver whose connection has ended

    def left(self, receiver: int, due_ns: int) -> tuple[list[Lease], bool]:
        """Return LOOK_IDS_MAX leases of *receiver*, at most, that end after *due_ns*.

        And whether there are more, or such as are to be looked at first.
        """
        found: list[Lease] = []
        is_more = False
        for ident, until_ns in self._ends_ns.get(receiver, {}).items():
            if len(found) == LOOK_IDS_MAX:
                return found, True
            is_unknown = until_ns == UNKNOWN_NS
            if until_ns > due_ns or is_unknown:
                if is_unknown or self._is_suspect(ident):
                    is_more = True
                else:
                    found.append(Lease(until_ns, ident, receiver))
        return found, is_more
