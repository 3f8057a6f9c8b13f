"""Logs that statements get no connection to a shard, at a bounded rate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.errors import NoDescriptor, PoolTimeout, ServerFull


if TYPE_CHECKING:
    from collections.abc import Callable


# Of each kind one line in this time.
QUIET_S: Final = 10.0
_EVENTS: Final = {
    ServerFull: "the server takes no more connections",
    PoolTimeout: "no free connection",
    NoDescriptor: "no file descriptor left for a connection to a shard",
}


class TurnedAway:
    """Counts and logs the statements that got no connection to one server.

    log: a logger with keyspace and shard.
    """

    def __init__(
        self, log: Any, server: str, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._server = server
        self._now_s = now_s
        # By kind: how many since its last line, and when that was.
        self._since: dict[type[Exception], tuple[int, float]] = {}

    def note(self, error: Exception) -> None:
        """Log *error*, if it is of such a kind and there was no line of that kind within QUIET_S.

        `count` in the line is the number of all since the last one.
        """
        kind = type(error)
        event = _EVENTS.get(kind)
        if event is None:
            return
        now_s = self._now_s()
        count, told_s = self._since.get(kind, (0, -QUIET_S))
        if now_s - told_s < QUIET_S:
            self._since[kind] = count + 1, told_s
            return
        self._since[kind] = 0, now_s
        self._log.warning(event, server=self._server, count=count + 1, reason=str(error))
