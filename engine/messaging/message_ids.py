"""The ids that the proxy gives to messages that have none: the time, and what keeps two of them apart.

An id is 63 bits: the nanoseconds since 1970 in steps of 2^20 (1.05 ms), the number of the member of the
fleet that made it (10 bits), and a count of the ids that it made in that step (10 bits). So ids of one member ascend,
those of two ascend with the time to a millisecond, and up to 1,024 of one statement follow one another, as drivers expect of
generated keys. A clock that is set back repeats none: the member goes on counting from the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from collections.abc import Callable

COUNT_BITS: Final = 10
MEMBER_BITS: Final = 10
_STEP_BITS: Final = COUNT_BITS + MEMBER_BITS
_COUNTS: Final = 1 << COUNT_BITS


class MessageIds:
    """The ids of one member. *now_ns*: tells the time; *member*: its number, below 2^MEMBER_BITS."""

    def __init__(self, now_ns: Callable[[], int], member: int) -> None:
        self._now_ns = now_ns
        self._member = member << COUNT_BITS
        self._step = 0
        self._count = 0

    def take(self, count: int) -> list[int]:
        """Return *count* new ids, ascending; they follow one another where a step has room for them."""
        now = self._now_ns() >> _STEP_BITS
        if now > self._step:
            self._step, self._count = now, 0
        elif count <= _COUNTS < self._count + count:
            # Ahead of the clock, so that they follow one another.
            self._step, self._count = self._step + 1, 0
        found: list[int] = []
        while len(found) < count:
            if self._count == _COUNTS:
                self._step, self._count = self._step + 1, 0
            room = min(_COUNTS - self._count, count - len(found))
            first = self._step << _STEP_BITS | self._member | self._count
            found += range(first, first + room)
            self._count += room
        return found
