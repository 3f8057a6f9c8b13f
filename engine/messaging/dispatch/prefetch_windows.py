"""The windows of one table's streams whose prefetch is `auto`, and the limits of the others. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
from streamfrom.engine.messaging.table.message import AUTO


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver
    from streamfrom.engine.messaging.table.table_settings import Properties


class PrefetchWindows:
    """What all streams of a table may hold.

    together: how many messages they may hold all together, as far as they have a limit.
    """

    def __init__(self, shards: dict[str, ShardState]) -> None:
        self._shards = shards
        self.together = 0

    def configure(
        self, receiver: AttachedReceiver, properties: Properties, now_ns: int
    ) -> None:
        """Give a stream the limit that it asked for, or that of its table; one that ends has none."""
        if receiver.rows_left is not None:
            return
        own = receiver.prefetch
        prefetch = properties.prefetch if own is None else own
        if prefetch != AUTO:
            receiver.window = None
            self._set(receiver, prefetch)
        elif receiver.window is None:
            receiver.window = PrefetchWindow(
                now_ns,
                first=receiver.window_first,
                lease_delay_ns=properties.lease_delay_ns,
                is_part=self._is_part(receiver),
            )
            self._set(receiver, receiver.window.size)

    def took_over(self, receiver: AttachedReceiver) -> None:
        """Note that a stream holds messages that a former dispatcher sent to it."""
        if receiver.window is not None:
            receiver.window.took_over(receiver.held)
            self._set(receiver, receiver.window.size)

    def dispatchers_changed(self, receiver: AttachedReceiver) -> None:
        """Note that this process dispatches another part of the shards."""
        if receiver.window is not None:
            receiver.window.shared(is_part=self._is_part(receiver))
            self._set(receiver, receiver.window.size)

    def _is_part(self, receiver: AttachedReceiver) -> bool:
        """Return whether other processes dispatch to a stream as well; of another member's client, whether they may."""
        return any(
            not (receiver.covers(name) if receiver.is_for_member else shard.is_dispatched)
            for name, shard in self._shards.items()
            if receiver.is_for_member or receiver.covers(name)
        )

    def forget(self, receiver: AttachedReceiver) -> None:
        """Note that a stream is over."""
        self._set(receiver, 0)

    def acked(self, receiver: AttachedReceiver, count: int, now_ns: int) -> None:
        """Note that *count* messages that a stream held are acked, deleted or rescheduled."""
        window = receiver.window
        if window is None:
            return
        window.acked(count, now_ns)
        if window.wants_backlog:
            backlog = sum(
                shard.queue.due(now_ns, at_most=2 * self.together + 1)
                for shard in self._shards.values()
                if receiver.covers(shard.name)
            )
            window.begin(backlog, self.together)
        if window.size != receiver.limit:
            self._set(receiver, window.size)

    def passed(self, receiver: AttachedReceiver, now_ns: int) -> None:
        """Let old acks count no more."""
        if receiver.window is not None:
            receiver.window.passed(now_ns)
            self._set(receiver, receiver.window.size)

    def given(self, receiver: AttachedReceiver) -> None:
        """Note that a stream was given what there was for it."""
        if receiver.window is not None and receiver.room:
            receiver.window.starved()
            self._set(receiver, receiver.window.size)

    def lost(self, receiver: AttachedReceiver) -> None:
        """Note that a stream lost a lease and made no progress meanwhile."""
        if receiver.window is not None:
            receiver.window.lost()
            self._set(receiver, receiver.window.size)

    def _set(self, receiver: AttachedReceiver, limit: int) -> None:
        self.together += limit - receiver.limit
        receiver.limit = limit
