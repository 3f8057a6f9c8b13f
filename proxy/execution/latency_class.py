"""How quick the statements of one shape are: whether others can wait behind them. Pure.

Reads that share a connection (`proxy.backends.multiplexing`) wait for each other, so a shape must earn its
place there: several answers on connections of its own, the fastest of which was hardly slower than
this server ever is. The fastest, because on a busy machine all others measure the queue. A shape
that was slow on a line has more to show the next time.
"""

from __future__ import annotations

import math
from typing import Final


# Slower than the fastest answer of the server by no more than this.
QUICK_S: Final = 0.001
FIRST_TRIAL: Final = 8
_LONGER: Final = 4
LAST_TRIAL: Final = 8192


class LatencyClass:
    """What is known of one shape.

    Attributes:
        is_quick: others may wait behind it.
    """

    __slots__ = ("_answers", "_fastest_s", "_trial", "is_quick")

    def __init__(self) -> None:
        self.is_quick = False
        self._trial = FIRST_TRIAL
        self._answers = 0
        self._fastest_s = math.inf

    def answered(self, took_s: float, way_s: float) -> None:
        """Learn that an answer was small and took *took_s*, where any takes *way_s* at least."""
        self._fastest_s = min(self._fastest_s, took_s)
        self._answers += 1
        if self._answers >= self._trial:
            self.is_quick = self._fastest_s <= way_s + QUICK_S
            self._start_over()

    def was_slow(self) -> None:
        """Learn that an answer was large, or late, or left something behind."""
        self.is_quick = False
        self._trial = min(self._trial * _LONGER, LAST_TRIAL)
        self._start_over()

    def _start_over(self) -> None:
        self._answers = 0
        self._fastest_s = math.inf
