"""Statements that take too long.

One task looks at all sessions now and then, rather than a timer for each command: a timer would
cost every point SELECT more than a sweep costs in a second. So the limit is exceeded by a tenth of
itself at most, and never by more than SWEEP_S_MAX.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.proxy.sessions.services import Peer


SWEEP_S_MIN: Final = 0.02
SWEEP_S_MAX: Final = 5.0


class StatementTimeout:
    """The limit for the statements of all sessions, in seconds; 0 is none."""

    def __init__(self, sessions: Mapping[int, Peer], limit_s: float) -> None:
        self._sessions = sessions
        self._limit_s = limit_s

    @property
    def sweep_s(self) -> float:
        """How long it is from one sweep to the next."""
        return min(max(self._limit_s / 10, SWEEP_S_MIN), SWEEP_S_MAX)

    async def run(self) -> None:
        """Look at all sessions again and again, unless there is no limit."""
        loop = asyncio.get_running_loop()
        while self._limit_s:
            await asyncio.sleep(self.sweep_s)
            self.sweep(loop.time())

    def sweep(self, now_s: float) -> None:
        """Stop what has taken too long at *now_s*, in the loop's time."""
        for session in list(self._sessions.values()):
            if session.user is not None and session.work.busy_s(now_s) >= self._limit_s:
                session.work.time_out(now_s)
