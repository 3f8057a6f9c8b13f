"""Whether work grows with its text and no faster, measured so that a busy machine cannot deny it.

The processor time of the thread is taken, not the clock; the garbage collector stands still, for
a collection walks the whole heap of the test run and falls to whoever makes the most objects; and
of several attempts the best one counts for each size.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


Work = Callable[[], object]

ATTEMPTS = 8
# Ten times the text is 10 times the work if that is linear and 100 times if it is quadratic.
# The caches of the processor hold the small text only, which costs the large one up to 3 times.
SLACK = 4
# Less than this is not worth a doubt: nobody waits for it.
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
