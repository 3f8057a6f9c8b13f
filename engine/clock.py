"""The wall clock, handed in so that tests can bring their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The clock of the times that are written into rows."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return time.time_ns()
