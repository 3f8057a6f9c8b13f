"""When to query whether a shard's held messages are ready: after acks that can matter, and periodically. Pure.

Of each held message one member is known that is not done (`engine.messaging.order.group_table`). Until that one is acknowledged or
deleted nothing else can make the message ready. So an ack costs a lookup in a dictionary, and a statement
only if it matters. A walk over all held rows finds acks whose text names no messages, and acks past every proxy: there is one
walk when the shard is first served, one per poll interval, and one soon after an ack that names nothing.

No ack may be missed that comes while a statement runs, or while the claim commits that holds a message. Therefore
acks are remembered meanwhile, and a query follows for each message that was just held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.table.groups import FireRequest
from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.groups import FireResult, Place


ASKED_AT_ONCE: Final = 200
# Only walks find the rest. 100,000 take 20 MB.
WATCHED_MAX: Final = 100_000
# After a failure, and for a row that is locked.
AGAIN_NS: Final = 10**9
# Statements that name no messages may come without end: walks take a tenth of the time.
WALK_SHARE: Final = 10


class _Watched(NamedTuple):
    member: bytes
    walk: int  # the number of the walk that saw it last


class GroupWatch:
    """A shard's held messages, as far as they are known."""

    def __init__(self) -> None:
        self._is_on = False
        self._is_ending = False  # groups were removed, and one walk frees all held rows
        self._watched: dict[bytes, _Watched] = {}
        self._waiting: dict[bytes, dict[bytes, None]] = {}  # which messages wait for a member
        self._unsure: dict[bytes, None] = {}  # messages that need a query
        self._reported: set[tuple[bytes, bytes]] = set()
        self._asked: FireRequest | None = None
        self._gone: set[bytes] = set()  # acknowledged while a statement runs
        self._is_discarded = (
            False  # the running statement began before everything was forgotten
        )
        self._place: Place | None = None
        self._is_walking = False
        self._is_walk_wanted = False
        self._walks = 0
        self._walk_ns = 0  # when the next walk begins
        self._wanted_walk_ns = 0  # the earliest walk that an ack without names can cause
        self._walk_began_ns = 0
        self._retry_ns = 0
        self._was_named = False  # the last statement named its messages

    def __len__(self) -> int:
        """Return how many held messages are watched."""
        return len(self._watched)

    def configure(self, *, is_on: bool) -> None:
        """Apply changed settings: query all held rows."""
        if not (is_on or self._is_on):
            return
        self._is_ending = (self._is_on or self._is_ending) and not is_on
        self._is_on = is_on
        self.clear()

    def clear(self) -> None:
        """Forget everything: there is no receiver, or another process dispatches."""
        self._watched.clear()
        self._waiting.clear()
        self._unsure.clear()
        self._reported.clear()
        self._gone.clear()
        self._is_discarded = self._asked is not None
        self._is_walking = self._is_walk_wanted = False
        self._place = None
        self._walk_ns = self._retry_ns = 0

    # News

    def held(self, idents: Iterable[bytes]) -> None:
        """Note messages that a claim has just held: their last member may be done since."""
        if self._is_on:
            self._unsure.update(dict.fromkeys(idents))

    def gone(self, idents: Iterable[bytes]) -> None:
        """Note messages that were acknowledged, deleted or parked."""
        if self._asked is not None:
            self._gone.update(idents)
        if not self._watched:
            return
        for ident in idents:
            if ident in self._waiting:
                self._unsure.update(self._waiting[ident])
            self._forget(ident)

    def changed(self, idents: Iterable[bytes] | None) -> None:
        """Note messages that may have changed or been acknowledged; None for any."""
        if idents is not None:
            known = list(idents)
            self.held(ident for ident in known if ident in self._watched)
            self.gone(known)
        elif self._watched or self._asked is not None or self._is_walking:
            self._is_walk_wanted = True

    # Queries

    def next(self, now_ns: int, left_out: frozenset[bytes] = frozenset()) -> FireRequest | None:
        """Return the next query, one statement at a time. left_out: rows that are set aside."""
        if self._asked is not None or self.next_ns() > now_ns:
            return None
        # In turn, so that neither keeps the other waiting.
        is_walk_due = self._is_walking or self._next_walk_ns() <= now_ns
        if self._unsure and not (is_walk_due and self._was_named):
            self._was_named = True
            ids = tuple(self._unsure)[:ASKED_AT_ONCE]
            for ident in ids:
                del self._unsure[ident]
            self._asked = FireRequest(ids, left_out=left_out)
        else:
            self._was_named = False
            if not self._is_walking:
                self._is_walking, self._is_walk_wanted = True, False
                self._place = None
                self._walks += 1
                self._walk_began_ns = now_ns
            self._asked = FireRequest(place=self._place, left_out=left_out)
        return self._asked

    def answered(
        self, result: FireResult | None, now_ns: int, interval_ns: int
    ) -> list[tuple[bytes, bytes, bytes]]:
        """Process an answer, None for a failure; return the messages that wait for a parked member, that member and their group.

        Each is returned once.
        """
        asked, self._asked = self._asked, None
        gone, self._gone = self._gone, set()
        is_discarded, self._is_discarded = self._is_discarded, False
        if is_discarded or asked is None:
            return []
        if result is None:
            self._retry_ns = now_ns + AGAIN_NS
            self.held(asked.ids or ())
            return []
        for ident in asked.ids or ():
            self._forget(ident)
        for ident, member in result.waiting.items():
            self._watch(ident, member)
            if member in gone or ident in gone:
                self._unsure[ident] = None
        if asked.ids is None:
            self._walked(result.place, now_ns, interval_ns)
        if result.locked:
            self._walk_ns = min(self._walk_ns, now_ns + AGAIN_NS)
        dead = [
            (ident, result.waiting[ident], group)
            for ident, group in result.dead.items()
            if (ident, result.waiting[ident]) not in self._reported
        ]
        self._reported.update((ident, member) for ident, member, _ in dead)
        return dead

    def next_ns(self) -> int:
        """Return when the next statement is due."""
        if self._asked is not None or not (self._is_on or self._is_ending):
            return FOREVER_NS
        if self._unsure or self._is_walking:
            return self._retry_ns
        return max(self._retry_ns, self._next_walk_ns())

    def _next_walk_ns(self) -> int:
        wanted_ns = self._wanted_walk_ns if self._is_walk_wanted else FOREVER_NS
        return min(self._walk_ns, wanted_ns)

    def _walked(self, place: Place | None, now_ns: int, interval_ns: int) -> None:
        self._place = place
        if place is not None:
            return
        self._is_walking = self._is_ending = False
        unseen = [i for i, watched in self._watched.items() if watched.walk < self._walks]
        for ident in unseen:
            self._forget(ident)
        self._reported &= {(ident, watched.member) for ident, watched in self._watched.items()}
        self._walk_ns = self._walk_began_ns + interval_ns
        self._wanted_walk_ns = now_ns + (WALK_SHARE - 1) * (now_ns - self._walk_began_ns)

    def _watch(self, ident: bytes, member: bytes) -> None:
        self._forget(ident)
        if len(self._watched) < WATCHED_MAX:
            self._watched[ident] = _Watched(member, self._walks)
            self._waiting.setdefault(member, {})[ident] = None

    def _forget(self, ident: bytes) -> None:
        watched = self._watched.pop(ident, None)
        if watched is not None:
            waiting = self._waiting[watched.member]
            del waiting[ident]
            if not waiting:
                del self._waiting[watched.member]
