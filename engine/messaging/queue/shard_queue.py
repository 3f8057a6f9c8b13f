"""The message keys of one shard that will be due soonest, and what a poll must find out.

The queue has at most ``limit`` keys, due or not; a key in the future is a timer. They lie in
the lanes of their priority (`engine.messaging.queue.lanes`). Everything in a lane's ``[floor, horizon]`` is
here. Beyond it nothing is added, because such a key would stand before keys that are not known; it
waits for a poll. A sooner key that finds the queue full evicts the latest one, which narrows
that lane.

Messages of keys that are read separately have their own lanes next to those of all others. These are
the keys that a stream names, and, if keys take turns, all known keys
(`engine.messaging.queue.lanes`).

A key that a claim or a release has taken is *in flight* until that has ended. A poll may still
see it as due, and an ack or a new time that arrives meanwhile counts when the flight ends. While a
poll runs, every change is remembered, whether the queue had room for it or not, because the poll's
answer may be older.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from streamfrom.engine.messaging.queue import poll
from streamfrom.engine.messaging.queue.lanes import KeyTurns, Lane, Tier
from streamfrom.engine.messaging.queue.span_walk import SpanWalk
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey


# A transaction that locks a due row usually acks another one, for as long as a commit takes. With a first pause of
# a second, a message was 1,004.6 ms late. A client's transaction may last longer.
LOCKED_PAUSE_FIRST_NS: Final = 10**6
LOCKED_PAUSE_LAST_NS: Final = 10**9
# A lane whose known part ends is polled this early, so that its next keys are here
# when they are due, however slow the poll.
POLL_LEAD_NS: Final = 10**9
# How many new messages have their keys read at once: a millisecond or two.
NEWS_AT_ONCE: Final = 500
# Up to this many messages do not wait for their keys if nothing else waits; among more, some may have other keys.
NEWS_ALONE_MAX: Final = 1


# The outcome for a message that was acked or deleted while its key was in flight.
REMOVED: Final = MessageKey(b"", 0, 0)


class LockedRow(NamedTuple):
    """A row that is due and was locked: how long it is left alone, and until when."""

    pause_ns: int
    until_ns: int


class ShardQueue:
    """The message keys of one shard that are due soonest. Pure: no clock, no I/O; times come in as arguments."""

    span_keys = poll.SPAN_KEYS
    low_keys = poll.LOW_KEYS

    def __init__(self, limit: int, *, newest: bool = False, fair: bool = False) -> None:
        self._limit = limit
        self._newest = newest
        self._fair = fair
        # If keys take turns: the key up to which polls have walked; how many due messages the last one left here, and
        # those of them that still wait; and new messages whose keys must be read, in the order in which they came.
        self._walked_to = b""
        self._left_full = 0
        self._left: set[bytes] = set()
        self.news: dict[bytes, None] = {}
        self._news_polled: tuple[bytes, ...] = ()
        self._is_polled = False  # since the keys were dropped
        # Whether some lane may have left rows out. Otherwise no poll is needed for them, a question that comes ten times per message.
        self._leaves_out = False
        self._keys: dict[bytes, MessageKey] = {}
        # By key, b"" for rows that are not read by key, and then by priority.
        self._tiers: dict[bytes, dict[int, Tier]] = {}
        self._turns = KeyTurns()
        # The keys that streams name.
        self.named: frozenset[bytes] = frozenset()
        self._named_polled = self.named  # when the running poll began
        self._in_flight: dict[bytes, MessageKey | None] = {}
        # The keys of messages in flight that a poll has found.
        self._flying_keys: dict[bytes, bytes] = {}
        # By id, the one tried longest ago first, and never more than the limit.
        self._locked: OrderedDict[bytes, LockedRow] = OrderedDict()
        # Sent messages whose rows do not show it (`engine.messaging.leases.unwritten_leases`).
        self.unwritten: dict[bytes, MessageKey] = {}
        # Messages whose leases end later than their rows show, and the ends in the rows (`engine.messaging.leases.leases`).
        self.renewed: dict[bytes, int] = {}
        # Returns when the leases of `renewed` end.
        self.renewed_until: Callable[[], Mapping[bytes, int]] = dict
        # Acked messages whose rows do not show it (`engine.messaging.acks.early_acks`).
        self.acked: dict[bytes, int] = {}
        # Messages that are next of their keys (`engine.messaging.order.key_order`); those not due yet are not in the lanes.
        self.following: dict[bytes, MessageKey] = {}
        # Messages whose rows the server refuses to write (`engine.messaging.gates.set_aside`), due when they are tried again.
        self.set_aside: dict[bytes, MessageKey] = {}
        self._walk = SpanWalk()
        # The last spans left rows out: there are many more rows than known keys.
        self.is_torn = False
        # Changes while a poll runs, by id: the key as it is now, None if it does not wait.
        self._changed: dict[bytes, MessageKey | None] | None = None

    def __len__(self) -> int:
        """Return how many keys wait, without those in flight."""
        return len(self._keys)

    def __contains__(self, ident: bytes) -> bool:
        return ident in self._keys

    def get(self, ident: bytes) -> MessageKey | None:
        """Return the key that waits under *ident*."""
        return self._keys.get(ident)

    @property
    def limit(self) -> int:
        """Return how many keys it holds at most."""
        return self._limit

    @property
    def is_whole(self) -> bool:
        """Return whether the last poll left nothing out, so that every unacked message is known."""
        return self._is_polled and not any(lane.more for lane in self._lanes())

    @property
    def parked(self) -> int:
        """Return how many of the keys are those of parked messages."""
        lanes = (tier.timed for tier in self._tiers_of(None))
        return sum(len(lane) - lane.due(PARKED_NS - 1) for lane in lanes)

    def is_in_flight(self, ident: bytes) -> bool:
        """Return whether a claim or a release of a message is under way."""
        return ident in self._in_flight

    @property
    def in_flight(self) -> int:
        """Return how many keys are in flight."""
        return len(self._in_flight)

    # News of messages

    def is_taken(self, ident: bytes) -> bool:
        """Return whether a message was taken, and its row has since shown neither a later state nor a written ack."""
        if ident in self.unwritten or ident in self.renewed or ident in self.acked:
            return True
        return self._in_flight.get(ident, REMOVED) is not REMOVED

    def add(self, key: MessageKey, now_ns: int) -> None:
        """Take *key* as the latest truth about its id. A key beyond the horizon is not kept."""
        if not key.key and (known := self._keys.get(key.id)) is not None:
            key = key._replace(key=known.key)
        if key.id in self.unwritten:
            self.unwritten[key.id] = key
        # A claim or a delivery of this id is under way. The news is kept as its
        # outcome, and `requeue` looks at it when the flight ends.
        if key.id in self._in_flight:
            self._in_flight[key.id] = key
            return
        self._forget(key.id)
        self._admit(key)
        self._shrink(now_ns)

    def hear(self, news: Sequence[MessageKey], now_ns: int) -> bool:
        """Take news of messages; return whether a poll must find some of them.

        If keys take turns and messages wait, their keys must be read before they get a turn.
        """
        is_apart = self._fair and (
            len(news) > NEWS_ALONE_MAX or self.due(now_ns, at_most=1) > 0 or bool(self.news)
        )
        is_lost = False
        for key in news:
            if not is_apart or key.id in self._keys or key.id in self._in_flight:
                self.add(key, now_ns)
            elif len(self.news) < self._limit:
                self._note(key.id, None)
                self.news[key.id] = None
            else:
                is_lost = True
        return is_lost

    def by_its_key(self, one: MessageKey) -> MessageKey:
        """Return a message under its key if the key is, or may be, read separately. Few are, because each claim looks at all of them."""
        is_apart = one.key in self.named or (
            self._fair and (one.key in self._tiers or len(self._tiers) < poll.KEYS_KNOWN_MAX)
        )
        return one if is_apart else one._replace(key=b"")

    def renew(self, ident: bytes, until_ns: int, now_ns: int) -> None:
        """Make a held message due at *until_ns*, unless something is under way with it.

        If the queue does not have it, a poll finds it: the queue may have been cleared because another process is the dispatcher now.
        """
        if ident in self._in_flight:
            return
        if (key := self._keys.get(ident)) is not None:
            self.add(key._replace(time_next_ns=until_ns), now_ns)
        elif (timer := self.unwritten.get(ident)) is not None:
            self.unwritten[ident] = timer._replace(time_next_ns=until_ns)

    def shown(self, ident: bytes, timer: MessageKey | None) -> None:
        """Note that a row shows from now on when its message is due. A running poll may not have seen it.

        If nothing else is known of it, the poll's result counts, and a claim notices if that is too early.
        """
        known = timer or self._keys.get(ident)
        if known is not None and ident not in self._in_flight and self._changed is not None:
            self._changed.setdefault(ident, known)

    def remove(self, ident: bytes) -> None:
        """Forget an id that was acked or deleted; unknown ones are fine."""
        if ident in self._in_flight:
            self._in_flight[ident] = REMOVED
        else:
            self._forget(ident)

    def clear(self) -> None:
        """Drop all keys except those in flight; the next poll starts from nothing."""
        self._is_polled = self._leaves_out = False
        self._keys.clear()
        self._tiers.clear()
        self._locked.clear()
        self.news.clear()
        self._walked_to = b""

    def name_keys(self, keys: frozenset[bytes]) -> bool:
        """Note the keys that streams name; return whether there are new ones, which a poll must read."""
        is_new = not keys <= self.named
        self.named = keys
        return is_new

    def configure(self, limit: int, *, newest: bool, now_ns: int, fair: bool = False) -> None:
        """Apply changed settings; a new order starts from nothing."""
        self._limit = limit
        if (newest, fair) != (self._newest, self._fair):
            self._newest, self._fair = newest, fair
            self.clear()
        self._shrink(now_ns)

    # Due messages

    def due(self, now_ns: int, *, at_most: int, keys: frozenset[bytes] | None = None) -> int:
        """Return how many messages are due, of *keys* only if given, counted up to *at_most*."""
        count = 0
        for tier in self._tiers_of(keys):
            count += len(tier.fresh) + tier.timed.due(now_ns)
            if count >= at_most:
                return at_most
        return count

    def first_ns(self) -> int | None:
        """Return the moment the first key is due (0: a fresh one), or None without keys."""
        first_ns = None
        for tier in self._tiers_of(None):
            if tier.fresh.keys and not tier.fresh.keys[0].time_next_ns:
                return 0
            for lane in (tier.fresh, tier.timed):
                if lane.keys:
                    moment_ns = lane.keys[0].time_next_ns
                    if first_ns is None or moment_ns < first_ns:
                        first_ns = moment_ns
        return first_ns

    def first_timed_ns(self) -> int | None:
        """Return the first moment that was written into a row, or None if there is none."""
        moments = [
            tier.timed.keys[0].time_next_ns for tier in self._tiers_of(None) if tier.timed
        ]
        return min(moments, default=None)

    def take(
        self, rows_max: int, now_ns: int, keys: frozenset[bytes] | None = None
    ) -> list[MessageKey]:
        """Return up to *rows_max* due messages, of *keys* only if given, in the order to send them.

        They are in flight.
        """
        lines = {k: tiers for k, tiers in self._tiers.items() if keys is None or k in keys}
        # Keys take turns within a priority, or across all: a flood of an urgent priority belongs to one tenant, too.
        rounds: list[Mapping[bytes, Sequence[Tier]]]
        if self._fair:
            rounds = [
                {k: [tiers[each] for each in sorted(tiers)] for k, tiers in lines.items()}
            ]
        else:
            rounds = [
                {k: (tiers[each],) for k, tiers in lines.items() if each in tiers}
                for each in sorted({each for tiers in lines.values() for each in tiers})
            ]
        taken: list[MessageKey] = []
        for line in rounds:
            if (room := rows_max - len(taken)) == 0:
                break
            taken += self._turns.take(line, room, now_ns, newest=self._newest)
        for key in taken:
            del self._keys[key.id]
            self._left.discard(key.id)
            self._in_flight[key.id] = None
            # The running poll may still bring this row, as it was before the take.
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

    def requeue(self, ident: bytes, key: MessageKey | None, now_ns: int) -> MessageKey | None:
        """End the flight of *ident* and queue *key*, unless news came meanwhile.

        Return the news: an added key (which is queued in place of *key*), REMOVED, or None.
        """
        meanwhile = self._in_flight.pop(ident, None)
        self._locked.pop(ident, None)
        self._note(ident, None)
        found = self._flying_keys.pop(ident, b"")
        queued = meanwhile if meanwhile is not None else key
        if found and (timer := self.set_aside.get(ident)) is not None:
            self.set_aside[ident] = timer._replace(key=found)
        if queued is not None and queued is not REMOVED:
            self.add(queued._replace(key=found) if found else queued, now_ns)
        return meanwhile

    def not_won(self, key: MessageKey, time_next_ns: int | None, now_ns: int) -> None:
        """End the flight of *key*, whose row the claim did not win.

        time_next_ns: the value in its row; None if it is acked or gone. A due row was locked.
            It is tried again after a pause that doubles with each try.
        """
        before = self._locked.get(key.id)
        meanwhile = self.requeue(key.id, None, now_ns)
        if meanwhile is not None or time_next_ns is None:
            return
        if time_next_ns <= now_ns:
            pause_ns = LOCKED_PAUSE_FIRST_NS
            if before is not None:
                pause_ns = min(2 * before.pause_ns, LOCKED_PAUSE_LAST_NS)
            time_next_ns = now_ns + pause_ns
            self._locked[key.id] = LockedRow(pause_ns, time_next_ns)
            # Bounded like the queue itself. A forgotten row starts with the first pause
            # again.
            if len(self._locked) > self._limit:
                self._locked.popitem(last=False)
        self.add(key._replace(time_next_ns=time_next_ns), now_ns)

    # Polls

    @property
    def is_large(self) -> bool:
        """Return whether a poll that is due only by its interval reads a part of the queue."""
        return (
            self._is_polled
            and not (self._fair or self.named or self.news)
            and len(self._keys) > self.span_keys
        )

    @property
    def _not_waiting(self) -> int:
        """Return how many rows polls may find that need no room."""
        return len(self._locked) + sum(map(len, self._elsewhere))

    def poll_started(self, now_ns: int, *, in_spans: bool = False) -> poll.PollRequest:
        """Return the request of the next poll; one poll runs at a time. in_spans: read a known part, in turn."""
        self._changed = {}
        self.is_torn = False
        if in_spans:
            tiers = self._tiers.get(b"", {})
            return poll.PollRequest(
                self.span_keys,
                extra=self._not_waiting,
                spans=self._walk.next(tiers, self.span_keys, self._not_waiting),
                known=frozenset(tiers),
            )
        self._named_polled = self.named
        self._news_polled = tuple(islice(self.news, NEWS_AT_ONCE))
        for ident in self._news_polled:
            del self.news[ident]
        # Somewhat longer than its pause, so that the next pause is known to be longer.
        forgotten_ns = now_ns - LOCKED_PAUSE_LAST_NS
        while self._locked and next(iter(self._locked.values())).until_ns <= forgotten_ns:
            self._locked.popitem(last=False)
        # For these the poll reads the two lanes separately at once: its usual single statement would be
        # filled by rows that are due already.
        behind = (
            (key, priority)
            for key, tiers in self._tiers.items()
            for priority, tier in tiers.items()
            if tier.is_behind(now_ns)
        )
        return poll.PollRequest(
            limit=self._limit,
            extra=self._not_waiting,
            overloaded=frozenset(behind),
            named=tuple(sorted(self.named)),
            walked_to=self._walked_to,
            news=self._news_polled,
            low=self.low_keys,
        )

    def poll_failed(self) -> None:
        """Note that the running poll failed. The next one reads everything, including the messages of this request."""
        self._changed = None
        self.news = {**dict.fromkeys(self._news_polled), **self.news}
        self._news_polled = ()

    def poll_finished(self, result: poll.PollResult, now_ns: int) -> None:
        """Replace the state from before the poll by its result, as far as it has read."""
        changed, self._changed = self._changed or {}, None
        # Fresh and timed keys take turns. Whose turn it is must not start over with each poll,
        # or one lane would starve behind frequent polls.
        before = self._tiers.copy()
        renewed = self._renewed(result.tiers)
        is_whole = result.spans is None and not result.is_of_named
        self._is_polled |= result.spans is None
        if is_whole:
            self._keys.clear()
            self._tiers.clear()
            self._leaves_out = False
            self._walked_to = result.walked_to
        elif result.is_of_named:
            for key in self._named_polled:
                for lane in self._lanes(frozenset((key,))):
                    for one in lane.keys:
                        del self._keys[one.id]
                self._tiers.pop(key, None)
        for read in result.tiers:
            if read.key:
                self._know_key(read, changed)
        # Named keys go to their own lanes, whatever else was read.
        for read in sorted(result.tiers, key=lambda read: not read.key):
            known = before.get(read.key, {}).get(read.priority)
            self._take_in(read, changed).fresh_first = known is None or known.fresh_first
        if result.spans is not None:
            self._take_spans_in(result.spans, changed)
        self._news_polled = ()
        for one in self._usable(result.news, changed):
            if one.id not in self.news:
                self._admit(self.by_its_key(one))
        for news in changed.values():
            # Includes news that had no room: as far as the poll knows, there was no such row.
            if news is not None and news.id not in self._keys:
                self._admit(news)
        due = (
            (ident, one) for ident, one in self.following.items() if one.time_next_ns <= now_ns
        )
        followers = ((ident, self.by_its_key(one)) for ident, one in due)
        timers = (
            *self.unwritten.items(),
            *renewed.items(),
            *followers,
            *self.set_aside.items(),
        )
        for ident, timer in timers:
            is_elsewhere = ident in changed or ident in self._in_flight or ident in self._keys
            if not is_elsewhere:
                self._admit(timer)
        self._postpone_locked(now_ns)
        self._shrink(now_ns)
        if result.spans is not None:
            return
        for lane in self._lanes(self._named_polled if result.is_of_named else None):
            lane.low = min(len(lane) // 2, self.low_keys)
        if is_whole:
            self._left = self._due_ids(now_ns) if self._fair else set()
            self._left_full = len(self._left)
        self._turns.keep(self._tiers)

    def _take_spans_in(
        self, spans: Sequence[poll.SpanRead], changed: Collection[bytes]
    ) -> None:
        """Put the rows of spans in place of the keys known there."""
        for read in spans:
            seen = {key.id for key in read.keys}
            for key in read.keys:
                known = self._keys.get(key.id)
                if key != known and not self._is_elsewhere(key.id, changed):
                    self._forget(key.id)
                    self._admit(key)
            is_timed = read.span.part is poll.PollPart.TIMED
            lane = self._tier(b"", read.span.priority).timed if is_timed else None
            self._walk.has_read(read, None if lane is None else lane.horizon_ns)
            if lane is not None and not read.more:
                between = lane.keys.irange_key((read.span.from_ns,), (read.span.to_ns, 2))
                for ident in [key.id for key in between if key.id not in seen]:
                    if not (self._is_elsewhere(ident, changed) or ident in self._locked):
                        self._forget(ident)
            self.is_torn |= read.more and is_timed
        self._walk.rests_after(sum(len(read.keys) for read in spans), self.span_keys)

    def _renewed(self, tiers: Iterable[poll.TierRead]) -> dict[bytes, MessageKey]:
        """Return timers for leases that end later than their rows show, and that are known or were read."""
        ends_ns = self.renewed_until() if self.renewed else {}
        found = {
            key.id: key._replace(time_next_ns=ends_ns[key.id])
            for read in tiers
            for key in (*read.fresh, *read.timed)
            if key.id in ends_ns
        }
        return found | {ident: self._keys[ident] for ident in ends_ns if ident in self._keys}

    def _is_elsewhere(self, ident: bytes, changed: Collection[bytes]) -> bool:
        """Return whether something is known of a message that its row does not show."""
        return ident in changed or any(ident in each for each in self._elsewhere)

    @property
    def _elsewhere(self) -> Iterable[Collection[bytes]]:
        return (
            self._in_flight,
            self.unwritten,
            self.renewed,
            self.following,
            self.acked,
            self.set_aside,
        )

    def _take_in(self, read: poll.TierRead, changed: Collection[bytes]) -> Tier:
        """Add the rows that were read of a priority, and note how far it is known."""
        tier = self._tier(read.key, read.priority)
        tier.fresh.narrow(
            0, poll.NOTHING_NS if read.fresh_more else FOREVER_NS, more=read.fresh_more
        )
        tier.timed.narrow(read.floor_ns, read.horizon_ns, more=read.timed_more)
        self._leaves_out |= read.fresh_more or read.timed_more
        self._fill(tier.fresh, self._usable(read.fresh, changed))
        self._fill(tier.timed, self._usable(read.timed, changed))
        return tier

    def _usable(
        self, keys: Iterable[MessageKey], changed: Collection[bytes]
    ) -> list[MessageKey]:
        for known in (changed, self._keys, *self._elsewhere):
            if known:
                keys = [key for key in keys if key.id not in known]
        return list(keys)

    def _know_key(self, read: poll.TierRead, changed: dict[bytes, MessageKey | None]) -> None:
        """Move messages to the key under which they were found."""
        waiting = (changed, self.unwritten, self.following, self.set_aside)
        for one in (*read.fresh, *read.timed):
            ident, key = one.id, one.key
            if (known := self._keys.get(ident)) is not None and known.key != key:
                # Put it where it belongs, unless the poll has brought a later state.
                self._forget(ident)
                if any(ident in others for others in waiting):
                    self._admit(known._replace(key=key))
            for others in waiting:
                if (other := others.get(ident)) is not None:
                    others[ident] = other._replace(key=key)
            if ident in self._in_flight:
                self._flying_keys[ident] = key

    def _fill(self, lane: Lane, keys: list[MessageKey]) -> None:
        lane.keys.update(keys)
        self._keys.update((key.id, key) for key in keys)

    def _postpone_locked(self, now_ns: int) -> None:
        """Turn rows that were locked a moment ago, and that are still due, into timers."""
        for ident, locked in self._locked.items():
            key = self._keys.get(ident)
            if key is not None and key.time_next_ns <= now_ns < locked.until_ns:
                self._forget(ident)
                self._admit(key._replace(time_next_ns=locked.until_ns))

    def next_named_ns(self, now_ns: int) -> int:
        """Return when more messages are due of the keys that streams name."""
        lanes = (tier.timed for tier in self._tiers_of(self.named))
        moments = (
            lane.keys[due].time_next_ns
            for lane in lanes
            if (due := lane.due(now_ns)) < len(lane)
        )
        return min(moments, default=FOREVER_NS)

    def next_poll_ns(self, keys: frozenset[bytes] | None = None) -> int | None:
        """Return when rows that were left out will be needed (0: at once), if any are, of *keys* or of those that no stream names."""
        if not self._leaves_out:
            return None
        moments = []
        if keys is None and self.named:
            keys = frozenset(self._tiers) - self.named
        shared = self._tiers.get(b"", {}).values() if self._fair else ()
        if shared and len(self._left) <= self._left_full // 2:
            # Rows that were left out may have any key, and the read ones are divided among the keys.
            if any(tier.fresh.more for tier in shared):
                return 0
            moments += [
                0 if tier.timed.floor_ns else tier.timed.horizon_ns - POLL_LEAD_NS
                for tier in shared
                if tier.timed.more
            ]
        for tier in self._tiers_of(keys):
            if tier in shared:
                continue
            if tier.fresh.is_low():
                return 0
            if tier.timed.is_low():
                # With a floor, rows that are already due were left out. Otherwise the rows that were left
                # out are due after the horizon, and the poll comes some time before.
                narrowed = tier.timed.floor_ns > 0
                moments.append(0 if narrowed else tier.timed.horizon_ns - POLL_LEAD_NS)
        return min(moments, default=None)

    # Internals

    def _tiers_of(self, keys: frozenset[bytes] | None) -> Collection[Tier]:
        """Return the tiers of *keys*, or all."""
        # The usual case: no key is read separately. Called 25 times per message.
        if keys is None and len(self._tiers) == 1:
            (only,) = self._tiers.values()
            return only.values()
        known = self._tiers.values() if keys is None else map(self._tiers.get, keys)
        return [tier for tiers in known if tiers for tier in tiers.values()]

    def _due_ids(self, now_ns: int) -> set[bytes]:
        return {one.id for lane in self._lanes() for one in islice(lane.keys, lane.due(now_ns))}

    def _lanes(self, keys: frozenset[bytes] | None = None) -> Iterator[Lane]:
        for tier in self._tiers_of(keys):
            yield tier.fresh
            yield tier.timed

    def _tier(self, key: bytes, priority: int) -> Tier:
        tiers = self._tiers.get(key)
        if tiers is None:
            tiers = self._tiers[key] = {}
        tier = tiers.get(priority)
        if tier is None:
            tier = tiers[priority] = Tier()
        return tier

    def _note(self, ident: bytes, key: MessageKey | None) -> None:
        if self._changed is not None:
            self._changed[ident] = key

    def _admit(self, key: MessageKey) -> None:
        self._note(key.id, key)
        lane = self._tier(key.key, key.priority).lane(key)
        if lane.admits(key) or key.id in self.following:
            lane.keys.add(key)
            self._keys[key.id] = key

    def _forget(self, ident: bytes) -> None:
        self._note(ident, None)
        self.news.pop(ident, None)
        self._left.discard(ident)
        key = self._keys.pop(ident, None)
        if key is not None:
            self._tiers[key.key][key.priority].lane(key).keys.remove(key)

    def _shrink(self, now_ns: int) -> None:
        while len(self._keys) > self._limit:
            self._evict(now_ns)

    def _evict(self, now_ns: int) -> None:
        """Give up the key that will be needed last, and everything beyond it."""
        last: Lane | None = None
        for tier in self._tiers_of(None):
            if tier.timed.keys and (
                last is None or tier.timed.keys[-1].time_next_ns > last.keys[-1].time_next_ns
            ):
                last = tier.timed
        if last is None or last.keys[-1].time_next_ns <= now_ns:
            # All are due: the least urgent tier gives one up, from its longer lane.
            _, tier = max(
                (
                    each
                    for tiers in self._tiers.values()
                    for each in tiers.items()
                    if each[1].fresh.keys or each[1].timed.keys
                ),
                key=lambda each: (each[0], len(each[1].fresh) + len(each[1].timed)),
            )
            last = max(tier.fresh, tier.timed, key=len)
            if len(tier.fresh) == len(tier.timed) and tier.fresh_first:
                last = tier.timed
        if self._newest and 0 < last.keys[-1].time_next_ns <= now_ns:
            victim = last.keys.pop(0)
            last.narrow(victim.time_next_ns + 1, last.horizon_ns, more=True)
        else:
            victim = last.keys.pop()
            # A tie at the new edge may stay; new ones may join it, and are no loss either.
            horizon_ns = victim.time_next_ns if victim.time_next_ns > 0 else poll.NOTHING_NS
            last.narrow(last.floor_ns, horizon_ns, more=True)
        self._leaves_out = True
        last.low = min(len(last) // 2, self.low_keys)
        self._left.discard(victim.id)
        del self._keys[victim.id]
