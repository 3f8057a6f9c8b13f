"""Deletes acked messages once they are older than vt_purge_after.

Runs with and without streams, every INTERVAL_S, on each shard separately: batches of
`PURGE_ROWS_MAX` rows, each its own short transaction, until a batch is short. If a queue is partitioned by time,
its partitions are made ahead and dropped, and only the rows they leave behind are deleted one by one.

A change that a client's transaction blocks is tried again after 1 s, doubling with each try, up to 60 s. A try
blocks others for its patience at most: 0.1 s, doubling with each try, up to 0.4 s, for a slow server.
The third failed try is logged: transactions that last a second are not worth a line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableGone
from streamfrom.engine.messaging.dispatch.events import PurgeRefused
from streamfrom.engine.messaging.table.message import Tried
from streamfrom.engine.messaging.upkeep.partitions import (
    DropPartition,
    MakePartitions,
    Outcome,
    TakeCensus,
    late,
    rest_held_back,
)
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX, Purge
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.table.counters import Counters
    from streamfrom.engine.messaging.table.message import Refused
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.messaging.table.table_settings import Properties
    from streamfrom.engine.messaging.upkeep.partitions import PartitionCensus
    from streamfrom.engine.sharding.keyspace import ShardName


# In one purge of a shard. The next one continues after them.
REFUSED_MAX: Final = 1000

# Between two purges, unless rows must go sooner.
INTERVAL_S: Final = 30.0
INTERVAL_MIN_S: Final = 1.0
PATIENCE_FIRST_S: Final = 0.1
PATIENCE_LAST_S: Final = 0.4
PAUSE_FIRST_NS: Final = 10**9
PAUSE_LAST_NS: Final = 60 * 10**9
TRIES_UNREPORTED: Final = 2

log = logging.getLogger(__name__)


def _interval_s(properties: Properties) -> float:
    return max(INTERVAL_MIN_S, min(INTERVAL_S, properties.purge_after_ns / 10**9))


class Purger:
    """One task per shard of one table. Built inside a running loop and running at once.

    may_purge: returns whether this process is the one that purges a shard at this moment.
    report_refused: is given the rows that a server does not delete.
    """

    def __init__(
        self,
        table: MessageTable,
        shards: Iterable[ShardState],
        store: Store,
        clock: Clock,
        may_purge: Callable[[ShardName], bool],
        report_refused: Callable[[PurgeRefused], None],
    ) -> None:
        self._report_refused = report_refused
        self._may_purge = may_purge
        self._table = table
        self._store = store
        self._clock = clock
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._run(shard)) for shard in shards]

    def reconfigure(self, table: MessageTable) -> None:
        """Apply changed settings; a new interval begins now."""
        self._table = table
        self._changed.set()
        # A new one, so that each waiter of the old one wakes once.
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        """Return when nothing runs any more; twice is fine."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, shard: ShardState) -> None:
        upkeep = PartitionUpkeep(self._store, shard.name)
        failing = False
        while True:
            await self._interval()
            if not self._may_purge(shard.name):
                continue
            try:
                await self._purge(shard, upkeep)
            except TableGone:
                continue  # it ends once the definitions are read again
            except StreamfromError as error:
                shard.counters.purge_failures += 1
                # Once per failure, not once per interval: a shard may be away for
                # days.
                if not failing:
                    reason = {"reason": str(error)}
                    log.warning(
                        "purge failed", extra={**self._table.named_on(shard.name), **reason}
                    )
                failing = True
            except Exception:
                shard.counters.purge_failures += 1
                log.exception("purge failed", extra=self._table.named_on(shard.name))
            else:
                failing = False

    async def _interval(self) -> None:
        """Wait one interval; if it changes, wait the new one from then on."""
        while True:
            changed = self._changed
            try:
                async with asyncio.timeout(_interval_s(self._table.properties)):
                    await changed.wait()
            except TimeoutError:
                return

    async def _purge(self, shard: ShardState, upkeep: PartitionUpkeep) -> None:
        table, now_ns = self._table, self._clock.time_ns()
        cutoff_ns = now_ns - table.properties.purge_after_ns
        if not table.is_partitioned:
            shard.partitions_overdue = 0
        else:
            cutoff_ns = await upkeep.look(table, now_ns)
            shard.partitions_overdue = upkeep.held_back
            try:
                await upkeep.run(table, now_ns, shard.counters)
            except StreamfromError:
                # An account that may not drop may delete.
                await self._purge_rows(table, shard, cutoff_ns)
                raise
        await self._purge_rows(table, shard, cutoff_ns)

    async def _purge_rows(self, table: MessageTable, shard: ShardState, cutoff_ns: int) -> None:
        rows = shard.set_aside.rows.items()
        before = {ident for ident, row in rows if row.tried is Tried.PURGE}
        left_out = shard.set_aside.left_out(Tried.PURGE, self._clock.time_ns())
        refused: dict[bytes, Refused] = {}
        found = PURGE_ROWS_MAX
        # In short transactions, so that no lock of the purge lasts. A batch that is not full was
        # the last.
        while found >= PURGE_ROWS_MAX and len(refused) < REFUSED_MAX:
            others = {*left_out, *refused}
            purged = await self._store.run(table, shard.name, Purge(cutoff_ns, others))
            shard.counters.purged += purged.deleted
            refused.update(purged.refused)
            found = purged.found if purged.deleted or purged.refused else 0
        tried = before.difference(left_out) if found < PURGE_ROWS_MAX else ()
        over = tuple(ident for ident in tried if ident not in refused)
        if refused or over:
            self._report_refused(PurgeRefused(shard.name, refused, over))


class PartitionUpkeep:
    """The partitions of one queue on one shard, as its dispatcher keeps them.

    Attributes:
        held_back: how many should have been dropped or made, as of the last look.
    """

    def __init__(self, store: Store, shard: ShardName) -> None:
        self._store = store
        self._shard = shard
        self._census: PartitionCensus | None = None
        self._tries = 0  # consecutive ones that a transaction blocked
        self._retry_ns = 0
        self.held_back = 0
        # The last report on each partition, without counts, which change from purge to purge.
        self._reported: dict[str, str] = {}

    async def look(self, table: MessageTable, now_ns: int) -> int:
        """Look at the partitions; return the time before which rows must be acked to be deleted one by one.

        Raises:
            StreamfromError: the server is in trouble, or a lock hides them.
        """
        purge_after_ns = table.properties.purge_after_ns
        self._census = await self._store.run(table, self._shard, TakeCensus())
        if self._census is None:
            self.held_back = 0
            return now_ns - purge_after_ns
        self._report(table, self._census, now_ns)
        return self._census.partitions.rows_cutoff_ns(now_ns, purge_after_ns)

    async def run(self, table: MessageTable, now_ns: int, counters: Counters) -> None:
        """Drop and make partitions according to the last look.

        counters: count the rows of dropped partitions, as the optimizer estimates them.

        Raises:
            StreamfromError: the server is in trouble, or refuses.
        """
        census = self._census
        if census is None:
            return
        for name, left in census.left.items():
            if now_ns >= self._retry_ns and not any(left):
                await self._drop(table, name, now_ns, counters)
        if now_ns >= self._retry_ns:
            await self._make(table, census, now_ns)

    async def _make(self, table: MessageTable, census: PartitionCensus, now_ns: int) -> None:
        missing = census.partitions.missing(now_ns)
        if missing and rest_held_back(census.rest_rows) is None:
            job = MakePartitions(missing, census.partitions.rest, self._patience_s)
            outcome = await self._store.run(table, self._shard, job)
            self._note(table, missing[0].name, outcome, now_ns)

    async def _drop(
        self, table: MessageTable, name: str, now_ns: int, counters: Counters
    ) -> None:
        cutoff_ns = now_ns - table.properties.purge_after_ns
        job = DropPartition(name, cutoff_ns, self._patience_s)
        outcome, rows = await self._store.run(table, self._shard, job)
        self._note(table, name, outcome, now_ns)
        if outcome is Outcome.DONE:
            counters.purged += rows
            fields = {"partition": name, "count": rows}
            log.info("partition dropped", extra={**table.named_on(self._shard), **fields})

    def _note(self, table: MessageTable, name: str, outcome: Outcome, now_ns: int) -> None:
        if outcome is not Outcome.HELD:
            self._tries = 0
            return
        # The shift is bounded, as tries are not.
        self._retry_ns = now_ns + min(PAUSE_FIRST_NS << min(self._tries, 10), PAUSE_LAST_NS)
        self._tries += 1
        if self._tries == TRIES_UNREPORTED + 1:
            self._warn(table, name, "a transaction holds the table")

    @property
    def _patience_s(self) -> float:
        return min(PATIENCE_FIRST_S * (1 << min(self._tries, 10)), PATIENCE_LAST_S)

    def _report(self, table: MessageTable, census: PartitionCensus, now_ns: int) -> None:
        reasons = late(census, now_ns, table.properties.purge_after_ns)
        kinds = {name: reason.lstrip("0123456789") for name, reason in reasons.items()}
        for name, reason in reasons.items():
            if self._reported.get(name) != kinds[name]:
                self._warn(table, name, reason)
        self.held_back, self._reported = len(reasons), kinds

    def _warn(self, table: MessageTable, name: str, reason: str) -> None:
        fields = {"partition": name, "reason": reason}
        log.warning("partition overdue", extra={**table.named_on(self._shard), **fields})
