"""The dispatcher of this process: it runs the schedulers of all message tables, for its own streams and for those of other members.

If another process dispatches a shard, the schedulers know which messages the streams of this one hold, and send nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableLoadError, TableNotFound
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.shell.dispatcher import Dispatcher
from streamfrom.engine.messaging.shell.runner import Runner
from streamfrom.engine.messaging.shell.unseen_writes import UnseenWrites
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.messaging.table.message_ids import find_rounded
from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.dispatch.table_state import TableState
    from streamfrom.engine.messaging.leases.leases import Leases
    from streamfrom.engine.messaging.shell.definition_reader import KeyspaceTables
    from streamfrom.engine.messaging.table.message import (
        Receiver,
        RowOfStream,
    )
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


log = logging.getLogger(__name__)

# Most clients of streams are disconnected at once when their streams end.
LEAVING_S: Final = 0.2
LEAVING_LOOK_S: Final = 0.01


class DispatcherHere(Dispatcher):
    """The `Dispatcher` of all tables of all keyspaces. Belongs to one event loop.

    keyspaces: the registry's tables, by keyspace; their runners are kept there.
    draw: as in `Runner`.
    may_send: returns whether this process dispatches a shard of a keyspace at this moment. It is called for the rows of a
        claim, and calls `deposed` before it returns False.
    has_written: is given the keyspace, table and shard of each write to a table that no session has made.
    """

    def __init__(
        self,
        keyspaces: Mapping[str, KeyspaceTables],
        store: Store,
        clock: Clock,
        draw: Callable[[], int],
        may_send: Callable[[str, ShardName], bool],
        has_written: Callable[[str, str, ShardName], None],
    ) -> None:
        self._keyspaces = keyspaces
        self._store = store
        self._clock = clock
        self._draw = draw
        self._may_send = may_send
        self._has_written = has_written
        self._grace_ns = 0
        # The shards that are dispatched by another process, and why none is known to serve their streams.
        self._withheld: dict[tuple[str, ShardName], str | None] = {}
        self._attached: dict[int, Runner] = {}
        self._unseen = UnseenWrites()

    # Runners

    def begin(self, table: MessageTable) -> None:
        """Run *table* from now on."""
        for advice in table.advice:
            log.warning("message table", extra={**table.named, "advice": advice})
        tables = self._keyspaces[table.keyspace]
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
        for (keyspace, shard), reason in self._withheld.items():
            if keyspace == table.keyspace:
                # First of all, or the new scheduler would assume for a moment that it
                # dispatches every shard.
                runner.post(events.Deposed(shard, reason))
        tables.runners[table.name] = runner

    def reconfigure(self, table: MessageTable) -> None:
        """Apply a changed definition; streams continue."""
        self._keyspaces[table.keyspace].runners[table.name].reconfigure(table)

    def end(self, keyspace: str, name: str, error: StreamfromError) -> Awaitable[None]:
        """Stop running a table; return an awaitable that ends its streams with *error* and returns when nothing runs."""
        return self._keyspaces[keyspace].runners.pop(name).stop(error)

    def set_grace(self, grace_ns: int) -> None:
        """Set how long streams survive a failing shard from now on."""
        self._grace_ns = grace_ns
        for runner in self.runners:
            runner.state.set_grace(grace_ns)

    def try_again(self, keyspace: str) -> None:
        """Try the rows again that servers refused, because a statement has changed definitions."""
        for runner in self._runners(keyspace):
            if any(shard.set_aside for shard in runner.state.shards):
                runner.post(events.TryAgain())

    def end_streams(self, error: StreamfromError, keyspace: str | None = None) -> None:
        """End every stream, or those of a keyspace, with *error*, and those to come; acks still count."""
        for name in self._keyspaces if keyspace is None else (keyspace,):
            self._keyspaces[name].ending = error
            self._broadcast(name, events.TableEnded(error))

    async def stop(self, error: StreamfromError) -> None:
        """Stop everything, after `end_streams`."""
        self._unseen.stop()
        await asyncio.gather(*(self.stop_keyspace(name, error) for name in self._keyspaces))

    async def stop_keyspace(self, keyspace: str, error: StreamfromError) -> None:
        """Stop everything of a keyspace, after `end_streams`."""
        names = list(self._keyspaces[keyspace].runners)
        await asyncio.gather(*(self.end(keyspace, name, error) for name in names))

    @property
    def runners(self) -> list[Runner]:
        """The runner of every usable table, for reading."""
        return [
            runner for tables in self._keyspaces.values() for runner in tables.runners.values()
        ]

    @property
    def schedulers(self) -> list[TableState]:
        """The scheduler of every table, for reading."""
        return [runner.state for runner in self.runners]

    def runner(self, keyspace: str, shard: ShardName, table: str) -> Runner | None:
        """Return the runner of a table of a shard; None if there is no such table, or it cannot be used.

        Another process may ask for a shard or table that is unknown here: this is no fault.
        """
        tables = self._keyspaces.get(keyspace)
        return None if tables is None or shard not in tables.shards else tables.runner(table)

    def held(self) -> int:
        """Return how many messages that this process sent to clients are neither acked nor due again, in all tables."""
        return sum(runner.held() for runner in self.runners)

    async def hand_over(self, grace_s: float, keyspace: str | None = None) -> None:
        """Write the state of sent messages into their rows before other processes dispatch, after `end_streams`.

        keyspace: None for all.
        Clients whose connections do not end within LEAVING_S are assumed to leave after *grace_s*, because by then no process
        knows which messages they hold.
        """
        runners = set(self.runners if keyspace is None else self._runners(keyspace))

        def staying() -> list[tuple[int, Runner]]:
            return [
                (number, runner)
                for number, runner in self._attached.items()
                if number > 0 and runner in runners
            ]

        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_S):
                while staying():  # noqa: ASYNC110  (sessions end them)
                    await asyncio.sleep(LEAVING_LOOK_S)
        for number, runner in staying():
            runner.left(number, round(grace_s * 10**9))
        await asyncio.gather(*(runner.released() for runner in runners))

    # Elections

    def dispatches(self, keyspace: str, shard: ShardName) -> bool:
        """Return whether no other process dispatches a shard, as far as this one knows."""
        return (keyspace, shard) not in self._withheld

    def dispatches_any(self, keyspace: str, covered: Collection[ShardName] | None) -> bool:
        """Return whether it dispatches a shard of *covered*, or of the keyspace for None, as `dispatches`."""
        shards = self._keyspaces[keyspace].shards if covered is None else covered
        return any(self.dispatches(keyspace, shard) for shard in shards)

    def elected(self, keyspace: str, shard: ShardName) -> None:
        """Dispatch the message tables of a shard from now on; a process without a fleet always does."""
        self._withheld.pop((keyspace, shard), None)
        self._broadcast(keyspace, events.Elected(shard))

    def deposed(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """Send nothing of a shard from now on: another process dispatches it, or none; *reason* is for clients."""
        self._withhold(keyspace, shard, reason)
        for runner in self._runners(keyspace):
            runner.give_up_reads(shard)

    def not_elected(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """Note why this process is not elected: the *reason* for clients, unless another one serves its streams."""
        if self._withheld.get((keyspace, shard)) is not None:
            self._withhold(keyspace, shard, reason)

    def served_elsewhere(self, keyspace: str, shard: ShardName) -> None:
        """Note that the dispatcher of a shard serves the streams of this process."""
        self._withhold(keyspace, shard, None)

    def _withhold(self, keyspace: str, shard: ShardName, reason: str | None) -> None:
        self._withheld[keyspace, shard] = reason
        self._broadcast(keyspace, events.Deposed(shard, reason))

    def shard_checked(self, keyspace: str, shard: ShardName, trouble: str | None) -> None:
        """Note that a shard can be reached, or cannot because of *trouble*: from then on its streams live on their grace period."""
        self._broadcast(keyspace, events.ShardChecked(shard, trouble))

    async def drain(self, keyspace: str, shard: ShardName) -> None:
        """Return when no claim and no release of a shard is under way any more."""
        await asyncio.gather(*(runner.drain(shard) for runner in self._runners(keyspace)))

    def _broadcast(self, keyspace: str, event: events.Event) -> None:
        for runner in self._runners(keyspace):
            runner.post(event)

    def _runners(self, keyspace: str) -> list[Runner]:
        """Return the runners of a keyspace; none if it has gone meanwhile."""
        tables = self._keyspaces.get(keyspace)
        return [] if tables is None else list(tables.runners.values())

    # Streams

    @property
    def receivers(self) -> int:
        """How many streams the clients of this process have open."""
        return sum(
            not receiver.is_for_member
            for state in self.schedulers
            for receiver in state.receivers.attached.values()
        )

    def attach(
        self,
        receiver: Receiver,
        keyspace: str,
        name: str,
        held: Mapping[ShardName, tuple[bytes, ...]] | None = None,
        share: int | None = None,
        hearer: Callable[[events.StreamReport], None] | None = None,
    ) -> MessageTable:
        """Start sending the messages of a table that this process dispatches to *receiver*, as `Dispatcher.attach`.

        held: the messages that former dispatchers sent to it, by shard.
        share: as in `events.ShareGiven`; None for its whole prefetch.
        hearer: as in `Runner.attach`.
        """
        tables = self._keyspaces.get(keyspace)
        if tables is not None and tables.ending is not None:
            raise tables.ending
        table = tables.by_name.get(tables.name(name)) if tables else None
        if isinstance(table, TableLoadError):
            raise table
        runner = tables.runner(name) if tables else None
        if table is None or runner is None:
            raise TableNotFound(keyspace, name)
        self._attached[receiver.id] = runner
        self.take_over(receiver, held or {})
        runner.attach(receiver, share, hearer)
        return table

    def ready(self, receiver: Receiver) -> None:
        """Note that *receiver* can take another batch."""
        self.post(events.ReceiverReady(receiver.id))

    def wait_over(self, receiver: Receiver) -> None:
        """Stop *receiver*, a stream with an end, waiting for its first message."""
        self.post(events.WaitOver(receiver.id))

    def held_by(self, receiver: Receiver) -> Mapping[ShardName, tuple[bytes, ...]]:
        """Return the messages that *receiver* holds, by shard, as far as this process has sent them or taken them over."""
        runner = self._attached.get(receiver.id)
        return {} if runner is None else runner.held_by(receiver)

    def take_over(
        self, receiver: Receiver, held: Mapping[ShardName, tuple[bytes, ...]]
    ) -> None:
        """Assign messages of former dispatchers to *receiver*, as far as rows show them."""
        for shard, ids in held.items():
            self.post(events.TakenOver(receiver.id, shard, ids))

    def post(self, event: events.PartEvent | events.ReceiverReady | events.TakenOver) -> None:
        """Process an event of a receiver; one that is not attached is fine."""
        if runner := self._attached.get(event.receiver):
            runner.post(event)

    def detach(self, receiver: Receiver, unsent: Sequence[RowOfStream] = ()) -> None:
        """Send *receiver* nothing more, as `Dispatcher.detach`."""
        if runner := self._attached.get(receiver.id):
            runner.detach(receiver, [row for row in unsent if isinstance(row, ClaimedRow)])

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Forget a detached *receiver*, as `Dispatcher.forget`."""
        runner = self._attached.pop(receiver.id, None)
        if runner is not None and has_left:
            runner.left(receiver.id)

    # Messages

    def happened(self, keyspace: str, table: str, event: events.TableEvent) -> None:
        """Process the effect of a commit, as `Dispatcher.happened`."""
        if table == ANY_TABLE:
            tables = self._keyspaces.get(keyspace)
            if tables is not None and event.shard in tables.shards:
                self._unseen.happened(event.shard, tables.runners.values())
        elif runner := self.runner(keyspace, event.shard, table):
            runner.post(event)

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
        None if the statement must be sent instead: this process does not know that each of *ids* is in flight, it writes
        no ack early, or it knows no such table or shard.
        """
        runner = self.runner(keyspace, shard, table)
        if runner is None or self._keyspaces[keyspace].ending is not None:
            return None
        return runner.ack_early(shard, ids, acked_ns)

    def awaits_acks(self, keyspace: str, shard: ShardName, table: str) -> bool:
        """Return whether any process may have taken early acks that the rows of a table do not show."""
        runner = self.runner(keyspace, shard, table)
        if runner is None:
            return False
        if not self.dispatches(keyspace, shard) and runner.table.properties.acks_early:
            return True
        return bool(runner.state.shard(shard).early_acks)

    def find_rounded(
        self, keyspace: str, table: str, given: Iterable[int]
    ) -> tuple[int, str] | None:
        """Return one of *given* that a driver rounded to a double, and the id of the message in flight here, as `find_rounded`."""
        tables = self._keyspaces.get(keyspace)
        runner = tables.runner(table) if tables else None
        if runner is None:
            return None
        leases = chain.from_iterable(shard.leases for shard in runner.state.shards)
        return find_rounded(given, (lease.id for lease in leases))

    def leases_of(
        self, keyspace: str, shard: ShardName, table: str
    ) -> tuple[Leases, Mapping[int, int]] | None:
        """Return the leases of a shard, and the connection of each receiver; None if another process dispatches it."""
        runner = self.runner(keyspace, shard, table)
        if runner is None or not self.dispatches(keyspace, shard):
            return None
        return runner.state.shard(shard).leases, runner.connection_ids

    async def show_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Write leases and early acks, as `Dispatcher.show_leases`."""
        if runner := self.runner(keyspace, shard, table):
            await runner.show_leases(shard, ids)
