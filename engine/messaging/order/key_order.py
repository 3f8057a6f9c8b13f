"""Which messages of a shard wait for others of their key: ``vt_max_per_key`` and ``vt_order = strict``. Pure.

A message has *started* from its first delivery until it is acked, deleted, parked or dead. So a message whose retry is not due
yet has started, too. No more of a key may have started than the table allows; of those that have, each is sent again when it is
due. With one at a time that is the order of the queue, and a retry holds back its successors. In a table with strict order all
messages of the shard have the same key.

The rows show what has started, by ``epoch``, and each claim reads them (`engine.messaging.claims.ordered_claim`). So neither a new
dispatcher nor late news can break the order. This module only remembers what to query next.

For a key without room one message is kept, its *follower*. It is due at once when an ack arrives. Otherwise it is a timer
for when the first started message is due again, or for when to read whether that one is acked. All others of
the key are forgotten: whichever is claimed next, the claim finds the first one. If a follower itself is acked or deleted,
no message is left that would be claimed next, and the table is polled.

So a key costs memory only while one of its messages is in flight, and polls skip keys that would fill the queue with messages
that must wait.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.queue.lanes import rank
from streamfrom.engine.messaging.table.message import FOREVER_NS, KeyFound


if TYPE_CHECKING:
    from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
    from streamfrom.engine.messaging.table.message import ClaimResult, MessageKey


# The most keys that a poll skips: those with the most messages that had to wait.
PASSED_OVER_MAX: Final = 200
# A message that is due again and is not won is locked, most likely by an ack.
LOCKED_PAUSE_NS: Final = 50 * 10**6
# Acks may pass through a proxy outside the fleet: the rows are read after this time, and after twice as long from then on.
ASK_FIRST_NS: Final = 250 * 10**6
ASK_LAST_NS: Final = 30 * 10**9


def may_go(found: KeyFound, at_most: int, in_order: int, now_ns: int) -> list[MessageKey]:
    """Return the messages of a key that may be sent now, in their order.

    Those that have started go first; a new one needs room among *in_order*.
    """
    due = sorted((one for one in found.started if one.time_next_ns <= now_ns), key=in_turn)
    room = max(0, in_order - (len(found.started) - len(due)))
    new = found.heads[: max(0, in_order - len(found.started))]
    return [*due[:room], *new][:at_most]


def in_turn(key: MessageKey) -> tuple[int, tuple[int, int, int | bytes]]:
    """Sort in the order of the queue: by priority, then by time, then by id."""
    return key.priority, rank(key)


def with_keys(result: ClaimResult, asked: Mapping[bytes, MessageKey]) -> ClaimResult:
    """Return *result* with the keys under which the queue knows the *asked* messages, and so those that go with them."""
    names = {
        key: asked[ident].key
        for ident, key in result.asked_keys.items()
        if key is not None and ident in asked and asked[ident].key
    }
    if not names:
        return result
    found = {}
    for key, one in result.found.items():
        name = names.get(key, b"")
        found[key] = KeyFound(
            tuple(each._replace(key=name) for each in one.started),
            tuple(each._replace(key=name) for each in one.heads),
        )
    chosen = {
        one.id: one
        for each in found.values()
        for one in (*each.started, *each.heads)
        if one.id in result.chosen
    }
    return replace(result, found=found, chosen=chosen)


class KeyOrder:
    """The keys of one shard that have messages in flight.

    in_order: how many of a key may have started.
    key: the column of the keys; None if all messages have the same key.
    started: the keys of messages that have started, by id; None for no key.
    """

    def __init__(self, in_order: int, queue: ShardQueue, key: str | None) -> None:
        self.in_order = in_order
        self.key = key
        self._queue = queue
        self.started: dict[bytes, bytes | None] = {}
        self._followers: dict[bytes, MessageKey] = {}  # by key
        self._following_keys: dict[bytes, bytes] = {}  # of followers, by id
        self._pauses_ns: dict[bytes, int] = {}  # by follower, until its key is read again
        self._held_back: Counter[bytes] = Counter()  # by key, how many had to wait recently
        self._timers: list[tuple[int, bytes]] = []  # when followers are claimed, and their keys
        self._let_go_meanwhile: set[bytes] = set()  # keys whose followers were being claimed
        self._closed_ns = 0

    @property
    def is_strict(self) -> bool:
        """Return whether messages go one by one."""
        return self.key is None

    def closed_ns(self) -> int:
        """Return until when nothing can be sent, unless an event comes before; 0 for not at all."""
        return self._closed_ns if self.is_strict and self._followers else 0

    def next_ns(self) -> int:
        """Return when the next follower is due."""
        # Each step of a hot key leaves a timer behind, which would wake all waiters for nothing a little later.
        while self._timers:
            due_ns, key = self._timers[0]
            follower = self._followers.get(key)
            timer = None if follower is None else self._queue.following.get(follower.id)
            if timer is not None and timer.time_next_ns == due_ns:
                return due_ns
            heapq.heappop(self._timers)
        return FOREVER_NS

    def wake(self, now_ns: int) -> None:
        """Put followers into the queue whose time has come."""
        following = self._queue.following
        while self._timers and self._timers[0][0] <= now_ns:
            due_ns, key = heapq.heappop(self._timers)
            follower = self._followers.get(key)
            if follower is None or follower.id not in following:
                continue
            if following[follower.id].time_next_ns == due_ns:
                self._follow(key, follower, follower.time_next_ns, now_ns)

    def passed_over(self, now_ns: int) -> tuple[bytes, ...]:
        """Return the keys, as literals, that the next poll can skip, because their followers are known."""
        if self.is_strict:
            return ()
        held_back = {k: n for k, n in self._held_back.items() if k in self._followers}
        if len(held_back) > PASSED_OVER_MAX:
            # So that formerly hot keys make room for those that are hot now.
            held_back = {k: n // 2 for k, n in held_back.items() if n > 1}
        self._held_back = Counter(held_back)
        most = (key for key, _ in self._held_back.most_common(2 * PASSED_OVER_MAX))
        known = (key for key in most if self._is_known(self._followers[key], now_ns))
        return tuple(islice(known, PASSED_OVER_MAX))

    def _is_known(self, follower: MessageKey, now_ns: int) -> bool:
        timer, queue = self._queue.following.get(follower.id), self._queue
        if timer is None:
            return False
        # A claim under way for it shows which message follows, or that none is known.
        is_claimed = queue.is_in_flight(timer.id)
        return timer.time_next_ns > now_ns or timer.id in queue or is_claimed

    def waiting(self) -> tuple[MessageKey, ...]:
        """Return the followers that must wait, each due at its own time: the first one of each key."""
        queue = self._queue
        return tuple(
            one
            for one in self._followers.values()
            if one.id in queue.following
            and one.id not in queue
            and not queue.is_in_flight(one.id)
        )

    def clear(self) -> None:
        """Forget everything: the rows show it again."""
        self.started.clear()
        self._followers.clear()
        self._following_keys.clear()
        self._pauses_ns.clear()
        self._timers.clear()
        self._held_back.clear()
        self._queue.following.clear()

    def known_keys(self, idents: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the keys of those messages that are followers."""
        known = self._following_keys
        return {ident: known[ident] for ident in idents if ident in known}

    def freed(self, idents: Iterable[bytes], now_ns: int) -> bool:
        """Free the followers of messages that are no longer in flight; return whether a poll is needed.

        It is if a follower is gone itself, and the next one is not known.
        """
        gone, following = list(idents), self._queue.following
        lost = [ident for ident in gone if following.pop(ident, None) is not None]
        for ident in gone:
            if (key := self.started.pop(ident, None)) is not None:
                self._let_go(key, now_ns)
        if lost:
            self._forget_lost()
        return bool(lost)

    def free_all(self, now_ns: int) -> None:
        """Free all followers: whatever they wait for may have changed."""
        for key in list(self._followers):
            self._let_go(key, now_ns)

    def _let_go(self, key: bytes, now_ns: int) -> None:
        follower = self._followers.get(key)
        if follower is None or follower.id not in self._queue.following:
            return
        if self._queue.is_in_flight(follower.id):
            # The claim for it may have read the rows before.
            self._let_go_meanwhile.add(key)
        else:
            self._follow(key, follower, follower.time_next_ns, now_ns)

    def _forget_lost(self) -> None:
        following = self._queue.following
        self._followers = {k: one for k, one in self._followers.items() if one.id in following}
        self._following_keys = {one.id: key for key, one in self._followers.items()}
        self._pauses_ns = {i: ns for i, ns in self._pauses_ns.items() if i in following}

    def _follow(self, key: bytes, follower: MessageKey, due_ns: int, now_ns: int) -> None:
        """Keep one message of a key, which is claimed at *due_ns*; until then the key's turn is decided by it."""
        self._followers[key] = follower
        self._following_keys[follower.id] = key
        self._closed_ns = due_ns
        timer = follower._replace(time_next_ns=due_ns, key=key)
        self._queue.following[follower.id] = timer
        if due_ns <= now_ns:
            self._queue.add(self._queue.by_its_key(timer), now_ns)
        else:
            self._queue.remove(follower.id)
            heapq.heappush(self._timers, (due_ns, key))

    def claimed(
        self,
        asked: Collection[bytes],
        result: ClaimResult,
        gone: Iterable[bytes],
        now_ns: int,
    ) -> bool:
        """Process the keys that a claim found, after its rows; return whether a poll is needed.

        asked: the ids that the claim was to win. gone: those that were acked while it ran.
        """
        queue, is_lost = self._queue, False
        for ident in asked:
            key = result.asked_keys.get(ident)
            if queue.following.pop(ident, None) is not None and key is None:
                # Acked, deleted or rescheduled past this process: the next message is not known.
                is_lost = True
        won = {row.id: row.due_next_ns for row in result.rows}
        here = {*won, *(i for i, due_ns in result.passed_over.items() if due_ns <= now_ns)}
        over = {*gone, *(ident for ident in result.chosen if ident not in here)}
        for ident in (*over, *(ident for ident in asked if ident not in result.asked_keys)):
            key = self.started.pop(ident, None)
            if key is not None and key not in result.found:
                self._let_go(key, now_ns)
        # A message without a key waits for none, and its key need not be read again.
        self.started.update(
            (ident, None) for ident in won if result.asked_keys.get(ident, b"") is None
        )
        self._held_back.update(
            key
            for ident, key in result.asked_keys.items()
            if key is not None and ident not in result.chosen
        )
        for key, found in result.found.items():
            pause_ns = ASK_FIRST_NS
            before = self._followers.pop(key, None)
            if before is not None:
                queue.following.pop(before.id, None)
                self._following_keys.pop(before.id, None)
                pause_ns = self._pauses_ns.pop(before.id, pause_ns)
            left = _after(found, won, over)
            self.started.update((one.id, key) for one in left.started)
            follower = next(iter(left.heads), None)
            # A message that was never sent was acked, and its successor is unknown.
            is_lost |= follower is None and any(one.id in over for one in found.heads)
            for one in may_go(left, 1, self.in_order, now_ns):
                if one is not follower and one.id not in queue:
                    # It has started, is due, and its row is locked at this moment.
                    queue.not_won(one, one.time_next_ns, now_ns)
            if follower is None:
                continue
            if before is not None and not follower.key:
                follower = follower._replace(key=before.key)
            if key in self._let_go_meanwhile:
                self._follow(key, follower, follower.time_next_ns, now_ns)
            elif len(left.started) >= self.in_order:
                if before is None or before.id != follower.id:
                    pause_ns = ASK_FIRST_NS
                self._pauses_ns[follower.id] = min(2 * pause_ns, ASK_LAST_NS)
                first_ns = min(one.time_next_ns for one in left.started)
                again_ns = min(first_ns, now_ns + pause_ns)
                self._follow(key, follower, max(again_ns, now_ns + LOCKED_PAUSE_NS), now_ns)
            elif follower.id in result.chosen:
                self._follow(key, follower, now_ns + LOCKED_PAUSE_NS, now_ns)
            else:
                self._follow(key, follower, follower.time_next_ns, now_ns)
        self._let_go_meanwhile.clear()
        return is_lost


def _after(found: KeyFound, won: Mapping[bytes, int], gone: set[bytes]) -> KeyFound:
    """Return the state of a key after a claim has won some of its messages."""
    every = (*found.started, *(one for one in found.heads if one.id in won))
    return KeyFound(
        tuple(
            one._replace(time_next_ns=won.get(one.id, one.time_next_ns))
            for one in every
            if one.id not in gone
        ),
        tuple(one for one in found.heads if one.id not in won and one.id not in gone),
    )
