"""The wall clock, passed in so that tests can use their own, and a timer that follows it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    import asyncio


class Clock(Protocol):
    """The clock of the times that are written into rows."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""


class SystemClock:
    """The machine's clock."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return time.time_ns()


class WakeTimer:
    """Calls *wake* at the set moment, or before; its owner then sets the next one. Belongs to one event loop.

    sleep_max_s: the longest sleep, because the wall clock may be set while the loop's own timer runs.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now_ns: Callable[[], int],
        wake: Callable[[], None],
        sleep_max_s: float = math.inf,
    ) -> None:
        self._loop = loop
        self._now_ns = now_ns
        self._wake = wake
        self._sleep_max_s = sleep_max_s
        self._handle: asyncio.TimerHandle | None = None
        self._at_ns = 0

    def set(self, at_ns: int | None) -> None:
        """Wake at *at_ns*; None for no moment."""
        if self._handle is not None:
            # A call that comes too early costs less than a new timer for each event: every lease moves the next
            # moment, and usually its ack moves it back.
            if at_ns is None or self._at_ns <= at_ns:
                return
            self.cancel()
        if at_ns is not None:
            self._at_ns = at_ns
            delay_s = min(max(at_ns - self._now_ns(), 1) / 10**9, self._sleep_max_s)
            self._handle = self._loop.call_later(delay_s, self._elapsed)

    def cancel(self) -> None:
        """Do not wake until another moment is set."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _elapsed(self) -> None:
        self._handle = None
        self._wake()
