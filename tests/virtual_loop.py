"""An asyncio loop whose clock jumps: time passes only when nothing can run.

``run_virtual(main())`` runs an hour of timers in a millisecond and always in the same order. A
loop with nothing left to wait for raises `Deadlock` instead of hanging.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Coroutine
from typing import TypeVar


T = TypeVar("T")

START_NS = 1_800_000_000 * 10**9  # the virtual wall clock's time when a loop begins


class Deadlock(AssertionError):
    """Every task waits, and no timer will wake one."""


class _JumpingSelector(selectors.SelectSelector):
    """Moves the clock by a timeout instead of waiting for it."""

    now_s = 0.0

    def select(self, timeout=None):
        if timeout == 0 and len(self.get_map()) == 1:
            # Something else can run. Only another thread could have written here; that is read when nothing else can run.
            return []
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Deadlock
            self.now_s += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, which begins at 0."""

    def __init__(self):
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now_s

    def skip(self, seconds):
        """Advance the clock without running anything."""
        self._jumping.now_s += seconds


class VirtualClock:
    """The wall clock of the running virtual loop."""

    def time_ns(self) -> int:
        return START_NS + round(asyncio.get_running_loop().time() * 10**9)


def run_virtual(main: Coroutine[None, None, T]) -> T:
    """Run *main* on a new virtual loop and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def running(test):
    """Run a coroutine test on a new virtual loop."""

    @functools.wraps(test)
    def run(**fixtures):
        run_virtual(test(**fixtures))

    return run
