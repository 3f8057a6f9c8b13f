"""All message tables of all keyspaces: finds them, has them run, and is the engine's front door.

Tables are looked up at start, after a DDL statement, and every *reload_interval_s*. After a DDL statement only the
tables that it names are read, and those that have come or gone past the proxy. A table whose definition cannot be used is kept as its
error, and affects no other table. Changed settings reach the running scheduler, so that streams
survive them; a table that went away ends its streams.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.clock import SystemClock
from streamfrom.engine.errors import TableDropped, TableLoadError
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.shell.definition_reader import (
    DefinitionReader,
    KeyspaceTables,
    placed_by,
)
from streamfrom.engine.messaging.shell.dispatcher_here import DispatcherHere
from streamfrom.engine.messaging.table.backoff import DICE_BITS
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.engine.messaging.table.message_ids import MessageIds
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.engine.messaging.table.table_settings import is_message_table
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN
from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE, KEEPS_LEASES, EffectKind


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.shell.definition_reader import Definitions
    from streamfrom.engine.messaging.shell.dispatcher import Dispatcher
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.sharding.keyspace import Keyspace, ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError
    from streamfrom.sqlparse_ext.stored_forms import ColumnType
    from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites
    from streamfrom.sqlparse_ext.writes.message_effects import Effect


log = logging.getLogger(__name__)

# When definitions that a lock hides are read again.
HIDDEN_S: Final = 1.0
# Changes by another member are read at once, because its client may continue here, but no more often than this.
RELOAD_PACE_S: Final = 0.1
# More messages are not passed to the scheduler by id, which takes a microsecond for each without letting another task run.
NAMED_MAX: Final = 10_000


class Registry:
    """The message tables of one proxy. Every method belongs to one event loop.

    reload_interval_s: the time between two readings of the table definitions.
    stream_grace_s: how long a stream survives a shard that fails without a break.
    may_send: as of `DispatcherHere`; without it there is no other process.
    here: what this process dispatches.
    streams: who dispatches to the streams of this process: this process, unless others do as well.
    tables_changed: each is given the keyspace whose message tables are others now.
    member: the number of this member of the fleet, which its ids of messages contain.
    message_ids: the ids for messages that have none.
    generation: a number that changes with the table definitions; values derived from `table`
        are valid as long as the number stays.
    """

    def __init__(
        self,
        keyspaces: Sequence[Keyspace],
        store: Store,
        *,
        clock: Clock | None = None,
        dice: random.Random | None = None,
        reload_interval_s: float = 30.0,
        stream_grace_s: float = 30.0,
        may_send: Callable[[str, ShardName], bool] = lambda *_: True,
        member: int = 0,
    ) -> None:
        clock = clock or SystemClock()
        self.tables_changed: list[Callable[[str], None]] = []
        self.message_ids = MessageIds(clock.time_ns, time.monotonic_ns, member)
        self._store = store
        self._keyspaces: dict[str, KeyspaceTables] = {}
        self._readers: dict[str, DefinitionReader] = {}
        for keyspace in keyspaces:
            self.add(keyspace)
        # Jitter only spreads load; there is no gain in guessing it.
        draw = partial((dice or random.Random()).getrandbits, DICE_BITS)  # noqa: S311
        self.here = DispatcherHere(
            self._keyspaces, store, clock, draw, may_send, self._has_written
        )
        self.streams: Dispatcher = self.here
        self.set_limits(reload_interval_s, stream_grace_s)
        self._reloader: asyncio.Task[None] | None = None
        # Set when definitions must be read again: another member has changed some, or a lock hid them.
        self._is_stale = asyncio.Event()
        self.generation = 0

    def set_limits(self, reload_interval_s: float, stream_grace_s: float) -> None:
        """Replace the constructor's values; the interval counts from the next reading on."""
        self._reload_interval_s = reload_interval_s
        self.here.set_grace(round(stream_grace_s * 10**9))

    def add(self, keyspace: Keyspace) -> None:
        """Add a keyspace; `reload` finds its tables."""
        tables = self._keyspaces[keyspace.name] = KeyspaceTables(keyspace)
        self._readers[keyspace.name] = DefinitionReader(
            tables, self._store, self._apply, self._reload_later
        )

    async def remove(self, keyspace: str, error: StreamfromError) -> None:
        """Remove a keyspace, after `here.end_streams`; nothing of it runs when this returns."""
        await self._readers.pop(keyspace).stop()
        await self.here.stop_keyspace(keyspace, error)
        del self._keyspaces[keyspace]
        self.generation += 1

    # Running

    async def start(self) -> None:
        """Find the tables and begin; a keyspace that cannot be reached is looked at later."""
        if self._reloader is None:
            await self.reload()
            self._reloader = asyncio.create_task(self._reload_regularly())

    async def stop(self, error: StreamfromError) -> None:
        """End every stream with *error*, and those to come, and return when nothing runs.

        Twice is fine.
        """
        self.here.end_streams(error)
        if self._reloader is not None:
            self._reloader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reloader
            self._reloader = None
        await asyncio.gather(*(reader.stop() for reader in self._readers.values()))
        await self.here.stop(error)

    async def reload(
        self, keyspace: str | None = None, names: Collection[str] | None = None
    ) -> None:
        """Read the definitions and apply them; an unknown keyspace has none.

        keyspace: None for all.
        names: the tables that a statement has defined, perhaps none; None if any may have changed. Tables that have come or
            gone are found in any case.
        """
        found = self._readers if keyspace is None else self._readers.keys() & {keyspace}
        wanted = None if names is None else frozenset(names)
        await asyncio.gather(*(self._readers[name].read(wanted) for name in found))
        if keyspace is not None:
            for name in found:
                self.here.try_again(name)

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Read the definitions that a statement has changed, here and in the other processes. names: the tables among them."""
        await self.reload(keyspace, names)
        await self.streams.definitions_changed(keyspace, names)

    def reload_soon(self) -> None:
        """Read all definitions again, once for all callers meanwhile; at once, but no more often than RELOAD_PACE_S."""
        self._is_stale.set()

    def _reload_later(self) -> None:
        asyncio.get_running_loop().call_later(HIDDEN_S, self._is_stale.set)

    async def _reload_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._reload_interval_s):
                    await self._is_stale.wait()
            is_asked = self._is_stale.is_set()
            self._is_stale.clear()
            await self.reload()
            if not is_asked:
                await asyncio.gather(*(reader.compare() for reader in self._readers.values()))
            await asyncio.sleep(RELOAD_PACE_S)

    async def _apply(self, tables: KeyspaceTables, read: Definitions) -> None:
        """Apply the definitions that were read."""
        if tables.ending is not None:
            return
        keyspace, names, before = tables.keyspace.name, read.names, tables.by_name
        lower = {name.lower() for name in names or ()}

        def stays(name: str) -> bool:
            return names is not None and name.lower() not in lower

        raw_found = {name: raw for name, raw in tables.raw.items() if stays(name)}
        found = {name: before[name] for name in raw_found}
        types = {name: known for name, known in tables.types.items() if stays(name)}
        changed: list[str] = []
        for raw in read.raw:
            name, known = raw.name, tables.raw.get(raw.name)
            if raw.is_hidden:
                self._reload_later()
            # A lock hides a table and does not drop it: its streams continue by the known definition. A statement may have
            # changed more than these facts, for example a collation.
            if raw.is_hidden or (raw == known and names is None):
                if known is not None:
                    found[name], raw_found[name] = before[name], known
                if name in tables.types:
                    types[name] = tables.types[name]
                continue
            is_queue = is_message_table(raw.comment)
            if raw.columns and (is_queue or name in tables.placed):
                types[name] = {column.name.lower(): column.type for column in raw.columns}
            if not is_queue:
                continue
            raw_found[name] = raw
            table = found[name] = load(keyspace, raw, len(tables.shards))
            changed.append(name)
            if isinstance(table, MessageTable) and name not in tables.runners:
                self.here.begin(table)
            # Lets other work continue while a thousand of them are loaded.
            await asyncio.sleep(0)
        dropped = [name for name in tables.runners if name not in found]
        stopped = [self.here.end(keyspace, name, TableDropped(name)) for name in dropped]
        tables.raw, tables.by_name = raw_found, found
        tables.spelled = {name.lower(): name for name in found}
        tables.hidden = read.hidden
        tables.hidden_writes = read.hidden.hidden_writes(keyspace, found)
        is_changed = found != before or types != tables.types
        tables.types = types
        if is_changed:
            self.generation += 1
            for tell in self.tables_changed:
                tell(keyspace)
        for name in changed:
            table, known_table = found[name], before.get(name)
            if isinstance(table, TableLoadError):
                if str(known_table) != str(table):
                    named = {"keyspace": keyspace, "queue": name}
                    reason = {"reason": str(table)}
                    log.warning("message table failed to load", extra={**named, **reason})
                if name in tables.runners:
                    stopped.append(self.here.end(keyspace, name, table))
            elif isinstance(known_table, MessageTable) and table != known_table:
                self.streams.reconfigure(table)
        # All at once, because each may wait for its claims (`runner.STOP_GRACE_S`).
        await asyncio.gather(*stopped)

    def vschema_changed(self, keyspace: Keyspace) -> None:
        """Read the columns of the tables that the new vschema of *keyspace* spreads over shards."""
        tables = self._keyspaces[keyspace.name]
        if (placed := placed_by(keyspace)) != tables.placed:
            tables.placed = placed
            self.reload_soon()

    # Tables

    def column_types(self, keyspace: str) -> dict[str, dict[str, ColumnType]]:
        """Return the types of the columns, in lower case, of message tables and of tables that the vschema spreads over shards."""
        return self._keyspaces[keyspace].types

    def tables(self, keyspace: str) -> Mapping[str, MessageTable | TableLoadError]:
        """Return the message tables of *keyspace*, usable or not, by name; an unknown keyspace has none."""
        tables = self._keyspaces.get(keyspace)
        return {} if tables is None else tables.by_name

    def table(self, keyspace: str, name: str) -> MessageTable | TableLoadError | None:
        """Return one message table, the reason it cannot be used, or None if there is none."""
        tables = self._keyspaces.get(keyspace)
        return tables.by_name.get(tables.name(name)) if tables else None

    def keyspace_of(self, table: str) -> str | None:
        """Return the keyspace that has a message table of this name; None if none or several have."""
        found = [name for name in self._keyspaces if self.table(name, table) is not None]
        return found[0] if len(found) == 1 else None

    def dispatcher(self, keyspace: str, shard: ShardName) -> Dispatcher:
        """Return the dispatcher of a shard."""
        return self.here if self.here.dispatches(keyspace, shard) else self.streams

    # Effects of sessions' statements

    def committed(
        self, keyspace: str, shard: ShardName, table: str, effects: Iterable[Effect]
    ) -> None:
        """Report the effects of a commit on *shard* on a table's messages. Call only after COMMIT."""
        if table == ANY_TABLE:
            self._wrote_unseen(keyspace, shard)
            return
        runner = self.here.runner(keyspace, shard, table)
        if runner is None:
            return
        dispatcher = self.dispatcher(keyspace, shard)
        state = runner.state.shard(shard)
        counters = state.counters
        for effect in effects:
            if effect.rows is not None:
                if effect.kind is EffectKind.ACK:
                    counters.acked += effect.rows
                else:
                    counters.deleted += effect.rows
            event = commit_event(shard, effect)
            if type(event) is events.Acked:
                runner.post_soon(event)
            # A twentieth of the cost of an INSERT into a queue without streams.
            elif (
                type(event) is not events.Due
                or state.hears_news
                or state.leases
                or state.claims
            ):
                runner.post(event)
            if dispatcher is not self.here:
                dispatcher.happened(keyspace, runner.table.name, event)
        # Acks of several sessions that were committed together.
        self._has_written(keyspace, runner.table.name, shard)

    def _has_written(self, keyspace: str, table: str, shard: ShardName) -> None:
        """Note a write to a table that no session has made: its triggers may have written to any queue."""
        if self.hidden_writes(keyspace).by_table(table):
            self._wrote_unseen(keyspace, shard)

    def hidden_writes(self, keyspace: str) -> HiddenWrites:
        """Return which statements on *keyspace* write to tables that they do not name."""
        tables = self._keyspaces.get(keyspace)
        return NOTHING_HIDDEN if tables is None else tables.hidden_writes

    def _wrote_unseen(self, keyspace: str, shard: ShardName) -> None:
        """Have every queue of a shard polled that has streams, by whichever process dispatches it."""
        self.dispatcher(keyspace, shard).happened(
            keyspace, ANY_TABLE, events.Changed(shard, None)
        )


def commit_event(shard: ShardName, effect: Effect) -> events.TableEvent:
    """Return the scheduler's event for *effect*."""
    ids = effect.ids
    if ids is not None and len(ids) > NAMED_MAX:
        ids = None
    if effect.kind in (EffectKind.ACK, EffectKind.REMOVE):
        if ids is None:
            # The ids are unknown; a claim finds these messages gone, and so does a look at those in flight.
            return events.AckedUnnamed(shard)
        return events.Acked(shard, tuple(map(literal, ids)))
    if effect.keys and effect.ids is not None and len(effect.keys) == len(effect.ids):
        keys = [
            MessageKey(literal(ident), priority, max(0, ns))
            for ident, priority, ns in effect.keys
        ]
        return events.Due(shard, tuple(keys))
    if effect.kind is EffectKind.TOUCH:
        return events.Touched(shard, tuple(map(literal, ids or ())))
    if ids is None and effect.kind is not EffectKind.NEW:
        return events.Changed(shard, None, keeps_leases=effect.kind in KEEPS_LEASES)
    changed = tuple(map(literal, ids or ()))
    return events.Changed(shard, changed, keeps_leases=effect.kind in KEEPS_LEASES)
