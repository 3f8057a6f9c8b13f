"""Messages of one shard whose leases ended at a stream: for a second they go to other streams, as far as one has room. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver
    from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey


APART_NS: Final = 10**9


class LostMessages:
    """Which stream lost which message, and the messages that wait for another stream. The queue counts these as in flight."""

    def __init__(self) -> None:
        # The stream, and until when others are served first.
        self._losers: dict[bytes, tuple[int, int]] = {}
        self._waiting: dict[bytes, MessageKey] = {}

    @property
    def waiting(self) -> Collection[bytes]:
        """Return the messages that wait for another stream."""
        return self._waiting.keys()

    def lost(self, ident: bytes, receiver: int, now_ns: int) -> None:
        """Note that the lease of a message ended at *receiver*."""
        self._losers[ident] = receiver, now_ns + APART_NS

    def clear(self) -> tuple[bytes, ...]:
        """Forget everything; return the messages that waited."""
        waiting = tuple(self._waiting)
        self._losers.clear()
        self._waiting.clear()
        return waiting

    def next_ns(self) -> int:
        """Return when the first waiting message may go to any stream."""
        return min((self._losers[one][1] for one in self._waiting), default=FOREVER_NS)

    def keep_back(
        self, keys: list[MessageKey], receivers: Collection[AttachedReceiver]
    ) -> list[MessageKey]:
        """Return which of *keys* a claim for *receivers* takes. Messages that the only one of them has lost wait for another."""
        if not self._losers or len(receivers) > 1:
            return keys
        (receiver,) = receivers
        lost = {key.id: key for key in keys if self._is_loser(receiver, key.id)}
        self._waiting.update(lost)
        return [key for key in keys if key.id not in lost]

    def freed(self, ready: AbstractSet[int], now_ns: int) -> list[MessageKey]:
        """Return waiting messages that may go now: a stream that has not lost them is *ready*, or their second is over."""
        found = [
            key
            for key in self._waiting.values()
            if self._losers[key.id][1] <= now_ns or ready - {self._losers[key.id][0]}
        ]
        for key in found:
            del self._waiting[key.id]
        for ident in [one for one, (_, until_ns) in self._losers.items() if until_ns <= now_ns]:
            del self._losers[ident]
        return found

    def part(
        self,
        batches: Sequence[list[ClaimedRow]],
        receivers: Sequence[AttachedReceiver],
        batch_size: int,
    ) -> None:
        """Move rows between *batches*, one per receiver, so that no receiver gets a message it lost if another can take it."""
        if not self._losers:
            return
        for number, (receiver, batch) in enumerate(zip(receivers, batches, strict=True)):
            for row in [row for row in batch if self._is_loser(receiver, row.id)]:
                for other, others in enumerate(batches):
                    if other == number:
                        continue
                    to = receivers[other]
                    if len(others) < min(to.room, to.at_most(batch_size)):
                        batch.remove(row)
                        others.append(row)
                        break
                    if others and not self._is_loser(receiver, others[-1].id):
                        batch[batch.index(row)], others[-1] = others[-1], row
                        break

    def _is_loser(self, receiver: AttachedReceiver, ident: bytes) -> bool:
        return self._losers.get(ident, (None,))[0] == receiver.id
