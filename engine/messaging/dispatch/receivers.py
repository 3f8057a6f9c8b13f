"""The open streams of one message table: how many messages each may hold, which can be given rows, and which goes first. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver, shares
from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
from streamfrom.engine.messaging.table.message import AUTO


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.table.table_settings import Properties
    from streamfrom.engine.sharding.keyspace import ShardName


# How many of the ready receivers, those that have waited longest, are compared by their room: with
# ten thousand idle streams, a lone message must not look at all of them.
COMPARED_MAX: Final = 64


class Receivers:
    """The open streams of one table.

    together: how many messages they may hold all together, as far as they have a limit.
    attached: all receivers, by their numbers.
    ready: the receivers with room whose socket is free. The one that has waited longest is the first (round-robin).
    full: the receivers without room.
    short: the receivers without room that have a share of their prefetch, and whose members have not been notified that more is due.
    kept: how many messages a receiver with a share may hold, by its number, if that is still to be reported.
    finishing: the receivers that end once nothing is due. They have been given rows, or their wait for the first row is over.
    choices: how many streams take messages of which keys; the keys None are all keys. The entry served longest ago is the first.
    is_freed: a receiver became ready, or may be given more, while an event was handled.
    """

    def __init__(self, shards: dict[str, ShardState]) -> None:
        self._shards = shards
        self.together = 0
        self.attached: dict[int, AttachedReceiver] = {}
        self.ready: OrderedDict[int, AttachedReceiver] = OrderedDict()
        # In the order in which they came, because a seed of the simulator must give one history.
        self.full: dict[int, None] = {}
        self.short: dict[int, None] = {}
        self.kept: dict[int, int] = {}
        self.finishing: dict[int, AttachedReceiver] = {}
        self.choices: OrderedDict[frozenset[bytes] | None, int] = OrderedDict()
        self.is_freed = False

    # Coming and going

    def add(self, receiver: AttachedReceiver) -> None:
        """Add a new stream, which is ready if it has room."""
        self.attached[receiver.id] = receiver
        if receiver.room:
            self.ready[receiver.id] = receiver
        else:
            self.is_full(receiver)
        self.choices[receiver.keys] = self.choices.get(receiver.keys, 0) + 1

    def remove(self, number: int) -> AttachedReceiver | None:
        """Forget a stream and return it; None if it is unknown."""
        self.ready.pop(number, None)
        self.full.pop(number, None)
        self.short.pop(number, None)
        self.finishing.pop(number, None)
        gone = self.attached.pop(number, None)
        if gone is not None:
            self._set_limit(gone, 0)
            self.choices[gone.keys] -= 1
            if not self.choices[gone.keys]:
                del self.choices[gone.keys]
        return gone

    def named_keys(self, shard: ShardName) -> frozenset[bytes]:
        """Return the keys named by streams that cover *shard*."""
        if not any(self.choices):
            return frozenset()
        covering = (one.keys for one in self.attached.values() if one.covers(shard))
        return frozenset().union(*filter(None, covering))

    # How many messages each may hold

    def configure(
        self, receiver: AttachedReceiver, properties: Properties, now_ns: int
    ) -> None:
        """Set the limit of a stream: its own, or the table's. A stream with an end has none."""
        if receiver.rows_left is not None:
            return
        own = receiver.prefetch
        prefetch = properties.prefetch if own is None else own
        if prefetch != AUTO:
            receiver.window = None
            self._set_limit(receiver, prefetch)
        elif receiver.window is None:
            receiver.window = PrefetchWindow(
                now_ns,
                first=receiver.window_first,
                lease_delay_ns=properties.lease_delay_ns,
                is_part=self._is_part(receiver),
            )
            self._set_limit(receiver, receiver.window.size)

    def change_window(
        self, receiver: AttachedReceiver, change: Callable[[PrefetchWindow], None]
    ) -> None:
        """Change the window of a stream that has one."""
        if receiver.window is not None:
            change(receiver.window)
            self._set_limit(receiver, receiver.window.size)

    def _is_part(self, receiver: AttachedReceiver) -> bool:
        """Return whether other processes dispatch to a stream as well; of another member's client, whether they may."""
        return any(
            not (receiver.covers(name) if receiver.is_for_member else shard.is_dispatched)
            for name, shard in self._shards.items()
            if receiver.is_for_member or receiver.covers(name)
        )

    def _set_limit(self, receiver: AttachedReceiver, limit: int) -> None:
        self.together += limit - receiver.limit
        receiver.limit = limit

    # Which can be served

    def is_free(self, number: int) -> None:
        """Note that the socket of a stream has taken its rows."""
        found = self.attached.get(number)
        # A socket may report twice; a stream that is reserved for a claim is not free.
        if found is not None and found.has_batch:
            found.has_batch = False
            self.open(found)

    def choose(
        self,
        shard: ShardState,
        due: int,
        batch: int,
        now_ns: int,
        keys: frozenset[bytes] | None = None,
    ) -> list[AttachedReceiver]:
        """Return ready receivers for one claim, the one with most room first. All have the same columns and the same *keys*.

        Among equal ones the one that has waited longest goes first. Streams that stall are chosen only if no other has room.
        """
        rows, is_gathering = min(due, batch), False
        chosen: list[AttachedReceiver] = []
        covering = (
            one for one in self.ready.values() if one.keys == keys and one.covers(shard.name)
        )
        for receiver in list(islice(covering, COMPARED_MAX)):
            self.change_window(receiver, lambda window: window.passed(now_ns))
            if not receiver.room:
                self.is_full(receiver)
                continue
            gathered_ns = receiver.gathered_ns(rows, now_ns)
            if gathered_ns > now_ns:
                shard.gathered_ns = min(shard.gathered_ns, gathered_ns)
                is_gathering |= not receiver.has_stalled
            else:
                chosen.append(receiver)
        # A stream that stalls would lose them: it gets only rows that no other has room for.
        if not (going := [one for one in chosen if not one.has_stalled]) and is_gathering:
            return []
        chosen = going or chosen
        chosen.sort(key=by_room)
        columns = chosen[0].columns if chosen else ()
        return [receiver for receiver in chosen if receiver.columns == columns][:due]

    def open(self, receiver: AttachedReceiver, *, is_first: bool = False) -> None:
        """Let a receiver be served, if it has room and nothing is on its way to it; or note that it has no room."""
        if receiver.room == 0:
            self.is_full(receiver)
            return
        self.full.pop(receiver.id, None)
        self.short.pop(receiver.id, None)
        if receiver.has_batch or receiver.is_reserved:
            return
        if receiver.id not in self.ready:
            self.ready[receiver.id] = receiver
            if is_first:
                self.ready.move_to_end(receiver.id, last=False)
            self.is_freed = True
        elif receiver.gathering_since_ns is not None:
            self.is_freed = True

    def hold(self, number: int, count: int, now_ns: int) -> None:
        """Count *count* messages that a receiver holds without being given them here; it may not be attached."""
        receiver = self.attached.get(number)
        if receiver is not None and count:
            receiver.held += count
            self.change_window(receiver, lambda window: window.took_over(receiver.held))
            if receiver.room == 0:
                receiver.full_since_ns = receiver.full_since_ns or now_ns
                self.is_full(receiver)

    def is_full(self, receiver: AttachedReceiver) -> None:
        """Note that a receiver has no room."""
        self.ready.pop(receiver.id, None)
        self.full[receiver.id] = None
        if receiver.share is not None and not receiver.has_wanted:
            self.short[receiver.id] = None

    def give_share(self, number: int, share: int) -> None:
        """Limit a receiver to *share* messages of this process."""
        receiver = self.attached.get(number)
        if receiver is None:
            return
        receiver.next_share, receiver.owes_answer, receiver.has_wanted = share, True, False
        if not receiver.is_reserved:
            self._take_share(receiver)

    def not_reserved(self, receiver: AttachedReceiver) -> None:
        """Note that the claim for a receiver has ended; it is the first again if it has room."""
        if receiver.next_share is not None:
            self._take_share(receiver)
        self.open(receiver, is_first=True)

    def _take_share(self, receiver: AttachedReceiver) -> None:
        # Not during a claim, whose rows would have to be given back.
        receiver.share, receiver.next_share = receiver.next_share, None
        self.limited(receiver)

    def dispatchers_changed(self) -> None:
        """Note that this process dispatches another part of the shards, and adapt the windows."""
        for receiver in self.attached.values():
            shared = partial(PrefetchWindow.shared, is_part=self._is_part(receiver))
            self.change_window(receiver, shared)
            self.limited(receiver)

    def limited(self, receiver: AttachedReceiver) -> None:
        """Follow a limit or a share that is another one now."""
        self.open(receiver)
        self._keeps(receiver)

    def _keeps(self, receiver: AttachedReceiver) -> None:
        if receiver.owes_answer and receiver.next_share is None:
            receiver.owes_answer = receiver.held > receiver.most
            self.kept[receiver.id] = max(receiver.held, receiver.most)

    def acted(self, number: int, count: int, now_ns: int) -> None:
        """Subtract *count* messages that a receiver held, and that its client acted on, or another did on its behalf."""
        receiver = self.attached.get(number)
        if receiver is None:
            return
        receiver.acted(now_ns)
        if (window := receiver.window) is not None:
            window.acked(count, now_ns)
            if window.wants_backlog:
                backlog = sum(
                    shard.queue.due(now_ns, at_most=2 * self.together + 1)
                    for shard in self._shards.values()
                    if receiver.covers(shard.name)
                )
                window.begin(backlog, self.together)
            if window.size != receiver.limit:
                self._set_limit(receiver, window.size)
        self.give_room(number, count)

    def give_room(self, number: int, count: int = 1) -> AttachedReceiver | None:
        """Subtract *count* messages that a receiver no longer holds; return it if it is still attached."""
        receiver = self.attached.get(number)
        if receiver is not None:
            receiver.held -= count
            self.open(receiver)
            self._keeps(receiver)
        return receiver


def by_room(receiver: AttachedReceiver) -> int:
    """Sort by room, most first."""
    return -receiver.room


def share_out(rows: int, receivers: Sequence[AttachedReceiver], batch: int) -> list[int]:
    """Return how many of *rows* each of *receivers* gets, which are sorted by their room."""
    if len(receivers) == 1:
        (only,) = receivers
        return [min(rows, only.room, only.at_most(batch))]
    return shares(
        rows,
        [receiver.room for receiver in receivers],
        [receiver.at_most(batch) for receiver in receivers],
    )
