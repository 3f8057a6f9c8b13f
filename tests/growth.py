"""Checks that work grows linearly with its text, measured so that the load of the machine has no effect.

It measures the processor time of the thread, not the clock. The garbage collector is off, because
a collection walks the whole heap of the test run and is charged to the code that allocates most. The
best of several attempts counts for each size.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


Work = Callable[[], object]

ATTEMPTS = 8
# Ten times the text is 10 times the work if that is linear and 100 times if it is quadratic.
# The processor's caches hold only the small text, which makes the large one up to 3 times slower.
SLACK = 4
# Times below this are always accepted.
QUICK_S = 0.025


def thread_seconds(work: Work) -> float:
    """Return the processor time of this thread that *work* takes, without garbage collection."""
    gc.disable()
    try:
        began = time.thread_time()
        work()
        return time.thread_time() - began
    finally:
        gc.enable()


def is_linear(prepare: Callable[[int], Work], small: int, large: int) -> bool:
    """Return whether the work for *large* takes no more than its share of that for *small*.

    *prepare* makes the work for a size; its own time does not count.
    """
    best_small = best_large = float("inf")
    for _ in range(ATTEMPTS):
        best_large = min(best_large, thread_seconds(prepare(large)))
        if best_large <= QUICK_S:
            return True
        best_small = min(best_small, thread_seconds(prepare(small)))
        if best_large <= SLACK * large / small * best_small:
            return True
    return False
