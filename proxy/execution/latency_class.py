"""Whether the statements of one shape are quick enough to share a connection. Pure.

Reads on a shared connection (`proxy.backends.pooling.multiplexing`) wait for each other, so a shape is measured first: it gets
FIRST_TRIAL answers on connections of a session's own. The shape is quick if the fastest of these took at most QUICK_S longer
than this server's fastest answer ever. The fastest counts, because on a busy machine all others measure the queue. A shape
that was slow on a shared connection gets a longer trial.
"""

from __future__ import annotations

import math
from typing import Final


# How many seconds a quick shape's fastest answer may be slower than the server's fastest answer.
QUICK_S: Final = 0.001
FIRST_TRIAL: Final = 8
_LONGER: Final = 4
LAST_TRIAL: Final = 8192


class LatencyClass:
    """The measured latency of one shape.

    Attributes:
        is_quick: reads of the shape may share a connection.
    """

    __slots__ = ("_answers", "_fastest_s", "_trial", "is_quick")

    def __init__(self) -> None:
        self.is_quick = False
        self._trial = FIRST_TRIAL
        self._answers = 0
        self._fastest_s = math.inf

    def answered(self, took_s: float, way_s: float) -> None:
        """Count a small answer that took *took_s* seconds; the server's fastest answer took *way_s* seconds."""
        self._fastest_s = min(self._fastest_s, took_s)
        self._answers += 1
        if self._answers >= self._trial:
            self.is_quick = self._fastest_s <= way_s + QUICK_S
            self._start_over()

    def was_slow(self) -> None:
        """Begin a longer trial: an answer was large, late, or had warnings."""
        self.is_quick = False
        self._trial = min(self._trial * _LONGER, LAST_TRIAL)
        self._start_over()

    def _start_over(self) -> None:
        self._answers = 0
        self._fastest_s = math.inf
