"""Polls after commits whose writes are not known.

Such a commit may have written to every queue of its shard. Each queue with streams is polled once, however many of these commits
there were meanwhile. All these polls together take SHARE of a core; further ones wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.dispatch.events import Changed


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.runner import Runner
    from streamfrom.engine.sharding.keyspace import ShardName


log = logging.getLogger(__name__)

# Of a core, and the burst that is allowed after a rest.
SHARE: Final = 0.05
SAVED_S: Final = 0.05
# The time of a poll on a core, here and at the server, and for each key that it reads.
POLL_S: Final = 0.0005
KEY_S: Final = 0.000_005
# A queue that is polled later than this is reported.
LATE_S: Final = 0.1


class UnseenWrites:
    """The queues to poll, of all tables. Belongs to one event loop."""

    def __init__(self) -> None:
        # In the order in which they are polled: since when each waits.
        self._waiting: dict[tuple[Runner, ShardName], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._saved_s = SAVED_S
        self._counted_s = 0.0
        self._has_reported = False

    def happened(self, shard: ShardName, runners: Iterable[Runner]) -> None:
        """Poll those of *runners* on *shard* that have streams there."""
        now_s = asyncio.get_running_loop().time()
        for runner in runners:
            if runner.state.shard(shard).hears_news:
                self._waiting.setdefault((runner, shard), now_s)
        if self._waiting and self._timer is None:
            self._poll_next()

    def stop(self) -> None:
        """Poll nothing more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _poll_next(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self._saved_s = min(SAVED_S, self._saved_s + SHARE * (now_s - self._counted_s))
        self._counted_s = now_s
        while self._waiting and self._saved_s > 0:
            (runner, shard), since_s = next(iter(self._waiting.items()))
            del self._waiting[runner, shard]
            if now_s - since_s > LATE_S:
                self._report(runner)
            self._saved_s -= POLL_S + KEY_S * runner.state.shard(shard).known
            runner.post(Changed(shard, None))
        if self._waiting:
            self._timer = loop.call_later(-self._saved_s / SHARE + 0.001, self._poll_next)

    def _report(self, runner: Runner) -> None:
        if not self._has_reported:
            self._has_reported = True
            log.warning(
                "commits that may write to any queue are too many to look at each at once",
                extra={
                    **runner.table.named,
                    "late_ms": round(LATE_S * 1000),
                    "core_percent": round(SHARE * 100),
                },
            )
