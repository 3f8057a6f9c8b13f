"""When an idle client is disconnected, and with which error.

Two limits count, the sooner one of them: `idle_timeout` of the configuration, and what the client
has said itself with SET wait_timeout. Neither runs while a statement or a STREAM does.

Each session has one timer. A command does not set it again, as that would cost every point SELECT: a timer that fires
and finds that the client has sent something meanwhile is set for the rest of the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import IdleTooLong
from streamfrom.proxy.wire.server_connection import ServerConnection, refusal


if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamfrom.proxy.net import Link


class IdleTimeout:
    """The silence of one client.

    Attributes:
        wait_timeout_s: the client's own limit, None where it has set none.
    """

    def __init__(
        self,
        link: Link,
        wire: ServerConnection,
        logger: FilteringBoundLogger,
        idle_since_s: Callable[[], float | None],
        idle_timeout_s: Callable[[], float],
    ) -> None:
        """*idle_since_s*: in the loop's time, None while the client waits for an answer.

        idle_timeout_s: the limit that the configuration has now, 0 for none.
        """
        self.wait_timeout_s: float | None = None
        self._link = link
        self._wire = wire
        self._log = logger
        self._idle_since_s = idle_since_s
        self._idle_timeout_s = idle_timeout_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.look()

    def look(self) -> None:
        """Disconnect the client if its time is over, else look again when it may be. Limits may have changed."""
        self.stop()
        limit_s = self._idle_timeout_s() or None
        own_s = self.wait_timeout_s
        is_own = own_s is not None and (limit_s is None or own_s < limit_s)
        if is_own:
            limit_s = own_s
        if limit_s is None:
            return
        since_s, now_s = self._idle_since_s(), self._loop.time()
        end_s = limit_s + (now_s if since_s is None else since_s)
        if since_s is None or now_s < end_s:
            self._timer = self._loop.call_at(end_s, self.look)
        elif is_own and self._wire.is_mariadb:
            self._link.close()  # without a word, as MariaDB does
        else:
            self._log.info("client idle for too long")
            setting = "wait_timeout and interactive_timeout" if is_own else "idle_timeout"
            self._link.write(refusal(IdleTooLong(setting), self._wire.capabilities))
            self._link.close()

    def stop(self) -> None:
        """Look no more: the client is gone, or has become another user."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
