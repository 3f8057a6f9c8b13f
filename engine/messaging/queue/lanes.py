"""The keys of one priority, in two lanes: which go next, and how far each lane is known.

*fresh* holds rows that were never sent (``time_next`` 0), *timed* all others; both are sorted
by (time_next, id), so that due keys come first, and never-sent rows go before retries. If
due rows had to be left out (the tier is *behind*), the lanes take turns, so that
neither starves; the taken keys are in order again. ``newest`` reverses the timed lane and
serves it before the fresh one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from sortedcontainers import SortedKeyList

from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import MessageKey


def rank(key: MessageKey) -> tuple[int, int, int | bytes]:
    """Sort by time, then by id: integers as numbers, anything else as its bytes."""
    ident = key.id
    if ident.isdigit() or (ident[:1] == b"-" and ident[1:].isdigit()):
        return key.time_next_ns, 0, int(ident)
    return key.time_next_ns, 1, ident


class Lane:
    """Sorted keys, complete within [floor_ns, horizon_ns]. more: rows outside are left out."""

    __slots__ = ("floor_ns", "horizon_ns", "keys", "low", "more")

    def __init__(self) -> None:
        self.keys: SortedKeyList[MessageKey] = SortedKeyList(key=rank)
        self.floor_ns = 0
        self.horizon_ns = FOREVER_NS
        self.more = False
        self.low = 0  # with no more keys than this, the rows that were left out are needed

    def __len__(self) -> int:
        return len(self.keys)

    def admits(self, key: MessageKey) -> bool:
        """Return whether *key* lies in the known part of the lane."""
        return self.floor_ns <= key.time_next_ns <= self.horizon_ns

    def narrow(self, floor_ns: int, horizon_ns: int, *, more: bool) -> None:
        """Note that only this part is known, and whether rows are left out."""
        self.floor_ns = max(self.floor_ns, floor_ns)
        self.horizon_ns = min(self.horizon_ns, horizon_ns)
        self.more = self.more or more

    def due(self, now_ns: int) -> int:
        """Return how many keys are due; they come first."""
        count: int = self.keys.bisect_key_right((now_ns, 2))
        return count

    def cut(self, start: int, end: int) -> list[MessageKey]:
        """Remove and return the keys from place *start* up to *end*."""
        if start == end:
            return []
        taken = list(self.keys[start:end])
        del self.keys[start:end]
        return taken

    def is_low(self) -> bool:
        """Return whether rows are left out and most of the known ones are used up."""
        return self.more and len(self.keys) <= self.low


class Tier:
    """The two lanes of one priority."""

    __slots__ = ("fresh", "fresh_first", "timed")

    def __init__(self) -> None:
        self.fresh = Lane()
        self.timed = Lane()
        self.fresh_first = True  # whose turn it is while behind

    def lane(self, key: MessageKey) -> Lane:
        """Return the lane of *key*."""
        return self.timed if key.time_next_ns > 0 else self.fresh

    def is_behind(self, now_ns: int) -> bool:
        """Return whether due rows were left out."""
        timed = self.timed
        left_out = timed.horizon_ns <= now_ns or timed.floor_ns > 0
        return self.fresh.more or (timed.more and left_out)

    def take(self, room: int, now_ns: int, *, newest: bool) -> list[MessageKey]:
        """Take up to *room* due keys out of the lanes, in the order to send them."""
        fresh, timed = len(self.fresh), self.timed.due(now_ns)
        if fresh + timed <= room:
            fresh_taken, timed_taken = fresh, timed
        elif not self.is_behind(now_ns):
            # Every due row is known, so none can starve: one lane first, then the other.
            first = min(room, timed if newest else fresh)
            rest = min(room - first, fresh if newest else timed)
            fresh_taken, timed_taken = (rest, first) if newest else (first, rest)
        else:
            # More rows are due than are known: each lane gets half, or the other's unused part.
            # An odd place goes to the lane whose turn it is, so that a room of one row at a
            # time serves both as well.
            half = (room + self.fresh_first) // 2
            fresh_taken = min(fresh, max(half, room - timed))
            timed_taken = room - fresh_taken
            self.fresh_first ^= bool(room % 2)
        from_fresh = self.fresh.cut(0, fresh_taken)
        if newest:
            from_timed = self.timed.cut(timed - timed_taken, timed)
            return [*reversed(from_timed), *from_fresh]
        return from_fresh + self.timed.cut(0, timed_taken)


class KeyTurns:
    """Turns among the keys of a queue: on its turn, a key gives one message if it has a due one.

    The key whose last turn is longest ago goes first. Turns are remembered between calls, so all keys are
    served even with room for one message at a time.
    """

    def __init__(self) -> None:
        # The last turn of each key, as a number that rises.
        self._last: dict[bytes, int] = {}
        self._number = 0

    def keep(self, keys: Container[bytes]) -> None:
        """Forget all keys except *keys*."""
        self._last = {key: number for key, number in self._last.items() if key in keys}

    def take(
        self, lines: Mapping[bytes, Sequence[Tier]], room: int, now_ns: int, *, newest: bool
    ) -> list[MessageKey]:
        """Take up to *room* due messages out of *lines*, in the order to send them.

        lines: by key, its tiers in the order in which they are served.
        """
        if len(lines) == 1:
            # The usual case: no key is read separately.
            (tiers,) = lines.values()
            return _taken(tiers, room, now_ns, newest=newest)
        due = {
            key: count
            for key, tiers in sorted(lines.items(), key=lambda line: self._last.get(line[0], 0))
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


def _taken(tiers: Sequence[Tier], room: int, now_ns: int, *, newest: bool) -> list[MessageKey]:
    taken: list[MessageKey] = []
    for tier in tiers:
        if len(taken) == room:
            break
        taken += tier.take(room - len(taken), now_ns, newest=newest)
    return taken


def _equal_shares(room: int, due: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how much of *room* each key of *due* gets, at most its own number. The first ones get the remainder."""
    # A key with less than an equal share takes all of it, and leaves more for the others.
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
