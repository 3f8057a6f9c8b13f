"""Statements that take too long, and clients that say nothing for too long.

One task looks at all sessions now and then, rather than a timer for each command: a timer would
cost every point SELECT more than a sweep costs in a second. So a limit is exceeded by a tenth of
itself at most, or by SWEEP_S_MAX.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.proxy.sessions.services import Services


SWEEP_S_MIN: Final = 0.02
# What a client sets as its wait_timeout are whole seconds.
SWEEP_S_MAX: Final = 1.0


async def keep_time_limits(services: Services) -> None:
    """Have all sessions keep to the limits of the configuration in force, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        limit_s = services.config.statement_timeout_s or SWEEP_S_MAX * 10
        await asyncio.sleep(min(max(limit_s / 10, SWEEP_S_MIN), SWEEP_S_MAX))
        for session in list(services.sessions.values()):
            if session.user is not None:
                session.work.keep_limits(loop.time(), services.config)
