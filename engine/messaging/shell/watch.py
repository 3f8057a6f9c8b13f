"""The gauges of all message tables, for SQL, JSON and Prometheus.

They are in memory, except the depth of tables that are not whole in memory, because no client streams
them or they are longer than the cache. This depth, and the number of dead letters, is queried on each shard for all its tables
together (`engine.messaging.upkeep.depths`), once a second at most, however many clients want it, and seldom enough that the queries
take a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.figures import figures
from streamfrom.engine.messaging.upkeep.depths import depths
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.messaging.upkeep.depths import Depth
    from streamfrom.engine.sharding.keyspace import ShardName


log = logging.getLogger(__name__)

# The age of depths, at most.
FRESH_NS: Final = 10**9
# Or this many times the duration of the query, if that is longer.
SELDOM: Final = 20
# With 16 shards each: about 2 ms of the loop.
TABLES_IN_A_TURN: Final = 8
# A shard that does not answer leaves the depth of its tables unknown.
PATIENCE_S: Final = 2.0


class Watch:
    """Reads gauges. Belongs to one event loop, as the registry does."""

    def __init__(self, registry: Registry, store: Store, clock: Clock) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        # By keyspace and shard: when it was queried, how long the answer is fresh, and the answer, by table.
        self._depths: dict[tuple[str, ShardName], tuple[int, int, dict[str, Depth]]] = {}
        self._asking = asyncio.Lock()

    async def queues(self) -> list[figures.QueueFigures]:
        """Return the gauges of every usable table, in the order of their names."""
        async with self._asking:
            await self._ask()
        return await self.known_queues()

    async def known_queues(self) -> list[figures.QueueFigures]:
        """Return the same without a query: depths are those in memory, or those that were read last."""
        now_ns = self._clock.time_ns()
        found = []
        for index, state in enumerate(self._registry.here.schedulers):
            if index % TABLES_IN_A_TURN == 0:
                await asyncio.sleep(0)
            table = state.table
            known = {
                shard.name: answer[2][table.name]
                for shard in state.shards
                if (answer := self._depths.get((table.keyspace, shard.name)))
                and table.name in answer[2]
            }
            found.append(figures.queue_figures(state, known, now_ns))
        return sorted(found, key=lambda queue: (queue.table.keyspace, queue.table.name))

    def set_aside(self) -> list[figures.SetAsideFigures]:
        """Return the rows that servers refuse to write, for shards that this process dispatches."""
        return [
            row
            for state in self._registry.here.schedulers
            for row in figures.set_aside_figures(state)
        ]

    def streams(self) -> list[figures.StreamFigures]:
        """Return the open streams of this process."""
        return [
            stream
            for runner in self._registry.here.runners
            for stream in figures.stream_figures(runner.state, runner.connection_ids)
        ]

    async def _ask(self) -> None:
        wanted: dict[tuple[str, ShardName], list[MessageTable]] = {}
        for state in self._registry.here.schedulers:
            for shard in state.shards:
                if not figures.is_known_whole(shard) or state.table.properties.dead_letter:
                    place = state.table.keyspace, shard.name
                    wanted.setdefault(place, []).append(state.table)
        now_ns = self._clock.time_ns()
        self._depths = {
            place: (asked_ns, fresh_ns, known)
            for place, (asked_ns, fresh_ns, known) in self._depths.items()
            if abs(now_ns - asked_ns) < fresh_ns
            and all(table.name in known for table in wanted.get(place, ()))
        }
        await asyncio.gather(
            *(
                self._ask_shard(*place, tables)
                for place, tables in wanted.items()
                if place not in self._depths
            )
        )

    async def _ask_shard(
        self, keyspace: str, shard: ShardName, tables: list[MessageTable]
    ) -> None:
        asked_ns = self._clock.time_ns()
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._store.ask(keyspace, shard, partial(depths, tables=tables))
        except (StreamfromError, TimeoutError) as error:
            # The health checks report a shard that is away; here one gauge is missing.
            log.debug(
                "depths not known",
                extra={"keyspace": keyspace, "shard": shard, "reason": str(error)},
            )
        else:
            now_ns = self._clock.time_ns()
            fresh_ns = max(FRESH_NS, SELDOM * (now_ns - asked_ns))
            self._depths[keyspace, shard] = now_ns, fresh_ns, found
