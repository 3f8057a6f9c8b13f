"""How long a parent waits before it restarts a worker. Pure."""

from __future__ import annotations

from typing import Final


FIRST_S: Final = 0.1
LONGEST_S: Final = 10.0
# Who has run so long did not die of how it starts.
SETTLED_S: Final = 60.0


def restart_delay_s(before_s: float, lived_s: float) -> float:
    """Return the seconds to wait after a worker that ran for *lived_s* has ended.

    before_s: what was waited before that one was started; 0 for the first one.
    """
    if lived_s >= SETTLED_S or not before_s:
        return FIRST_S
    return min(2 * before_s, LONGEST_S)
