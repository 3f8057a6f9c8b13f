"""Which stream holds which messages of one shard, and until when.

A receiver *holds* a message from its delivery until it is acked, deleted or rescheduled, or until its *lease* ends. A lease ends
at the ``time_next`` that its claim or a later heartbeat wrote, or later if the stream makes progress
(`engine.messaging.streams.stream_order`). Pure: no clock, no I/O.

A message is in two dicts: from ids to batches, and from a batch's ids to their ends. They hold only numbers and
bytes: one `Lease` per message, which the garbage collector walks, made a drain 4 % dearer. The
heap has batches, because nearly all messages are acked before the first of their batch would end,
and the heap is then never touched.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.streams.stream_order import NOBODY, Batch, Streams
from streamfrom.engine.messaging.table.message import FOREVER_NS, LeaseWrite


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey
    from streamfrom.engine.sharding.keyspace import ShardName


# Below this size a heap is not worth rebuilding.
STALE_MIN: Final = 1000
# Ids in one query for the rows of held messages: no more than a claim has.
LOOK_IDS_MAX: Final = 500
# The end of a lease that a former dispatcher gave and only the row shows. Sorts before every other.
UNKNOWN_NS: Final = -1
# When to read the rows of these leases again after a failed query.
ASK_AGAIN_NS: Final = 250 * 10**6
# How many ended leases to remember, because their former consumers may still act on the messages.
LOST_MAX: Final = 10_000
# If a million leases end at once, one turn of the loop ends no more than these.
ENDED_MAX: Final = 1000
# The leases of a batch are brought up to date this long before the first one ends, or this part of the wait if that is
# shorter. The successor of a dispatcher that dies takes over within that time, and so it finds no row due that a
# consumer still works on.
AHEAD_NS: Final = 5 * 10**9
AHEAD_PART: Final = 4


class Lease(NamedTuple):
    """A message in flight: *receiver* holds it until a moment in nanoseconds since 1970, which its row shows or soon will."""

    until_ns: int
    id: bytes
    receiver: int


class Leases:
    """The messages of one shard that streams hold.

    The caller counts how many messages a receiver holds on all shards; methods that end leases return them.

    shown_ns: the end that the row shows, by id, of leases that were extended since.
    tried_ns: ends that are being written to rows, or were tried with an unknown outcome.
    unwritten: messages whose rows do not show that they were sent (`engine.messaging.leases.unwritten_leases`).
    """

    def __init__(
        self,
        streams: Streams | None = None,
        shard: ShardName = "",
        unwritten: Container[bytes] = (),
    ) -> None:
        self.shown_ns: Final[dict[bytes, int]] = {}
        self.tried_ns: Final[dict[bytes, int]] = {}
        self._streams = streams or Streams()
        self._shard = shard
        self._unwritten = unwritten
        self._batches: dict[bytes, Batch] = {}  # by message
        # A moment, a number that distinguishes entries, and the batch to look at, or the message of it.
        self._looks: list[tuple[int, int, Batch, bytes | None]] = []
        self._numbers = 0
        # The receivers whose lease of a message has ended, the latest one last.
        self._lost: dict[bytes, tuple[int, ...]] = {}
        # Rows that a commit may have changed, and whether it can only have been a heartbeat. In the order of
        # the commits, because a seed of the simulator must give one history.
        self._to_look_at: dict[bytes, bool] = {}
        self._all_keep: bool | None = None  # all that are held are suspect; None if not
        # The lease, whether it can only have been a heartbeat, the ends that the row may show, and whether it shows no lease.
        self._looking_at: dict[bytes, tuple[Lease, bool, tuple[int, ...], bool]] | None = None

    def __len__(self) -> int:
        """Return how many messages are held."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Lease]:
        for ident, batch in self._batches.items():
            yield Lease(batch.ends_ns[ident], ident, batch.stream.receiver)

    @property
    def of_clients(self) -> int:
        """Return how many are of this process's own clients."""
        return sum(batch.stream.receiver > 0 for batch in self._batches.values())

    @property
    def looks(self) -> int:
        """Return how many moments for a look at leases are planned, stale ones among them."""
        return len(self._looks)

    def ids_of(self, receiver: int) -> Collection[bytes]:
        """Return which messages *receiver* holds."""
        return [ident for batch in self._of(receiver) for ident in batch.ends_ns]

    def _of(self, receiver: int) -> list[Batch]:
        """Return the batches that *receiver* was sent of this shard, in the order of sending."""
        stream = self._streams.get(receiver)
        return (
            [batch for batch in stream.batches if batch.shard == self._shard] if stream else []
        )

    def get(self, ident: bytes) -> Lease | None:
        """Return the lease of a message; None without one."""
        batch = self._batches.get(ident)
        return (
            None if batch is None else Lease(batch.ends_ns[ident], ident, batch.stream.receiver)
        )

    def is_sure(self, ident: bytes, now_ns: int) -> bool:
        """Return whether a message is certainly held: its lease has not ended, and no commit may have changed its row."""
        batch = self._batches.get(ident)
        if batch is None or self.is_suspect(ident):
            return False
        return batch.ends_ns[ident] + batch.lag_ns > now_ns

    def since_ns(self, receiver: int) -> int | None:
        """Return when the first of the messages that *receiver* holds was sent; None without any."""
        return min((batch.sent_ns for batch in self._of(receiver)), default=None)

    # Messages come and go

    def give(
        self,
        receiver: int,
        rows: Iterable[ClaimedRow],
        now_ns: int = 0,
        row: int = 0,
        since_ns: int | None = None,
    ) -> list[Lease]:
        """Note that *receiver* holds *rows* from now on; return the leases of other receivers that this ends.

        row: how many rows it was sent from here before.
        since_ns: the earliest start of their leases, if not now.
        """
        ends_ns = {row.id: row.due_next_ns for row in rows}
        replaced: list[Lease] = []
        # Rare: a message must be sent again while its lease here runs. One set
        # operation checks a whole batch.
        if not self._batches.keys().isdisjoint(ends_ns):
            replaced = [
                lease for ident in ends_ns if (lease := self.give_back(ident)) is not None
            ]
        base_ns = now_ns if since_ns is None else since_ns
        self._add(self._streams.sent(receiver, self._shard, ends_ns, now_ns, base_ns, row))
        return replaced

    def found(self, until_ns: Mapping[bytes, int], now_ns: int) -> None:
        """Note messages that a former dispatcher has in flight. Each is looked at, as it may have been acked meanwhile."""
        for ident, end_ns in until_ns.items():
            lease = self.get(ident)
            if lease is not None and lease.until_ns == UNKNOWN_NS:
                self._set_end(ident, end_ns)
                self.suspect((ident,), keeps_leases=True)
        ends_ns = {i: end_ns for i, end_ns in until_ns.items() if i not in self._batches}
        if ends_ns:
            self._add(self._streams.sent(NOBODY, self._shard, ends_ns, now_ns, FOREVER_NS))
            self.suspect(ends_ns, keeps_leases=True)

    def take_over(self, receiver: int, idents: Iterable[bytes], now_ns: int) -> int:
        """Note that *receiver* holds messages that a former dispatcher sent to it; return how many.

        Messages that another receiver holds were sent again since, and are left out. The rows of all others are read:
        acked ones are given back, and the other leases end when their rows show it, or later by the stream's progress.
        """
        known = self._batches
        new = [
            i
            for i in dict.fromkeys(idents)
            if i not in known or known[i].stream.receiver == NOBODY
        ]
        if new:
            ends_ns = {i: known[i].ends_ns[i] if i in known else UNKNOWN_NS for i in new}
            self.give_back_all(new)
            self._add(self._streams.sent(receiver, self._shard, ends_ns, now_ns, FOREVER_NS))
            self.suspect(new, keeps_leases=True)
        return len(new)

    def _add(self, batch: Batch) -> None:
        self._batches.update(dict.fromkeys(batch.ends_ns, batch))
        batch.stream.batches[batch] = None
        self._note_look(batch)

    def forget_found(self) -> None:
        """Forget the messages that a former dispatcher has in flight."""
        self.give_back_all(self.ids_of(NOBODY))

    def give_back(self, ident: bytes) -> Lease | None:
        """End the lease of a message and return it; None without one."""
        lease = self.get(ident)
        if lease is not None:
            self.give_back_all((ident,))
        return lease

    def give_back_all(
        self, idents: Iterable[bytes], progress_ns: int | None = None
    ) -> dict[Batch, int]:
        """End the leases of messages; return how many of each batch these were.

        progress_ns: this moment, if it counts as progress of their streams.
        """
        known, shown_ns, tried_ns = self._batches, self.shown_ns, self.tried_ns
        lost, looking_at = self._lost, self._looking_at
        counts: dict[Batch, int] = {}
        reached: dict[Batch, None] = {}
        late: dict[Batch, None] = {}
        for ident in idents:
            batch = known.get(ident)
            if batch is None:
                # A consumer that has lost its lease acts on the message.
                if progress_ns is not None and lost and (losers := lost.pop(ident, ())):
                    self._streams.progressed_by(losers[-1], progress_ns)
                continue
            ends_ns = batch.ends_ns
            if progress_ns is not None:
                if lost and self._is_late(lost.pop(ident, ()), batch):
                    late[batch] = None
                    # Its own consumer still has it ahead.
                    lost[ident] = (batch.stream.receiver,)
                else:
                    reached[batch] = None
                    if next(iter(ends_ns)) != ident:
                        self._pass(batch, ident)
            del known[ident], ends_ns[ident]
            counts[batch] = counts.get(batch, 0) + 1
            if shown_ns:
                shown_ns.pop(ident, None)
            if tried_ns:
                tried_ns.pop(ident, None)
            if looking_at:  # The message was sent again, so its row has changed.
                looking_at.pop(ident, None)
        if progress_ns is not None:
            self._streams.reached(reached, progress_ns)
            for batch in late:
                batch.stream.progressed(progress_ns)
        for batch in counts:
            self._gone(batch)
        return counts

    def _is_late(self, losers: Iterable[int], batch: Batch) -> bool:
        """Return whether one of *losers*, whose leases had ended, may have acted, and not the stream that holds *batch* now.

        If so, nothing is overtaken, because that stream need not have reached the message.
        """
        attached, holder = self._streams.attached, batch.stream.receiver
        return any(loser != holder and loser in attached for loser in losers)

    def _gone(self, batch: Batch) -> None:
        if not batch.ends_ns:
            self._streams.gone(batch)

    def progress(self, idents: Iterable[bytes], now_ns: int) -> None:
        """Note that streams have made progress with messages that they still hold."""
        batches: dict[Batch, None] = {}
        for ident in idents:
            batch = self._batches.get(ident)
            if batch is None:
                continue
            if self._is_late(self._lost.get(ident, ()), batch):
                batch.stream.progressed(now_ns)
            else:
                self._pass(batch, ident)
                batches[batch] = None
        # Their rows are looked at first, to compare them with the known ends.
        self._streams.reached(batches, now_ns, renews=False)

    def _pass(self, batch: Batch, ident: bytes) -> None:
        """Mark the messages of a batch that were sent before *ident* as overtaken."""
        if (passed := batch.passed(ident)) is not None:
            self._add(passed)

    def give_back_of(self, receiver: int, ident: bytes) -> Lease | None:
        """End the lease of a message if *receiver* has it, and return it. It may have been sent again since."""
        batch = self._batches.get(ident)
        return (
            self.give_back(ident)
            if batch is not None and batch.stream.receiver == receiver
            else None
        )

    def shorten(self, idents: Iterable[bytes], until_ns: int) -> None:
        """Make leases end at *until_ns*, whatever progress follows."""
        for ident in idents:
            if ident in self._batches:
                self._set_end(ident, until_ns, follows=False)

    # Their ends

    def renew(self, batch: Batch) -> list[tuple[bytes, int, int]]:
        """Bring the leases of a batch up to date; return the extended ones, each with its former and its new end."""
        lag_ns, ends_ns = batch.lag_ns, batch.ends_ns
        if not (lag_ns and ends_ns):
            return []
        renewed = [(ident, end_ns, end_ns + lag_ns) for ident, end_ns in ends_ns.items()]
        batch.base_ns += lag_ns
        for ident, _, end_ns in renewed:
            ends_ns[ident] = end_ns
        self._note_look(batch)
        return renewed

    def clock_set_back(self, by_ns: int) -> list[tuple[bytes, int, int]]:
        """Keep the remaining time of each lease; return all whose end is known, with their former and new ends."""
        moved: list[tuple[bytes, int, int]] = []
        for batch in dict.fromkeys(self._batches.values()):
            known = {i: end_ns for i, end_ns in batch.ends_ns.items() if end_ns != UNKNOWN_NS}
            moved += [(ident, end_ns, end_ns - by_ns) for ident, end_ns in known.items()]
            batch.clock_set_back(known, by_ns)
            self._note_look(batch)
        return moved

    def next_write(self, ident: bytes, timer: MessageKey | None) -> LeaseWrite:
        """Return the write that makes the row of a message show its lease.

        timer: the message's, if its row shows no lease so far.
        """
        tried_ns, batch = self.tried_ns.get(ident), self._batches.get(ident)
        shown_ns = self._may_show(ident)
        # An earlier write whose outcome is unknown may have reached the row, so it is tried again.
        if tried_ns is None:
            tried_ns = timer.time_next_ns if timer is not None else 0
            if batch is not None:
                tried_ns = self.tried_ns[ident] = batch.ends_ns[ident]
        return LeaseWrite(ident, tried_ns, shown_ns, timer is not None)

    def _may_show(self, ident: bytes) -> tuple[int, ...]:
        """Return the ends that the row of a message may show instead of its lease."""
        known = (self.shown_ns.get(ident), self.tried_ns.get(ident))
        return tuple(ns for ns in known if ns is not None)

    def longer_than_shown(self) -> dict[bytes, int]:
        """Return the ends of the leases that were extended beyond their rows."""
        return {one: self._batches[one].ends_ns[one] for one in self.shown_ns}

    def not_written(self, idents: Iterable[bytes]) -> None:
        """Note that rows do not show the ends from `next_write`."""
        for ident in idents:
            self.tried_ns.pop(ident, None)

    def written(self, idents: Iterable[bytes]) -> list[bytes]:
        """Note that rows show the ends from `next_write`; return the messages whose leases have changed meanwhile."""
        late = []
        for ident in idents:
            shows_ns, batch = self.tried_ns.pop(ident, None), self._batches.get(ident)
            self.shown_ns.pop(ident, None)
            if batch is not None and shows_ns is not None and batch.ends_ns[ident] != shows_ns:
                self.shown_ns[ident] = shows_ns
                late.append(ident)
        return late

    def lagging(self, idents: Iterable[bytes] | None) -> list[Batch]:
        """Return the batches of *idents*, or of all messages, whose leases are not up to date."""
        known = self._batches
        found = dict.fromkeys(
            known.values()
            if idents is None
            else (known[ident] for ident in idents if ident in known)
        )
        return [batch for batch in found if batch.lag_ns]

    def lagging_ids(self, idents: Iterable[bytes] | None) -> set[bytes]:
        """Return the messages of these batches."""
        return {ident for batch in self.lagging(idents) for ident in batch.ends_ns}

    def ended(self, now_ns: int) -> list[Lease]:
        """End leases that are over, about ENDED_MAX at a time, and return them.

        If a commit may have changed a row, its lease first waits for the row, which may show a later end. Leases that
        their streams' progress extends are among `Streams.renewable` afterwards.
        """
        ended: list[Lease] = []
        looks = self._looks
        while looks and looks[0][0] <= now_ns and len(ended) < ENDED_MAX:
            look_ns, _, batch, ident = heapq.heappop(looks)
            if ident is not None:
                batch = self._batches.get(ident, batch)
            if not self._is_to_come(look_ns, batch, ident):
                continue
            if batch.lag_ns:
                batch.look_ns = 0
                self._streams.renewable.append(batch)
            elif ident is not None:
                self._end_of(batch, (ident,), now_ns, ended)
            else:
                batch.look_ns = 0
                if batch.overtaken_ns is None:
                    batch.stream.expiring.append(batch)
                self._end_of(batch, batch.ends_ns, now_ns, ended)
        return ended

    def _end_of(
        self, batch: Batch, idents: Iterable[bytes], now_ns: int, ended: list[Lease]
    ) -> None:
        over: list[bytes] = []
        attached = self._streams.attached
        for ident in idents:
            end_ns = batch.ends_ns[ident]
            # A suspect one gets its entry again from `looked` or `look_failed`.
            if self.is_suspect(ident):
                continue
            if end_ns == UNKNOWN_NS:
                self.suspect((ident,), keeps_leases=True)
            elif end_ns <= now_ns:
                ended.append(Lease(end_ns, ident, batch.stream.receiver))
                over.append(ident)
                receiver = batch.stream.receiver
                before = self._lost.get(ident, ())
                others = (one for one in before if one != receiver and one in attached)
                self._lost[ident] = (*others, receiver)
            else:
                self._note(end_ns, batch, ident)
        self.give_back_all(over)
        while len(self._lost) > LOST_MAX:
            del self._lost[next(iter(self._lost))]

    def first_look_ns(self) -> int | None:
        """Return when to look for leases that have ended or need to be brought up to date; None if nothing is held."""
        looks = self._looks
        while looks:
            look_ns, _, batch, ident = looks[0]
            # Acks leave the heap alone, because a removal is O(n). Stale entries are dropped
            # when they reach the front.
            if self._is_to_come(look_ns, batch, ident):
                return look_ns
            heapq.heappop(looks)
        return None

    def _is_to_come(self, look_ns: int, batch: Batch, ident: bytes | None) -> bool:
        if ident is None:
            return batch.look_ns == look_ns and bool(batch.ends_ns)
        # No message of a batch that is looked at as a whole is looked at individually.
        held = self._batches.get(ident)
        return held is not None and not held.look_ns

    def _set_end(
        self, ident: bytes, until_ns: int, now_ns: int = 0, *, follows: bool = True
    ) -> Lease:
        """Make a lease end at *until_ns*, or later by progress if it *follows* that.

        now_ns: this moment if the message itself makes progress.
        """
        batch = self._batches[ident]
        self.tried_ns.pop(ident, None)
        self.shown_ns.pop(ident, None)
        is_late = self._is_late(self._lost.get(ident, ()), batch)
        behind = batch.behind(ident) if is_late else None
        alone = self._streams.alone(batch, ident, until_ns, now_ns, follows=follows)
        self._add(alone)
        if behind is not None:
            self._add(behind)
        batch.stream.put(alone, batch, behind, is_first=not is_late)
        self._gone(batch)
        return Lease(until_ns, ident, batch.stream.receiver)

    def _note_look(self, batch: Batch) -> None:
        """Plan a look at a batch before its first lease ends."""
        first_ns = min(batch.ends_ns.values())
        wait_ns = max(0, first_ns - batch.base_ns)
        batch.look_ns = max(1, first_ns - min(AHEAD_NS, wait_ns // AHEAD_PART))
        self._note(batch.look_ns, batch, None)

    def _note_end(self, ident: bytes, end_ns: int) -> None:
        """Plan a look at a lease that has not ended, unless its whole batch is looked at."""
        batch = self._batches[ident]
        if not batch.look_ns:
            self._note(end_ns, batch, ident)

    def _note(self, look_ns: int, batch: Batch, ident: bytes | None) -> None:
        self._numbers += 1
        heapq.heappush(self._looks, (look_ns, self._numbers, batch, ident))
        # Stale entries outnumber the messages: rebuilding the heap costs O(n) once for at least n
        # acks.
        if len(self._looks) > 2 * len(self) + STALE_MIN:
            self._looks = [look for look in self._looks if self._is_to_come(look[0], *look[2:])]
            heapq.heapify(self._looks)

    # Rows that a commit may have changed

    def suspect(self, idents: Iterable[bytes] | None, *, keeps_leases: bool = False) -> None:
        """Note that the rows of *idents*, or any, may be acked, deleted or rescheduled.

        keeps_leases: the change can only extend leases.
        """
        if idents is None:
            # The ids are collected when the look begins. So a commit costs nothing here,
            # however many messages are held.
            self._all_keep = keeps_leases and self._all_keep is not False
            return
        for ident in idents:
            if ident in self._batches:
                self._to_look_at[ident] = keeps_leases and self._to_look_at.get(ident, True)

    def suspect_all_but(self, receivers: Container[int]) -> None:
        """Note that rows may be acked or held for longer, but those of *receivers*, which are about to be shortened."""
        others = (
            i for i, batch in self._batches.items() if batch.stream.receiver not in receivers
        )
        self.suspect(others, keeps_leases=True)

    def is_suspect(self, ident: bytes) -> bool:
        """Return whether a commit may have changed the row of a held message, so that it must be read."""
        return (
            self._all_keep is not None
            or ident in self._to_look_at
            or (self._looking_at is not None and ident in self._looking_at)
        )

    @property
    def is_to_look(self) -> bool:
        """Return whether rows of held messages are to be read."""
        return bool(self._to_look_at) or self._all_keep is not None

    def next_look(self) -> tuple[bytes, ...]:
        """Return the held messages whose rows must be read now. One query runs at a time."""
        if self._looking_at is not None:
            return ()
        if self._all_keep is not None and not self._to_look_at:
            self._to_look_at = dict.fromkeys(self._batches, self._all_keep)
            self._all_keep = None
        looking_at: dict[bytes, tuple[Lease, bool, tuple[int, ...], bool]] = {}
        while self._to_look_at and len(looking_at) < LOOK_IDS_MAX:
            ident = next(iter(self._to_look_at))
            keeps_leases = self._to_look_at.pop(ident)
            lease = self.get(ident)
            if lease is not None:
                may_show, is_unwritten = self._may_show(ident), ident in self._unwritten
                looking_at[ident] = lease, keeps_leases, may_show, is_unwritten
        if not looking_at:
            return ()
        self._looking_at = looking_at
        return tuple(looking_at)

    def looked(
        self, time_next_ns: Mapping[bytes, int], now_ns: int
    ) -> tuple[list[Lease], list[Lease]]:
        """Process the query's result: when the unacked rows are due.

        If a row is gone, acked, or due at another time, its message has been given back, and the first list has its
        lease. If a heartbeat has extended it, the second list has the new lease. A message that was sent again
        meanwhile is ignored. Both cases count as progress.
        """
        given_back, prolonged = [], []
        looking_at, self._looking_at = self._looking_at or {}, None
        for ident, (asked, keeps_leases, shown_ns, is_unwritten) in looking_at.items():
            lease = self.get(ident)
            if lease is None:
                continue
            until_ns = time_next_ns.get(ident, 0)
            if is_unwritten and ident in time_next_ns and until_ns <= now_ns:
                until_ns = lease.until_ns  # the row cannot show it
            # The row may show a change that came after the heartbeat.
            alone = self._all_keep is not False and self._to_look_at.get(ident, True)
            is_unknown = lease.until_ns == UNKNOWN_NS
            known_ns = {asked.until_ns, lease.until_ns, *shown_ns, *self._may_show(ident)}
            known_ns.discard(UNKNOWN_NS)
            was_unknown = asked.until_ns == UNKNOWN_NS
            if until_ns in known_ns or (was_unknown and not is_unknown):
                # Its time may have come meanwhile, while it was kept from ending.
                self._note_end(ident, lease.until_ns)
            elif is_unknown and until_ns > 0:
                prolonged.append(self._set_end(ident, until_ns))
            elif not is_unknown and keeps_leases and alone and until_ns > min(known_ns):
                # A heartbeat may have found a row without its lease. It shortens no lease.
                self.progress((ident,), now_ns)
                end_ns = max(until_ns, lease.until_ns)
                prolonged.append(self._set_end(ident, end_ns, now_ns))
                if end_ns > until_ns:
                    self.shown_ns[ident] = until_ns
            else:
                self.give_back_all((ident,), None if is_unknown else now_ns)
                given_back.append(lease)
        return given_back, prolonged

    def look_failed(self, now_ns: int) -> None:
        """Note that a query failed. It is repeated only for leases whose ends are unknown.

        The other leases end on their own. Until then the messages count as held, so nothing is sent twice.
        """
        looking_at, self._looking_at = self._looking_at or {}, None
        for ident in looking_at:
            lease = self.get(ident)
            if lease is not None:
                is_unknown = lease.until_ns == UNKNOWN_NS
                end_ns = now_ns + ASK_AGAIN_NS if is_unknown else lease.until_ns
                self._note_end(ident, end_ns)

    # Messages left by a receiver whose connection has ended

    def left(self, receiver: int, due_ns: int) -> tuple[list[Lease], bool]:
        """Return up to LOOK_IDS_MAX leases of *receiver* that end after *due_ns*.

        Also return whether there are more, or some whose rows must be looked at first.
        """
        found: list[Lease] = []
        is_more = False
        ends_ns = (batch.ends_ns.items() for batch in self._of(receiver))
        for ident, until_ns in chain.from_iterable(ends_ns):
            if len(found) == LOOK_IDS_MAX:
                return found, True
            is_unknown = until_ns == UNKNOWN_NS
            if until_ns > due_ns or is_unknown:
                if is_unknown or self.is_suspect(ident):
                    is_more = True
                else:
                    found.append(Lease(until_ns, ident, receiver))
        return found, is_more
