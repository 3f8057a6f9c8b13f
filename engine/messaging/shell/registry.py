"""All message tables of all keyspaces: finds them, runs them, and is the engine's front door.

Tables are looked up at start, after a DDL statement, and every *reload_interval_s*. A DDL statement has those
tables read that it names, and those that have come or gone past the proxy. A table whose definition cannot be used is kept as the error that says
why, and hurts nothing else. Changed settings reach the running scheduler, so that streams
survive them; a table that went away ends its streams.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.clock import SystemClock
from streamfrom.engine.errors import TableDropped, TableLoadError, TableNotFound
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    AckedUnnamed,
    Changed,
    Deposed,
    Due,
    Elected,
    ReceiverReady,
    ServedElsewhere,
    ShardDown,
    ShardUp,
    TableEnded,
    Touched,
    TryAgain,
)
from streamfrom.engine.messaging.shell.purger import Purger
from streamfrom.engine.messaging.shell.runner import Runner
from streamfrom.engine.messaging.shell.unseen_writes import UnseenWrites
from streamfrom.engine.messaging.table.backoff import DICE_BITS
from streamfrom.engine.messaging.table.hidden_definitions import HiddenDefinitions
from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey
from streamfrom.engine.messaging.table.message_ids import MessageIds
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.engine.messaging.table.rounded_ids import find_rounded
from streamfrom.engine.messaging.table.table_settings import is_message_table
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN, HiddenWrites
from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE, Effect, EffectKind


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.dispatch.events import Event, TableEvent
    from streamfrom.engine.messaging.dispatch.table_state import TableState
    from streamfrom.engine.messaging.leases.leases import Leases
    from streamfrom.engine.messaging.shell.elsewhere import Elsewhere
    from streamfrom.engine.messaging.shell.message_store import Store
    from streamfrom.engine.messaging.table.message import (
        ClientReceiver,
        ProgressHearer,
        Receiver,
        RowOfStream,
        Share,
        WaitingAck,
    )
    from streamfrom.engine.messaging.table.message_table import RawTable
    from streamfrom.engine.sharding.keyspace import Keyspace, ShardName
    from streamfrom.sqlparse_ext.stored_forms import ColumnType


log = logging.getLogger(__name__)

# The time after which definitions that a lock hides are read again.
HIDDEN_S: Final = 1.0
# What another member has changed is read at once, as its client may go on here, and again after so long at the earliest.
RELOAD_PACE_S: Final = 0.1
# Most clients of streams are disconnected at once when these end.
LEAVING_S: Final = 0.2
LEAVING_LOOK_S: Final = 0.01
# More messages are not named to the scheduler, which takes a microsecond for each and lets no other task run in between.
NAMED_MAX: Final = 10_000


@dataclass(slots=True)
class _KeyspaceTables:
    """What is known of one keyspace."""

    keyspace: Keyspace
    by_name: dict[str, MessageTable | TableLoadError] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)  # the names by their lower case
    raw: dict[str, RawTable] = field(default_factory=dict)  # what each was made of
    hidden: HiddenDefinitions = field(default_factory=HiddenDefinitions)
    hidden_writes: HiddenWrites = NOTHING_HIDDEN
    # Readings that have not begun, by the names of the tables; None for all.
    queued: dict[frozenset[str] | None, asyncio.Task[None]] = field(default_factory=dict)
    runners: dict[str, tuple[Runner, Purger]] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_failing: bool = False
    shards: tuple[ShardName, ...] = field(init=False)
    # The other tables that the vschema spreads over shards, and the types of their columns.
    placed: frozenset[str] = field(init=False)
    types: dict[str, dict[str, ColumnType]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = tuple(shard.name for shard in self.keyspace.shards)
        self.placed = _placed(self.keyspace)

    def name(self, name: str) -> str:
        """Return *name* as the database spells it, if it is known in another case."""
        return name if name in self.by_name else self.spelled.get(name.lower(), name)


def _placed(keyspace: Keyspace) -> frozenset[str]:
    vschema = keyspace.vschema
    if vschema is None or not vschema.sharded or len(keyspace.shards) == 1:
        return frozenset()
    return frozenset(name for name, table in vschema.tables.items() if table.column_vindexes)


def _nobody_asks(_keyspace: str) -> None: ...


class Registry:
    """The message tables of one proxy. Every method belongs to one event loop.

    reload_interval_s: the time between two readings of the table definitions.
    stream_grace_s: how long a stream survives a shard that fails without a break.
    elsewhere: how the streams of this process get what other processes dispatch; None where there are none.
    may_send: whether this process dispatches a shard of a keyspace at this moment. It is asked for what a
        claim won, and calls `deposed` before it answers that it may not; without it there is no other process.
    tables_changed: is given the keyspace whose message tables are others now.
    member: the number of this member of the fleet, which its ids of messages contain.
    message_ids: the ids for messages that have none.
    generation: a number that changes with the table definitions; what a caller derives from `table`
        is valid as long as the number stays.
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
        may_send: Callable[[str, ShardName], bool] | None = None,
        member: int = 0,
    ) -> None:
        self._may_send = may_send or _always
        self.tables_changed: Callable[[str], None] = _nobody_asks
        self.elsewhere: Elsewhere | None = None
        # The shards that are dispatched by another process, and what is known of that.
        self._withheld: dict[tuple[str, ShardName], Deposed | ServedElsewhere] = {}
        self._store = store
        self._clock = clock or SystemClock()
        self.message_ids = MessageIds(self._clock.time_ns, time.monotonic_ns, member)
        # Jitter only spreads load; there is no gain in guessing it.
        self._draw = partial((dice or random.Random()).getrandbits, DICE_BITS)  # noqa: S311
        self._keyspaces = {keyspace.name: _KeyspaceTables(keyspace) for keyspace in keyspaces}
        self.set_limits(reload_interval_s, stream_grace_s)
        self._attached: dict[int, Runner] = {}
        self._readings: set[asyncio.Task[None]] = set()
        self._reloader: asyncio.Task[None] | None = None
        # Set when definitions are to be read again: another member has changed some, or a lock hid them.
        self._is_stale = asyncio.Event()
        self._unseen = UnseenWrites(self._tell_unseen)
        # The error that `stop` was given: no stream may begin any more.
        self._ending: StreamfromError | None = None
        self.generation = 0

    def set_limits(self, reload_interval_s: float, stream_grace_s: float) -> None:
        """Replace what the constructor was given; the interval counts from the next reading on."""
        self._reload_interval_s = reload_interval_s
        self._grace_ns = round(stream_grace_s * 10**9)
        for runner in self.runners:
            runner.set_grace(self._grace_ns)

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
        self.end_streams(error)
        if self._reloader is not None:
            self._reloader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reloader
            self._reloader = None
        self._unseen.stop()
        for reading in (readings := list(self._readings)):
            reading.cancel()
        await asyncio.gather(*readings, return_exceptions=True)
        running = [
            pair for tables in self._keyspaces.values() for pair in tables.runners.values()
        ]
        for tables in self._keyspaces.values():
            tables.runners.clear()
        await asyncio.gather(*(_stop(runner, purger, error) for runner, purger in running))

    def end_streams(self, error: StreamfromError) -> None:
        """End every stream with *error*, and those to come; acks still count."""
        self._ending = error
        for keyspace in self._keyspaces:
            self._broadcast(keyspace, TableEnded(error))

    def held(self) -> int:
        """Return how many messages of all tables clients were sent from here that are neither acked nor due again."""
        return sum(runner.held() for runner in self.runners)

    async def reload(
        self, keyspace: str | None = None, names: Collection[str] | None = None
    ) -> None:
        """Look at the definitions and put them into force; of an unknown keyspace there are none.

        keyspace: None for all.
        names: the tables that a statement has defined, perhaps none; None if any may have changed. Tables that have come or
            gone are found in any case.
        """
        found = self._keyspaces if keyspace is None else self._keyspaces.keys() & {keyspace}
        wanted = None if names is None else frozenset(names)
        await asyncio.gather(*(self._reload(self._keyspaces[name], wanted) for name in found))
        for tables in found if keyspace is not None else ():
            for runner, _ in self._keyspaces[tables].runners.values():
                if runner.state.has_set_aside:
                    runner.post(TryAgain())

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Read what a statement has defined, here and in the other processes. names: the tables among it."""
        await self.reload(keyspace, names)
        if self.elsewhere is not None:
            await self.elsewhere.definitions_changed(keyspace, names)

    def reload_soon(self) -> None:
        """Read all definitions again, once for all who ask meanwhile; at once, but each RELOAD_PACE_S at most."""
        self._is_stale.set()

    def _reload_later(self) -> None:
        asyncio.get_running_loop().call_later(HIDDEN_S, self._is_stale.set)

    async def _reload_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._reload_interval_s):
                    await self._is_stale.wait()
            self._is_stale.clear()
            await self.reload()
            await asyncio.sleep(RELOAD_PACE_S)

    async def _reload(self, tables: _KeyspaceTables, names: frozenset[str] | None) -> None:
        # Once for all who ask for the same before it begins.
        reading = tables.queued.get(names)
        if reading is None:
            reading = tables.queued[names] = asyncio.create_task(self._read(tables, names))
            self._readings.add(reading)
            reading.add_done_callback(self._readings.discard)
        await asyncio.shield(reading)

    async def _read(self, tables: _KeyspaceTables, names: frozenset[str] | None) -> None:
        # One at a time, so that an older answer never follows a newer one.
        async with tables.lock:
            del tables.queued[names]
            found = await self._ask(tables, names)
            if found is not None and self._ending is None:
                await self._apply(tables, *found)

    async def _ask(
        self, tables: _KeyspaceTables, names: frozenset[str] | None
    ) -> tuple[tuple[RawTable, ...], HiddenDefinitions, frozenset[str] | None] | None:
        """Ask the shards in turn, until one answers: return what was read, and of which tables alone."""
        failure: Exception | None = None
        keyspace = tables.keyspace.name
        # One speaks for all: `streamfrom check` reports where the others differ.
        for shard in tables.shards:
            try:
                read = names
                if names is not None:
                    come_or_gone = await self._store.come_or_gone(
                        keyspace, shard, tables.by_name.keys()
                    )
                    read = None if come_or_gone is None else names | come_or_gone
                found = await self._store.discover(keyspace, shard, read, tables.placed)
                # What names no table may define a routine.
                hidden = await self._store.read_hidden(keyspace, shard, read if names else None)
            except Exception as error:  # noqa: BLE001  (a reload must not end the proxy)
                failure = error
            else:
                tables.is_failing = False
                if hidden.is_partial:
                    # What a lock hides is not dropped.
                    hidden = tables.hidden.with_tables((), hidden)
                    self._reload_later()
                elif names and read:
                    hidden = tables.hidden.with_tables(read, hidden)
                return found, hidden, read
        if not tables.is_failing:
            trace = None if isinstance(failure, StreamfromError) else failure
            log.warning(
                "message tables cannot be read",
                exc_info=trace,
                extra={"keyspace": tables.keyspace.name, "reason": str(failure)},
            )
        tables.is_failing = True
        return None

    async def _apply(
        self,
        tables: _KeyspaceTables,
        raw_tables: Sequence[RawTable],
        hidden: HiddenDefinitions,
        names: frozenset[str] | None,
    ) -> None:
        """Put into force what was read of all tables, or those named *names*."""
        before = tables.by_name
        found: dict[str, MessageTable | TableLoadError] = {}
        raw_found: dict[str, RawTable] = {}
        types: dict[str, dict[str, ColumnType]] = {}
        if names is not None:
            lower = {name.lower() for name in names}
            raw_found = {
                name: raw for name, raw in tables.raw.items() if name.lower() not in lower
            }
            found = {name: before[name] for name in raw_found}
            types = {n: known for n, known in tables.types.items() if n.lower() not in lower}
        changed: list[str] = []
        for raw in raw_tables:
            name, known = raw.name, tables.raw.get(raw.name)
            if raw.is_hidden:
                # A lock hides a table and does not drop it: its streams go on by what was known.
                self._reload_later()
                if known is not None:
                    found[name], raw_found[name] = before[name], known
                if name in tables.types:
                    types[name] = tables.types[name]
                continue
            if raw.columns and name in tables.placed:
                types[name] = {column.name.lower(): column.type for column in raw.columns}
            if not is_message_table(raw.comment):
                continue
            raw_found[name] = raw
            # What a statement has changed may be more than these facts, such as a collation.
            if raw == known and names is None:
                found[name] = before[name]
                continue
            table = found[name] = load(tables.keyspace.name, raw, len(tables.shards))
            changed.append(name)
            if isinstance(table, MessageTable) and name not in tables.runners:
                self._run(tables, table)
            # No caller waits for all of a thousand.
            await asyncio.sleep(0)
        dropped = [name for name in tables.runners if name not in found]
        stopped: list[tuple[Runner, Purger, StreamfromError]] = [
            (*tables.runners.pop(name), TableDropped(name)) for name in dropped
        ]
        tables.raw, tables.by_name = raw_found, found
        tables.spelled = {name.lower(): name for name in found}
        tables.hidden = hidden
        tables.hidden_writes = hidden.hidden_writes(tables.keyspace.name, found)
        is_changed = found != before or types != tables.types
        tables.types = types
        if is_changed:
            self.generation += 1
            self.tables_changed(tables.keyspace.name)
        for name in changed:
            table, known_table = found[name], before.get(name)
            if isinstance(table, TableLoadError):
                if str(known_table) != str(table):
                    named = {"keyspace": tables.keyspace.name, "queue": name}
                    reason = {"reason": str(table)}
                    log.warning("message table failed to load", extra={**named, **reason})
                if name in tables.runners:
                    stopped.append((*tables.runners.pop(name), table))
            elif isinstance(known_table, MessageTable) and table != known_table:
                runner, purger = tables.runners[name]
                runner.reconfigure(table)
                if self.elsewhere is not None:
                    prefetch = table.properties.prefetch
                    self.elsewhere.prefetch_altered(table.keyspace, name, prefetch)
                purger.reconfigure(table)
        # All at once, as each may wait for its claims (`runner.STOP_GRACE_S`).
        await asyncio.gather(*(_stop(*pair) for pair in stopped))

    def _run(self, tables: _KeyspaceTables, table: MessageTable) -> None:
        for advice in table.advice:
            log.warning("message table", extra={**table.named, "advice": advice})
        may_send = partial(self._may_send, table.keyspace)
        runner = Runner(
            table,
            tables.shards,
            self._store,
            clock=self._clock,
            draw=self._draw,
            grace_ns=self._grace_ns,
            may_send=may_send,
            has_written=partial(self._has_written, table.keyspace, table.name),
        )
        for (keyspace, _), event in self._withheld.items():
            if keyspace == table.keyspace:
                # First of all, or the new scheduler would believe for a moment that it
                # dispatches every shard.
                runner.post(Deposed(event.shard, "its dispatcher is not known yet"))
                runner.post(event)
        purger = Purger(
            table,
            tables.shards,
            self._store,
            self._clock,
            may_purge=may_send,
            counters_of=runner.state.counters,
            tell_held_back=runner.state.partitions_overdue,
            set_aside=runner.set_aside_by_purge,
            tell_refused=runner.post,
        )
        tables.runners[table.name] = runner, purger

    def vschema_changed(self, keyspace: Keyspace) -> None:
        """Read the columns of the tables that the new vschema of *keyspace* spreads over shards."""
        tables = self._keyspaces[keyspace.name]
        if (placed := _placed(keyspace)) != tables.placed:
            tables.placed = placed
            self.reload_soon()

    # Tables

    def column_types(self, keyspace: str) -> dict[str, dict[str, ColumnType]]:
        """Return the types of the columns, in lower case, of message tables and of tables that the vschema spreads over shards."""
        tables = self._keyspaces[keyspace]
        loaded = {
            name: {
                column.lower(): each
                for column, each in zip(table.columns, table.types, strict=False)
            }
            for name, table in tables.by_name.items()
            if isinstance(table, MessageTable)
        }
        return {**tables.types, **loaded}

    def tables(self, keyspace: str) -> Mapping[str, MessageTable | TableLoadError]:
        """Return the message tables of *keyspace*, usable or not, by name."""
        return self._keyspaces[keyspace].by_name

    def table(self, keyspace: str, name: str) -> MessageTable | TableLoadError | None:
        """Return one message table, the reason it cannot be used, or None if there is none."""
        tables = self._keyspaces.get(keyspace)
        return tables.by_name.get(tables.name(name)) if tables else None

    def _runner(self, keyspace: str, shard: ShardName, table: str) -> Runner | None:
        """Return what runs a table of a shard; None where there is no such table, or it cannot be used.

        What another process asks of a shard or table that is unknown here is no fault.
        """
        tables = self._keyspaces.get(keyspace)
        running = tables.runners.get(tables.name(table)) if tables else None
        return running[0] if tables and running and shard in tables.shards else None

    def _elsewhere_of(self, keyspace: str, shard: ShardName) -> Elsewhere | None:
        """Return the way to the process that dispatches a shard; None where this one does, or is alone."""
        return self.elsewhere if (keyspace, shard) in self._withheld else None

    @property
    def runners(self) -> list[Runner]:
        """What runs every table that can be used, to be looked at."""
        return [
            runner
            for tables in self._keyspaces.values()
            for runner, _ in tables.runners.values()
        ]

    @property
    def schedulers(self) -> list[TableState]:
        """What is scheduled of every table, to be looked at."""
        return [runner.state for runner in self.runners]

    # Streams

    @property
    def receivers(self) -> int:
        """How many streams the clients of this process have open."""
        return sum(
            not receiver.is_for_member
            for state in self.schedulers
            for receiver in state.attached.values()
        )

    def attach(self, receiver: ClientReceiver, keyspace: str, name: str) -> None:
        """Let *receiver* have the messages of a table from now on, whichever process dispatches them.

        Raises TableNotFound, or the TableLoadError of a table that cannot be used, or the error that
        `stop` was given.
        """
        if self.elsewhere is None:
            self.serve(receiver, keyspace, name)
        else:
            admitted = self.elsewhere.admit(receiver)
            progress = self.elsewhere.progress_of(receiver)
            table = self.serve(admitted, keyspace, name, progress=progress)
            own = receiver.prefetch
            prefetch = table.properties.prefetch if own is None else own
            self.elsewhere.opened(receiver, keyspace, table.name, prefetch)

    def serve(
        self,
        receiver: Receiver,
        keyspace: str,
        name: str,
        held: Mapping[ShardName, tuple[bytes, ...]] | None = None,
        share: Share | None = None,
        progress: ProgressHearer | None = None,
    ) -> MessageTable:
        """Let *receiver* have what this process dispatches of a table, which is returned.

        held: what former dispatchers sent to it, by shard.
        share: as of `give_share`; None for its whole prefetch.
        progress: hears of its progress with these, where others may dispatch to it as well.
        Raises the same as `attach`.
        """
        if self._ending is not None:
            raise self._ending
        table = self.table(keyspace, name)
        if isinstance(table, TableLoadError):
            raise table
        running = self._keyspaces[keyspace].runners.get(table.name) if table else None
        if table is None or running is None:
            raise TableNotFound(keyspace, name)
        self._attached[receiver.id] = running[0]
        if held:
            running[0].take_over(receiver, held)
        running[0].attach(receiver, share, progress)
        return table

    def progressed_elsewhere(self, receiver: Receiver, rows: int) -> None:
        """Note that *receiver* has made progress with what others sent to it, after the first *rows* from here."""
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.progressed_elsewhere(receiver, rows)

    def give_share(self, receiver: Receiver, share: Share) -> None:
        """Let *receiver* hold no more of what this process sends it than *share*: others dispatch to it as well."""
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.give_share(receiver, share)

    def detach(self, receiver: Receiver, unsent: Sequence[RowOfStream] = ()) -> None:
        """Send *receiver* nothing more; *unsent* rows, which its socket never took, are released at once.

        What it was sent it holds, until `forget`. Twice is fine, and so is a stream that was ended.
        """
        if self.elsewhere is not None:
            unsent = self.elsewhere.closed(receiver, unsent)
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.detach(receiver, [row for row in unsent if isinstance(row, ClaimedRow)])

    def held_by(self, receiver: Receiver) -> Mapping[ShardName, tuple[bytes, ...]]:
        """Return which messages of which shards *receiver* holds, as far as this process has sent them or taken them over."""
        runner = self._attached.get(receiver.id)
        return {} if runner is None else runner.held_by(receiver)

    def take_over(
        self, receiver: Receiver, held: Mapping[ShardName, tuple[bytes, ...]]
    ) -> None:
        """Let *receiver* hold what former dispatchers sent to it."""
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.take_over(receiver, held)

    async def hand_over(self, grace_s: float) -> None:
        """Let rows show what was sent from here before other processes dispatch, once `end_streams` has ended the streams.

        Clients whose connections do not end within LEAVING_S are taken to leave after *grace_s*: no process knows then what
        they hold.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_S):
                while any(number > 0 for number in self._attached):  # noqa: ASYNC110  (sessions end them)
                    await asyncio.sleep(LEAVING_LOOK_S)
        for number, runner in self._attached.items():
            if number > 0:
                runner.left(number, round(grace_s * 10**9))
        await asyncio.gather(*(runner.released() for runner in self.runners))

    def wait_over(self, receiver: Receiver) -> None:
        """Let *receiver*, a stream with an end, wait for its first message no longer."""
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.wait_over(receiver)
        if self.elsewhere is not None:
            self.elsewhere.wait_over(receiver)

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Let a detached *receiver* go.

        has_left: the connection of its client has ended, so what it holds is due again soon.
            Otherwise the leases alone hold it.
        """
        runner = self._attached.pop(receiver.id, None)
        if runner is not None and has_left:
            runner.left(receiver.id)
        if self.elsewhere is not None:
            self.elsewhere.forget(receiver, has_left=has_left)

    def ready(self, receiver: Receiver) -> None:
        """Note that *receiver* can take another batch."""
        runner = self._attached.get(receiver.id)
        if runner is not None:
            runner.post(ReceiverReady(receiver.id))
        if self.elsewhere is not None:
            self.elsewhere.taken(receiver)

    # What sessions and health checks have seen

    def committed(
        self, keyspace: str, shard: ShardName, table: str, effects: Iterable[Effect]
    ) -> None:
        """Report what a commit on *shard* did to a table's messages. Call only after COMMIT."""
        if table == ANY_TABLE:
            self._wrote_unseen(keyspace, shard)
            return
        runner = self._runner(keyspace, shard, table)
        if runner is None:
            return
        counters = runner.state.counters(shard)
        for effect in effects:
            if effect.rows is not None:
                if effect.kind is EffectKind.ACK:
                    counters.acked += effect.rows
                else:
                    counters.deleted += effect.rows
            event = _event(shard, effect)
            # A twentieth of what an INSERT into a queue without streams costs.
            if type(event) is not Due or not runner.state.has_no_use_for_news(shard):
                runner.post(event)
            if (elsewhere := self._elsewhere_of(keyspace, shard)) is not None:
                elsewhere.happened(keyspace, runner.table.name, event)
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
        if self.elsewhere is not None and (keyspace, shard) in self._withheld:
            self._unseen.tell_elsewhere(keyspace, shard)
            return
        tables = self._keyspaces.get(keyspace)
        if tables is not None and shard in tables.shards:
            self._unseen.happened(shard, (runner for runner, _ in tables.runners.values()))

    def _tell_unseen(self, keyspace: str, shard: ShardName) -> None:
        if self.elsewhere is not None:
            self.elsewhere.happened(keyspace, ANY_TABLE, Changed(shard, None))

    def ack_early(
        self,
        keyspace: str,
        shard: ShardName,
        table: str,
        ids: tuple[bytes, ...],
        acked_ns: int,
    ) -> int | None:
        """Take an ack that is written within some milliseconds; return how many messages it acknowledges.

        ids: their literals.
        None if it has to be sent as it is: of one of *ids* this process does not know that it is in flight, it writes
        no ack early, or it knows no such table or shard.
        """
        runner = self._runner(keyspace, shard, table)
        if runner is None or self._ending is not None:
            return None
        return runner.ack_early(shard, ids, acked_ns)

    def acknowledge(self, keyspace: str, shard: ShardName, table: str, ack: WaitingAck) -> bool:
        """Write an ack in one transaction with the claim that follows; False if it has to be sent as it is.

        So are those of tables in which messages wait for others of their key, where this process dispatches the shard.
        """
        runner = self._runner(keyspace, shard, table)
        if runner is None or self._ending is not None:
            return False
        return runner.acknowledge(shard, ack)

    async def ack_early_elsewhere(
        self,
        keyspace: str,
        shard: ShardName,
        table: str,
        ids: tuple[bytes, ...],
        acked_ns: int,
    ) -> int | None:
        """Have another process take an ack, as `ack_early`; None as well if this one dispatches the shard, or none answers."""
        runner = self._runner(keyspace, shard, table)
        elsewhere = self._elsewhere_of(keyspace, shard)
        if runner is None or elsewhere is None or not runner.table.properties.acks_early:
            return None
        return await elsewhere.ack_early(keyspace, shard, runner.table.name, ids, acked_ns)

    def awaits_acks(self, keyspace: str, shard: ShardName, table: str) -> bool:
        """Return whether early acks may have been taken, by whichever process, that the rows of a table do not show."""
        runner = self._runner(keyspace, shard, table)
        if runner is None:
            return False
        is_elsewhere = self._elsewhere_of(keyspace, shard) is not None
        if is_elsewhere and runner.table.properties.acks_early:
            return True
        return runner.state.awaits_acks(shard)

    def find_rounded(
        self, keyspace: str, table: str, given: Iterable[int]
    ) -> tuple[int, str] | None:
        """Return one of *given* of which a driver made a double, and the id of the message in flight here, as `rounded_ids`."""
        tables = self._keyspaces.get(keyspace)
        running = tables.runners.get(tables.name(table)) if tables else None
        return None if running is None else find_rounded(given, running[0].state.in_flight)

    def leases_of(
        self, keyspace: str, shard: ShardName, table: str
    ) -> tuple[Leases, Mapping[int, int]] | None:
        """Return what streams hold of a shard, and the connection of each receiver; None where another process dispatches it."""
        runner = self._runner(keyspace, shard, table)
        if runner is None or (keyspace, shard) in self._withheld:
            return None
        (leases,) = [one.leases for one in runner.state.shards if one.name == shard]
        return leases, runner.connection_ids

    async def write_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Let rows show leases and early acks, of *ids* or all messages, before a statement changes them.

        Whichever process dispatches the shard does it.
        """
        runner = self._runner(keyspace, shard, table)
        if runner is None:
            return
        if (keyspace, shard) not in self._withheld:
            await runner.write_leases(shard, ids)
        elif self.elsewhere is not None:
            await self.elsewhere.write_leases(keyspace, shard, runner.table.name, ids)

    async def write_leases_for(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Do so for another process, which takes this one for the shard's dispatcher."""
        runner = self._runner(keyspace, shard, table)
        if runner is not None:
            await runner.write_leases(shard, ids)

    def happened(self, keyspace: str, table: str, event: TableEvent) -> None:
        """Take in what a commit did that went through another process."""
        if table == ANY_TABLE:
            self._wrote_unseen(keyspace, event.shard)
            return
        runner = self._runner(keyspace, event.shard, table)
        if runner is not None:
            runner.post(event)

    def shard_down(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """Note that a shard cannot be reached: from now on its streams live on their grace."""
        self._broadcast(keyspace, ShardDown(shard, reason))

    def shard_up(self, keyspace: str, shard: ShardName) -> None:
        """Note that a shard can be reached again."""
        self._broadcast(keyspace, ShardUp(shard))

    def elected(self, keyspace: str, shard: ShardName) -> None:
        """Dispatch the message tables of a shard from now on; a process without a fleet does so by itself."""
        self._withheld.pop((keyspace, shard), None)
        self._broadcast(keyspace, Elected(shard))

    def deposed(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """Send nothing of a shard from now on: another process dispatches it, or none; *reason* is for clients."""
        self._withhold(keyspace, Deposed(shard, reason))

    def served_elsewhere(self, keyspace: str, shard: ShardName) -> None:
        """Note that the dispatcher of a shard serves the streams of this process."""
        self._withhold(keyspace, ServedElsewhere(shard))

    def _withhold(self, keyspace: str, event: Deposed | ServedElsewhere) -> None:
        self._withheld[keyspace, event.shard] = event
        self._broadcast(keyspace, event)

    async def drain(self, keyspace: str, shard: ShardName) -> None:
        """Return when no claim and no release of a shard is under way any more."""
        await asyncio.gather(
            *(runner.drain(shard) for runner, _ in self._keyspaces[keyspace].runners.values())
        )

    def _broadcast(self, keyspace: str, event: Event) -> None:
        for runner, _ in list(self._keyspaces[keyspace].runners.values()):
            runner.post(event)


def _event(shard: ShardName, effect: Effect) -> TableEvent:
    """Return the scheduler's event for *effect*."""
    ids = effect.ids
    if ids is not None and len(ids) > NAMED_MAX:
        ids = None
    if effect.kind in (EffectKind.ACK, EffectKind.REMOVE):
        if ids is None:
            # Which ones is not known; a claim finds them gone, and so does a look at those in flight.
            return AckedUnnamed(shard)
        return Acked(shard, tuple(map(literal, ids)))
    if effect.keys and effect.ids is not None and len(effect.keys) == len(effect.ids):
        keys = [
            MessageKey(literal(ident), priority, max(0, ns))
            for ident, priority, ns in effect.keys
        ]
        return Due(shard, tuple(keys))
    if effect.kind is EffectKind.TOUCH:
        return Touched(shard, tuple(map(literal, ids or ())))
    if ids is None and effect.kind is not EffectKind.NEW:
        return Changed(shard, None, by_heartbeat=effect.kind is EffectKind.HEARTBEAT)
    changed = tuple(map(literal, ids or ()))
    return Changed(shard, changed, by_heartbeat=effect.kind is EffectKind.HEARTBEAT)


def _always(_keyspace: str, _shard: ShardName) -> bool:
    return True


async def _stop(runner: Runner, purger: Purger, error: StreamfromError) -> None:
    await asyncio.gather(runner.stop(error), purger.stop())
