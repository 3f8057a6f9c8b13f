"""The known definitions of one keyspace's tables, and how they are read.

One reading runs at a time, and serves all callers that request the same before it begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.table.discovery import (
    HiddenDefinitions,
    come_or_gone,
    discover,
    read_hidden,
)
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN, HiddenWrites


if TYPE_CHECKING:
    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.shell.runner import Runner
    from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.sharding.keyspace import Keyspace, ShardName
    from streamfrom.sqlparse_ext.stored_forms import ColumnType


log = logging.getLogger(__name__)

# A shard that takes longer is compared the next time.
COMPARES_S: Final = 2.0


@dataclass(slots=True)
class KeyspaceTables:
    """One keyspace's message tables, and what runs them. Definitions are those of the last reading.

    by_name: the message tables, usable or not.
    spelled: their names, by the name in lower case.
    raw: the definition of each.
    runners: the runner of each usable one.
    placed: the other tables that the vschema spreads over shards.
    types: of the columns, in lower case, of these and of message tables.
    ending: the error that `DispatcherHere.end_streams` was given: no stream may begin any more.
    """

    keyspace: Keyspace
    by_name: dict[str, MessageTable | TableLoadError] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    raw: dict[str, RawTable] = field(default_factory=dict)
    hidden: HiddenDefinitions = field(default_factory=HiddenDefinitions)
    hidden_writes: HiddenWrites = NOTHING_HIDDEN
    runners: dict[str, Runner] = field(default_factory=dict)
    shards: tuple[ShardName, ...] = field(init=False)
    placed: frozenset[str] = field(init=False)
    types: dict[str, dict[str, ColumnType]] = field(default_factory=dict)
    ending: StreamfromError | None = None

    def __post_init__(self) -> None:
        self.shards = tuple(shard.name for shard in self.keyspace.shards)
        self.placed = placed_by(self.keyspace)

    def name(self, name: str) -> str:
        """Return *name* as the database spells it, if it is known in another case."""
        return name if name in self.by_name else self.spelled.get(name.lower(), name)

    def runner(self, name: str) -> Runner | None:
        """Return the runner of a table; None if there is no such table, or it cannot be used."""
        return self.runners.get(self.name(name))


def placed_by(keyspace: Keyspace) -> frozenset[str]:
    """Return the tables that the vschema of *keyspace* spreads over shards."""
    vschema = keyspace.vschema
    if vschema is None or not vschema.sharded or len(keyspace.shards) == 1:
        return frozenset()
    return frozenset(name for name, table in vschema.tables.items() if table.column_vindexes)


class Definitions(NamedTuple):
    """The result of reading all tables, or those with *names*.

    hidden: always of all tables. Parts that a lock hid are unchanged.
    """

    raw: tuple[RawTable, ...]
    hidden: HiddenDefinitions
    names: frozenset[str] | None


class DefinitionReader:
    """Belongs to one event loop.

    apply: applies the result of a reading.
    read_later: has all definitions read again after a while, because a lock hid some.
    """

    def __init__(
        self,
        tables: KeyspaceTables,
        store: Store,
        apply: Callable[[KeyspaceTables, Definitions], Awaitable[None]],
        read_later: Callable[[], None],
    ) -> None:
        self._tables = tables
        self._store = store
        self._apply = apply
        self._read_later = read_later
        # Readings that have not begun, by the names of the tables; None for all.
        self._queued: dict[frozenset[str] | None, asyncio.Task[None]] = {}
        self._readings: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._is_failing = False
        # The tables that only some shards have: as they were compared last, and as they were logged.
        self._differing: dict[ShardName, frozenset[str]] = {}
        self._logged: dict[ShardName, frozenset[str]] = {}

    async def compare(self) -> None:
        """Log which shards do not have the same message tables, unless a statement is just making or dropping them."""
        keyspace, shards = self._tables.keyspace.name, self._tables.shards
        if len(shards) == 1:
            return
        before, self._differing = self._differing, {}
        for shard in shards:
            with suppress(StreamfromError, TimeoutError):
                async with asyncio.timeout(COMPARES_S):
                    known = self._tables.by_name.keys()
                    found = await self._store.ask(
                        keyspace, shard, partial(come_or_gone, known=known)
                    )
                self._differing[shard] = found or frozenset()
        for shard, tables in self._differing.items():
            if tables == before.get(shard) and tables != self._logged.get(shard, frozenset()):
                self._logged[shard] = tables
                if tables:
                    log.warning(
                        "message tables differ between shards: streamfrom check says how",
                        extra={"keyspace": keyspace, "shard": shard, "queues": sorted(tables)},
                    )

    async def read(self, names: frozenset[str] | None) -> None:
        """Read the definitions of the tables *names*, and of those that have come or gone; None for all."""
        reading = self._queued.get(names)
        if reading is None:
            reading = self._queued[names] = asyncio.create_task(self._read(names))
            self._readings.add(reading)
            reading.add_done_callback(self._readings.discard)
        # Cancelling a caller must not cancel the reading, as a shield would have it.
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def stop(self) -> None:
        """Read nothing more."""
        for reading in (readings := list(self._readings)):
            reading.cancel()
        await asyncio.gather(*readings, return_exceptions=True)

    async def _read(self, names: frozenset[str] | None) -> None:
        # One at a time, so that an older answer never follows a newer one.
        async with self._lock:
            del self._queued[names]
            found = await self._ask(names)
            if found is not None:
                await self._apply(self._tables, found)

    async def _ask(self, names: frozenset[str] | None) -> Definitions | None:
        """Query the shards in turn, until one answers."""
        failure: Exception | None = None
        tables = self._tables
        keyspace = tables.keyspace.name
        # One shard stands for all: `streamfrom check` reports differences to the others.
        for shard in self._store.answering_first(keyspace, tables.shards):
            try:
                read = names
                if names is not None:
                    known = partial(come_or_gone, known=tables.by_name.keys())
                    others = await self._store.ask(keyspace, shard, known)
                    read = None if others is None else names | others
                placed, running = tables.placed, frozenset(tables.runners)
                defined = partial(discover, names=read, placed=placed, running=running)
                found = await self._store.ask(keyspace, shard, defined)
                # A statement that names no table may define a routine.
                hides = partial(read_hidden, names=read if names else None)
                hidden = await self._store.ask(keyspace, shard, hides)
            except Exception as error:  # noqa: BLE001  (a reload must not end the proxy)
                failure = error
            else:
                self._is_failing = False
                if hidden.is_partial:
                    # A table that a lock hides is not dropped.
                    hidden = tables.hidden.with_tables((), hidden)
                    self._read_later()
                elif names and read:
                    hidden = tables.hidden.with_tables(read, hidden)
                return Definitions(found, hidden, read)
        if not self._is_failing:
            trace = None if isinstance(failure, StreamfromError) else failure
            log.warning(
                "message tables cannot be read",
                exc_info=trace,
                extra={"keyspace": keyspace, "reason": str(failure)},
            )
        self._is_failing = True
        return None
