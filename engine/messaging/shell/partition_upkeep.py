"""Makes the partitions of a queue ahead, and drops those that are done, on one shard.

What a client's transaction holds up is tried again after 1 s, and after twice that from try to try, up to 60 s. A try
holds up others by its patience at most: 0.1 s, and twice that from try to try, up to 0.4 s, for a server that is slow.
The third try that fails is logged: transactions that last a second are not worth a line.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.upkeep.partitions import Outcome, late, rest_held_back


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.message_store import Store
    from streamfrom.engine.messaging.table.counters import Counters
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.upkeep.partitions import PartitionCensus
    from streamfrom.engine.sharding.keyspace import ShardName


PATIENCE_FIRST_S: Final = 0.1
PATIENCE_LAST_S: Final = 0.4
PAUSE_FIRST_NS: Final = 10**9
PAUSE_LAST_NS: Final = 60 * 10**9
TRIES_UNREPORTED: Final = 2

log = logging.getLogger(__name__)


class PartitionUpkeep:
    """The partitions of one queue on one shard, as its dispatcher keeps them.

    Attributes:
        held_back: how many should have been dropped or made, as of the last look.
    """

    def __init__(self, store: Store, shard: ShardName) -> None:
        self._store = store
        self._shard = shard
        self._census: PartitionCensus | None = None
        self._tries = 0  # that a transaction held up, without a break
        self._retry_ns = 0
        self.held_back = 0
        # What was logged of each partition, so that it is logged once.
        self._reported: dict[str, str] = {}

    async def look(self, table: MessageTable, now_ns: int) -> int:
        """Look at the partitions; return before when rows must be acked to be deleted by themselves.

        Raises:
            StreamfromError: the server is in trouble, or a lock hides them.
        """
        purge_after_ns = table.properties.purge_after_ns
        self._census = await self._store.partitions(table, self._shard, now_ns)
        if self._census is None:
            self.held_back = 0
            return now_ns - purge_after_ns
        self._report(table, self._census, now_ns)
        return self._census.partitions.rows_cutoff_ns(now_ns, purge_after_ns)

    async def run(self, table: MessageTable, now_ns: int, counters: Counters) -> None:
        """Drop and make what is to be, by the last look.

        counters: where the rows of dropped partitions are counted, as the optimizer estimates them.

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
            outcome = await self._store.make_partitions(
                table, self._shard, missing, census.partitions.rest, self._patience_s
            )
            self._note(table, missing[0].name, outcome, now_ns)

    async def _drop(
        self, table: MessageTable, name: str, now_ns: int, counters: Counters
    ) -> None:
        rows = await self._store.rows_in(table, self._shard, name)
        cutoff_ns = now_ns - table.properties.purge_after_ns
        outcome = await self._store.drop_partition(
            table, self._shard, name, cutoff_ns, self._patience_s
        )
        self._note(table, name, outcome, now_ns)
        if outcome is Outcome.DONE:
            counters.purged += rows
            fields = {"partition": name, "count": rows}
            log.info("partition dropped", extra={**self._named(table), **fields})

    def _note(self, table: MessageTable, name: str, outcome: Outcome, now_ns: int) -> None:
        if outcome is not Outcome.HELD:
            self._tries = 0
            return
        # The shift is bounded, as tries are not.
        self._retry_ns = now_ns + min(PAUSE_FIRST_NS << min(self._tries, 10), PAUSE_LAST_NS)
        self._tries += 1
        if self._tries > TRIES_UNREPORTED:
            self._warn(table, name, "a transaction holds the table")

    @property
    def _patience_s(self) -> float:
        return min(PATIENCE_FIRST_S * (1 << min(self._tries, 10)), PATIENCE_LAST_S)

    def _report(self, table: MessageTable, census: PartitionCensus, now_ns: int) -> None:
        partitions = census.partitions
        reasons = late(census, now_ns, table.properties.purge_after_ns)
        self.held_back = len(reasons)
        known = {each.name for each in (*partitions.timed, *partitions.missing(now_ns))}
        known.add(partitions.rest)
        self._reported = {
            name: reported for name, reported in self._reported.items() if name in known
        }
        for name, reason in reasons.items():
            self._warn(table, name, reason)

    def _warn(self, table: MessageTable, name: str, reason: str) -> None:
        # Counts change from purge to purge: the same kind of reason is logged once.
        kind = reason.lstrip("0123456789")
        if self._reported.get(name) != kind:
            self._reported[name] = kind
            fields = {"partition": name, "reason": reason}
            log.warning("partition overdue", extra={**self._named(table), **fields})

    def _named(self, table: MessageTable) -> dict[str, str]:
        return {**table.named, "shard": self._shard}
