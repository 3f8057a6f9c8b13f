"""Deletes acked messages once they are older than vt_purge_after.

Runs with and without streams, every INTERVAL_S, on each shard by itself: batches of
`PURGE_ROWS_MAX` rows, each its own short transaction, until a batch is short. Where a queue is partitioned by time,
its partitions are dropped, and what is deleted row by row is only what they leave behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableGone
from streamfrom.engine.messaging.dispatch.events import PurgeRefused
from streamfrom.engine.messaging.shell.partition_upkeep import PartitionUpkeep
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.shell.message_store import Store
    from streamfrom.engine.messaging.table.message import Refused
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.table_settings import Properties
    from streamfrom.engine.sharding.keyspace import ShardName


# Of one purge of a shard. The next goes on behind them.
REFUSED_MAX: Final = 1000

log = logging.getLogger(__name__)


# Between two purges, unless rows are to be gone sooner.
INTERVAL_S: Final = 30.0
INTERVAL_MIN_S: Final = 1.0


def _interval_s(properties: Properties) -> float:
    return max(INTERVAL_MIN_S, min(INTERVAL_S, properties.purge_after_ns / 10**9))


class Purger:
    """One task per shard of one table. Built inside a running loop and running at once.

    may_purge: whether this process is the one that purges a shard at this moment.
    counters_of: where the purged rows of a shard are counted.
    report_held_back: is given how many partitions of a shard each purge has found held back.
    set_aside: returns the rows of a shard that its server did not delete before, and whether each is left alone for now.
    report_refused: is given the rows that it does not delete.
    """

    def __init__(
        self,
        table: MessageTable,
        shards: Iterable[ShardName],
        store: Store,
        clock: Clock,
        may_purge: Callable[[ShardName], bool] = lambda _: True,
        counters_of: Callable[[ShardName], Counters] = lambda _: Counters(),
        report_held_back: Callable[[ShardName, int], None] = lambda *_: None,
        set_aside: Callable[[ShardName], Mapping[bytes, bool]] = lambda _: {},
        report_refused: Callable[[PurgeRefused], None] = lambda _: None,
    ) -> None:
        self._set_aside = set_aside
        self._report_refused = report_refused
        self._counters_of = counters_of
        self._report_held_back = report_held_back
        self._may_purge = may_purge
        self._table = table
        self._store = store
        self._clock = clock
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._run(shard)) for shard in shards]

    def reconfigure(self, table: MessageTable) -> None:
        """Follow changed settings; a new interval begins now."""
        self._table = table
        self._changed.set()
        # A new one: those that waited for the old one each wake once.
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        """Return when nothing runs any more; twice is fine."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, shard: ShardName) -> None:
        upkeep = PartitionUpkeep(self._store, shard)
        failing = False
        while True:
            await self._interval()
            if not self._may_purge(shard):
                continue
            try:
                await self._purge(shard, upkeep)
            except TableGone:
                continue  # it ends once the definitions are read again
            except StreamfromError as error:
                self._counters_of(shard).purge_failures += 1
                # Once for each trouble, and not once for each interval: a shard may be away for
                # days.
                if not failing:
                    reason = {"reason": str(error)}
                    log.warning("purge failed", extra={**self._named(shard), **reason})
                failing = True
            except Exception:
                self._counters_of(shard).purge_failures += 1
                log.exception("purge failed", extra=self._named(shard))
            else:
                failing = False

    async def _interval(self) -> None:
        """Wait one interval; a changed one is waited for from the change on."""
        while True:
            changed = self._changed
            try:
                async with asyncio.timeout(_interval_s(self._table.properties)):
                    await changed.wait()
            except TimeoutError:
                return

    async def _purge(self, shard: ShardName, upkeep: PartitionUpkeep) -> None:
        table, now_ns = self._table, self._clock.time_ns()
        cutoff_ns = now_ns - table.properties.purge_after_ns
        if not table.is_partitioned:
            self._report_held_back(shard, 0)
        else:
            cutoff_ns = await upkeep.look(table, now_ns)
            self._report_held_back(shard, upkeep.held_back)
            try:
                await upkeep.run(table, now_ns, self._counters_of(shard))
            except StreamfromError:
                # An account that may not drop may delete.
                await self._purge_rows(table, shard, cutoff_ns)
                raise
        await self._purge_rows(table, shard, cutoff_ns)

    async def _purge_rows(self, table: MessageTable, shard: ShardName, cutoff_ns: int) -> None:
        before = self._set_aside(shard)
        left_out = {ident for ident, is_left_alone in before.items() if is_left_alone}
        refused: dict[bytes, Refused] = {}
        found = PURGE_ROWS_MAX
        # In short transactions, so that no lock of the purge lasts. Less than a full one was
        # the last.
        while found >= PURGE_ROWS_MAX and len(refused) < REFUSED_MAX:
            purged = await self._store.purge(table, shard, cutoff_ns, {*left_out, *refused})
            self._counters_of(shard).purged += purged.deleted
            refused.update(purged.refused)
            found = purged.found if purged.deleted or purged.refused else 0
        tried = before.keys() - left_out if found < PURGE_ROWS_MAX else ()
        over = tuple(ident for ident in tried if ident not in refused)
        if refused or over:
            self._report_refused(PurgeRefused(shard, refused, over))

    def _named(self, shard: ShardName) -> dict[str, str]:
        """Name the table and a shard by the keys that log lines have."""
        return {**self._table.named, "shard": shard}
