"""The keys of one shard's messages that will be due soonest, and what a poll must find out.

Keys only, at most ``limit`` of them, due or not: a key in the future is a timer. They lie in
the lanes of their priority (`engine.messaging.lanes`), of which everything in ``[floor, horizon]`` is
here. Beyond that nothing is added: such a key would stand before keys that are not known, so
it waits to be polled. A sooner key that finds the queue full evicts the latest one, which
narrows that lane.

A key that a claim or a release has taken is *in flight* until that has ended. A poll may still
see it as due, and an ack or a new time that comes meanwhile counts when the flight ends. While a
poll runs, every change is remembered, whether the queue had room for it or not: the poll's
answer may be older.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.lanes import Lane, Tier
from streamfrom.engine.messaging.message import MessageKey
from streamfrom.engine.messaging.poll import FOREVER_NS, NOTHING_NS, PollRequest


if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from streamfrom.engine.messaging.poll import PollResult


# A row that a claim did not get is another proxy's, acked, or locked by a consumer that is
# acking it. If a poll still shows it due, it is locked: another try a second later.
NOT_WON_PAUSE_NS: Final = 10**9
# A lane whose known part ends is polled again this early, so that its next keys are here
# when they are due, however slow the poll.
POLL_LEAD_NS: Final = 10**9


class Removed:
    """What became of a message whose key was in flight: it was acked or deleted."""


REMOVED: Final = Removed()


class ShardQueue:
    """The keys of one shard that are due soonest. Pure: no clock, no I/O; times come in as arguments."""

    def __init__(self, limit: int, *, newest: bool = False) -> None:
        self._limit = limit
        self._newest = newest
        self._keys: dict[bytes, MessageKey] = {}
        self._tiers: dict[int, Tier] = {}
        self._in_flight: dict[bytes, MessageKey | Removed | None] = {}
        # id → not to be tried before; in order of that moment, and never more than the limit.
        self._not_won_until: OrderedDict[bytes, int] = OrderedDict()
        # What changed while a poll runs, by id: the key as it is now, None if it does not wait.
        self._changed: dict[bytes, MessageKey | None] | None = None

    def __len__(self) -> int:
        """Return how many keys wait; those in flight do not count."""
        return len(self._keys)

    def __contains__(self, ident: bytes) -> bool:
        return ident in self._keys

    def get(self, ident: bytes) -> MessageKey | None:
        """Return the key that waits under *ident*."""
        return self._keys.get(ident)

    @property
    def in_flight(self) -> int:
        """Return how many keys are in flight."""
        return len(self._in_flight)

    # What is heard of messages

    def add(self, key: MessageKey, now_ns: int) -> None:
        """Take *key* as the latest truth about its id; one beyond the horizon is not kept."""
        if key.id in self._in_flight:
            self._in_flight[key.id] = key
            return
        self._forget(key.id)
        self._admit(key)
        self._shrink(now_ns)

    def remove(self, ident: bytes) -> None:
        """Forget an id that was acked or deleted; unknown ones are fine."""
        if ident in self._in_flight:
            self._in_flight[ident] = REMOVED
        else:
            self._forget(ident)

    def clear(self) -> None:
        """Drop all keys but those in flight; the next poll starts from nothing."""
        self._keys.clear()
        self._tiers.clear()
        self._not_won_until.clear()

    def configure(self, limit: int, *, newest: bool, now_ns: int) -> None:
        """Follow changed settings; a new order starts from nothing."""
        self._limit = limit
        if newest != self._newest:
            self._newest = newest
            self.clear()
        self._shrink(now_ns)

    # What is due

    def due(self, now_ns: int, *, at_most: int) -> int:
        """Return how many keys are due, counted up to *at_most*."""
        count = 0
        for tier in self._tiers.values():
            count += len(tier.fresh) + tier.timed.due(now_ns)
            if count >= at_most:
                return at_most
        return count

    def first_ns(self) -> int | None:
        """Return the moment the first key is due (0: a fresh one), or None without keys."""
        moments = [
            lane.keys[0].time_next_ns
            for tier in self._tiers.values()
            for lane in (tier.fresh, tier.timed)
            if lane.keys
        ]
        return min(moments, default=None)

    def take(self, rows_max: int, now_ns: int) -> list[MessageKey]:
        """Return up to *rows_max* due keys in the order to send them; they are in flight."""
        taken: list[MessageKey] = []
        for priority in sorted(self._tiers):
            room = rows_max - len(taken)
            if room == 0:
                break
            taken += self._tiers[priority].take(room, now_ns, newest=self._newest)
        for key in taken:
            del self._keys[key.id]
            self._in_flight[key.id] = None
            if self._changed is not None and key.id in self._changed:
                self._changed[key.id] = None
        return taken

    # Keys in flight

    def put_in_flight(self, ident: bytes) -> MessageKey | None:
        """Put one id in flight, wherever it is; return its key if it was waiting."""
        key = self._keys.get(ident)
        self._forget(ident)
        self._in_flight.setdefault(ident, None)
        return key

    def requeue(
        self, ident: bytes, key: MessageKey | None, now_ns: int
    ) -> MessageKey | Removed | None:
        """End the flight of *ident* and queue *key*, unless something came in meanwhile.

        Return what came in: a key that was added (that one is queued then), REMOVED, or None.
        """
        meanwhile = self._in_flight.pop(ident, None)
        self._note(ident, None)
        queued = meanwhile if meanwhile is not None else key
        if isinstance(queued, MessageKey):
            self.add(queued, now_ns)
        return meanwhile

    def not_won(self, ident: bytes, now_ns: int) -> None:
        """End the flight of an id whose row the claim did not win."""
        meanwhile = self._in_flight.pop(ident, None)
        if isinstance(meanwhile, MessageKey):
            self.add(meanwhile, now_ns)
        elif meanwhile is None:
            self._not_won_until.pop(ident, None)
            self._not_won_until[ident] = now_ns + NOT_WON_PAUSE_NS
            if len(self._not_won_until) > self._limit:
                self._not_won_until.popitem(last=False)

    # Polls

    def poll_started(self, now_ns: int) -> PollRequest:
        """Return what to ask for; one poll at a time."""
        self._changed = {}
        while self._not_won_until and next(iter(self._not_won_until.values())) <= now_ns:
            self._not_won_until.popitem(last=False)
        behind = (priority for priority, tier in self._tiers.items() if tier.is_behind(now_ns))
        return PollRequest(
            limit=self._limit,
            extra=len(self._in_flight) + len(self._not_won_until),
            newest=self._newest,
            overloaded=frozenset(behind),
        )

    def poll_failed(self) -> None:
        """Note that the running poll brings nothing."""
        self._changed = None

    def poll_finished(self, result: PollResult, now_ns: int) -> None:
        """Replace what was known before the poll started by what it found."""
        changed = self._changed or {}
        self._changed = None
        turns = {priority: tier.fresh_first for priority, tier in self._tiers.items()}
        self._keys.clear()
        self._tiers.clear()
        for read in result.tiers:
            tier = self._tier(read.priority)
            tier.fresh_first = turns.get(read.priority, True)
            tier.fresh.narrow(
                0, NOTHING_NS if read.fresh_more else FOREVER_NS, more=read.fresh_more
            )
            tier.timed.narrow(read.floor_ns, read.horizon_ns, more=read.timed_more)
            self._fill(tier.fresh, self._usable(read.fresh, changed))
            self._fill(tier.timed, self._usable(read.timed, changed))
        for key in changed.values():
            # Also one that had no room: as far as the poll knows, there was no such row.
            if key is not None:
                self._admit(key)
        self._postpone_not_won(now_ns)
        self._shrink(now_ns)
        for tier in self._tiers.values():
            tier.fresh.full, tier.timed.full = len(tier.fresh), len(tier.timed)

    def _usable(
        self, keys: Iterable[MessageKey], changed: Container[bytes]
    ) -> list[MessageKey]:
        in_flight, known = self._in_flight, self._keys
        return [
            key
            for key in keys
            if key.id not in changed and key.id not in in_flight and key.id not in known
        ]

    def _fill(self, lane: Lane, keys: list[MessageKey]) -> None:
        lane.keys.update(keys)
        self._keys.update((key.id, key) for key in keys)

    def _postpone_not_won(self, now_ns: int) -> None:
        """Turn rows that a claim did not win a moment ago, and that are still due, into timers."""
        for ident, not_before_ns in self._not_won_until.items():
            key = self._keys.get(ident)
            if key is not None and key.time_next_ns <= now_ns < not_before_ns:
                self._forget(ident)
                self._admit(key._replace(time_next_ns=not_before_ns))

    def wants_poll(self, now_ns: int) -> bool:
        """Return whether rows that were left out are needed now."""
        wanted_ns = self.next_poll_ns()
        return wanted_ns is not None and wanted_ns <= now_ns

    def next_poll_ns(self) -> int | None:
        """Return when rows that were left out will be needed (0: at once), if any are."""
        moments = []
        for tier in self._tiers.values():
            if tier.fresh.is_low():
                return 0
            if tier.timed.is_low():
                narrowed = tier.timed.floor_ns > 0
                moments.append(0 if narrowed else tier.timed.horizon_ns - POLL_LEAD_NS)
        return min(moments, default=None)

    # Inside

    def _tier(self, priority: int) -> Tier:
        tier = self._tiers.get(priority)
        if tier is None:
            tier = self._tiers[priority] = Tier()
        return tier

    def _note(self, ident: bytes, key: MessageKey | None) -> None:
        if self._changed is not None:
            self._changed[ident] = key

    def _admit(self, key: MessageKey) -> None:
        self._note(key.id, key)
        lane = self._tier(key.priority).lane(key)
        if lane.admits(key):
            lane.keys.add(key)
            self._keys[key.id] = key

    def _forget(self, ident: bytes) -> None:
        self._note(ident, None)
        key = self._keys.pop(ident, None)
        if key is not None:
            self._tiers[key.priority].lane(key).keys.remove(key)

    def _shrink(self, now_ns: int) -> None:
        while len(self._keys) > self._limit:
            self._evict(now_ns)

    def _evict(self, now_ns: int) -> None:
        """Give up the key that will be needed last, and what lies beyond it."""
        last: Lane | None = None
        for tier in self._tiers.values():
            if tier.timed.keys and (
                last is None or tier.timed.keys[-1].time_next_ns > last.keys[-1].time_next_ns
            ):
                last = tier.timed
        if last is None or last.keys[-1].time_next_ns <= now_ns:
            # All are due: the least urgent tier gives, from its longer lane.
            tier = self._tiers[
                max(p for p, t in self._tiers.items() if t.fresh.keys or t.timed.keys)
            ]
            last = max(tier.fresh, tier.timed, key=len)
            if len(tier.fresh) == len(tier.timed) and tier.fresh_first:
                last = tier.timed
        if self._newest and 0 < last.keys[-1].time_next_ns <= now_ns:
            victim = last.keys.pop(0)
            last.narrow(victim.time_next_ns + 1, last.horizon_ns, more=True)
        else:
            victim = last.keys.pop()
            # A tie at the new edge may stay; new ones may join it, and are no loss either.
            horizon_ns = victim.time_next_ns if victim.time_next_ns > 0 else NOTHING_NS
            last.narrow(last.floor_ns, horizon_ns, more=True)
        last.full = len(last)
        del self._keys[victim.id]
