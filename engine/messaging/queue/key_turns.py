"""Turns among the keys of a queue: each key gives one message in its turn, as long as it has one that is due. Pure.

The key whose last turn is longest ago goes first. The turns are remembered from one call to the next, so all keys are
served also where there is room for one message at a time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from streamfrom.engine.messaging.queue.lanes import Tier
    from streamfrom.engine.messaging.table.message import MessageKey


class KeyTurns:
    """When each key had its last turn, by a number that rises."""

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}
        self._number = 0

    def keep(self, keys: Container[bytes]) -> None:
        """Forget all keys but those of *keys*."""
        self._last = {key: number for key, number in self._last.items() if key in keys}

    def take(
        self, lines: Mapping[bytes, Sequence[Tier]], room: int, now_ns: int, *, newest: bool
    ) -> list[MessageKey]:
        """Take up to *room* due messages out of *lines*, in the order to send them.

        lines: by key, its tiers in the order in which they are served.
        """
        if len(lines) == 1:
            # Mostly so, where no key is read apart.
            (tiers,) = lines.values()
            return _taken(tiers, room, now_ns, newest=newest)
        due = {
            key: count
            for key, tiers in sorted(lines.items(), key=self._last_turn)
            if (count := sum(len(tier.fresh) + tier.timed.due(now_ns) for tier in tiers))
        }
        counts = _equal_shares(room, due)
        taken = [
            _taken(lines[key], count, now_ns, newest=newest) for key, count in counts.items()
        ]
        # The key that got least goes first the next time.
        for key in sorted(counts, key=counts.__getitem__):
            self._number += 1
            self._last[key] = self._number
        return [one for each in zip_longest(*taken) for one in each if one is not None]

    def _last_turn(self, line: tuple[bytes, object]) -> int:
        return self._last.get(line[0], 0)


def _taken(tiers: Sequence[Tier], room: int, now_ns: int, *, newest: bool) -> list[MessageKey]:
    taken: list[MessageKey] = []
    for tier in tiers:
        if len(taken) == room:
            break
        taken += tier.take(room - len(taken), now_ns, newest=newest)
    return taken


def _equal_shares(room: int, due: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how much of *room* each key of *due* gets, no more than it has; the first ones get what is left over."""
    # Who has less than an equal share gets all of it, and leaves more for the others.
    left, others, most = room, len(due), 0
    for count in sorted(due.values()):
        most = -(-left // others)
        if count >= most:
            break
        left -= count
        others -= 1
    counts = {key: min(count, most) for key, count in due.items()}
    surplus = sum(counts.values()) - room
    for key in reversed(tuple(due)):
        if surplus <= 0:
            break
        if counts[key] == most:
            counts[key] -= 1
            surplus -= 1
    return {key: count for key, count in counts.items() if count}
