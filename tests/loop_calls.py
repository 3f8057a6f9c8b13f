"""Counts calls in the loop's thread, by function, so that the load of the machine has no effect."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


PRODUCT = ("/streamfrom/proxy/", "/streamfrom/sqlparse_ext/", "/streamfrom/engine/")


@contextmanager
def calls_counted() -> Iterator[Counter[str]]:
    """Count the calls of each function of the product in this thread, including steps of generators."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and any(folder in code.co_filename for folder in PRODUCT):
            counts[f"{code.co_filename.rpartition('/')[2]} {code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(None)
