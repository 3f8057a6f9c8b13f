"""Logs that statements get no connection to a shard, at a bounded rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streamfrom.proxy.errors import NoDescriptor, PoolTimeout, ServerFull
from streamfrom.proxy.log import SparingLog


class TurnedAway:
    """Counts and logs the statements that got no connection to one server.

    log: a logger with keyspace and shard.
    """

    def __init__(
        self, log: Any, server: str, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = SparingLog(log, now_s)
        self._server = server

    def note(self, error: Exception) -> None:
        """Log *error*, if it is of such a kind and there was no line of that kind a moment ago."""
        fields = {"server": self._server, "reason": str(error)}
        match error:
            case ServerFull():
                self._log.warning("the server takes no more connections", **fields)
            case PoolTimeout():
                self._log.warning("no free connection", **fields)
            case NoDescriptor():
                self._log.warning(
                    "no file descriptor left for a connection to a shard", **fields
                )
            case _:
                pass
