"""Statements that take too long, and clients that say nothing any more.

One task looks at all sessions now and then, rather than a timer for each command: a timer would
cost every point SELECT more than a look costs in a second. So a limit is exceeded by a tenth of
itself at most, and never by more than LOOK_S_MAX.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.proxy.sessions.services import Peer


LOOK_S_MIN: Final = 0.02
SWEEP_S_MAX: Final = 5.0


class Deadlines:
    """The limits of all sessions, in seconds; 0 is none."""

    def __init__(
        self, sessions: Mapping[int, Peer], *, statement_s: float, idle_s: float
    ) -> None:
        self._sessions = sessions
        self._statement_s = statement_s
        self._idle_s = idle_s

    @property
    def sweep_s(self) -> float | None:
        """How long it is from one look to the next; None if there is nothing to look for."""
        limits = [limit for limit in (self._statement_s, self._idle_s) if limit]
        return min(max(min(limits) / 10, LOOK_S_MIN), SWEEP_S_MAX) if limits else None

    async def run(self) -> None:
        """Look at all sessions again and again."""
        look_s = self.sweep_s
        if look_s is None:
            return
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(look_s)
            self.sweep(loop.time())

    def sweep(self, now_s: float) -> None:
        """End what has taken too long at *now_s*, in the loop's time."""
        for session in list(self._sessions.values()):
            busy_s, idle_s = session.times(now_s)
            if self._statement_s and busy_s >= self._statement_s:
                session.time_out(now_s)
            elif self._idle_s and idle_s >= self._idle_s:
                session.leave_idle()
