"""One session's statements on its shards: what runs them, stays together, is tried again.

An executor owns the backend connections that its session holds. It takes one for a statement,
relays the answer, and then either keeps the connection (a transaction is open, or the session
left state there that nothing else can rebuild) or gives it back.

Three rules decide about trouble:

* nothing was sent, or the server refused because it is read-only: outside a transaction the
  statement waits for the shard and is tried again;
* a read broke off before the client had seen any of its answer: likewise;
* anything else that broke off is an error. A write whose bytes have left is never sent twice.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from proxy.backends.statement_ids import StatementKey
from proxy.backends.tenancy import adopt
from proxy.errors import BackendError, BackendLost, BackendUnavailable
from proxy.sessions.execution import STALE
from proxy.sessions.following import bring_insert_id, follow, follow_error
from proxy.sessions.relay import Relay
from proxy.sessions.retries import is_repeatable, was_refused_undone
from proxy.sessions.state import traits
from proxy.wire.constants import Status
from proxy.wire.response import Answer
from proxy.wire.resultset import with_insert_id
from sqlparse_ext.schemas import SYSTEM_SCHEMAS
from sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from proxy.backends.backend import Backend
    from proxy.backends.readers import Answer as Collected
    from proxy.backends.settings import Settings
    from proxy.backends.shard import ShardRuntime
    from proxy.net import Link
    from proxy.sessions.execution import Packet
    from proxy.sessions.reply import Reply
    from proxy.sessions.state import SessionState
    from proxy.sessions.transaction import Branches
    from proxy.wire.answer import Reader
    from proxy.wire.prepare import PrepareReader
    from proxy.wire.response import Relay as RelayScanner, Resequencer
    from proxy.wire.resultset import Ok, Tracker
    from sqlparse_ext.statements import Shape


# Without a database they touch no row: a LOCK is then UNLOCK TABLES.
_TOUCH_NO_ROW: Final = frozenset({Kind.SELECT, Kind.SHOW, Kind.SET, Kind.LOCK})
_RETRY_PAUSE_S: Final = 0.05
_IN_TRANS: Final = int(Status.IN_TRANS)
_CURSOR_EXISTS: Final = int(Status.CURSOR_EXISTS)
_STAYS: Final = _IN_TRANS | _CURSOR_EXISTS


class Flow(Protocol):
    """An answer on its way to the client."""

    def client_writable(self) -> None:
        """Go on after the client caught up."""


class Ended(Protocol):
    """An answer that is complete, or broke off."""

    failure: BackendLost | None

    @property
    def backend(self) -> Backend:
        """The connection that answered."""

    @property
    def scanner(self) -> Reader:
        """What the answer was."""


class Executor:
    """The statements of one session.

    Attributes:
        branches: the connections that must stay with the session.
        relay: the answer that is on its way to the client, if any.
        on_file: called with a packet number when a server asks for the client's file.
    """

    def __init__(
        self,
        state: SessionState,
        link: Link,
        branches: Branches,
        *,
        failover_buffer_s: float,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.branches = branches
        self.relay: Flow | None = None
        self.on_file: Callable[[int], None] | None = None
        self._state = state
        self._link = link
        self._failover_buffer_s = failover_buffer_s
        self._spawn = spawn
        # The connection of each shard this session used last: idle in the pool, and still its
        # own until somebody else needs it.
        self._homes: dict[ShardRuntime, Backend] = {}
        self._active: dict[Backend, ShardRuntime] = {}

    @property
    def settings(self) -> Settings:
        """The variables that a connection of this session has."""
        return self._state.settings

    # --- one statement on one shard -------------------------------------------------------

    def send_now(
        self,
        shard: ShardRuntime,
        database: str | None,
        packet: bytes | Packet,
        reply: Reply,
        on_done: Callable[[Relay], None],
    ) -> bool:
        """Send a statement if a fitting connection is at hand; nothing is awaited.

        *database* is None if unqualified names mean nothing, here as everywhere in this class;
        otherwise that of a view, whose name may differ from shard to shard.

        Return False when there is none, or when something must be set up first. This is the
        path of nearly every statement: no task, no future, no copy of the answer.
        """
        state = self._state
        database = _named(shard, database)
        backend = self.branches.held.get(shard)
        if backend is not None:
            if (
                backend.is_closed
                or backend.settings is not state.settings
                or backend.database != database
                or (state.transaction is not None and not backend.in_transaction)
            ):
                return False
            data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
            if data is None:
                return False
        else:
            if state.transaction is not None:
                return False
            backend = self._homes.get(shard)
            if backend is None:
                return False
            data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
            if data is None or not shard.pool.take_own(backend, state, database):
                return False
        self.relay = Relay(reply.scanner(), backend, self._link, on_done)
        self._active[backend] = shard
        backend.send(data, self.relay)
        return True

    async def relay_on(
        self,
        shard: ShardRuntime,
        database: str | None,
        packet: bytes | Packet,
        shape: Shape,
        reply: Reply,
        *,
        columns: bool = True,
        final: bool = True,
        answer: Answer = Answer.RESULT,
        insert_id: int = 0,
    ) -> RelayScanner | Resequencer:
        """Run a command on one shard and relay its answer, riding out a failover.

        insert_id: the insert id that the client is told, where the server knows of none.

        Returns what the answer was; an error that the server answered is relayed, not raised.

        Raises:
            BackendUnavailable, PoolTimeout: nothing was sent.
            BackendLost: the answer broke off.
            BackendError: the connection could not be set up for this session.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._failover_buffer_s
        may_renew = True
        while True:
            may_wait = not self.branches.in_transaction
            try:
                backend = await self.take(shard, database, shape)
                data = await self.bytes_for(shard, backend, packet)
            except (BackendUnavailable, BackendLost):
                if not may_wait or not await shard.wait_available(deadline):
                    raise
                continue
            done: asyncio.Future[Relay] = loop.create_future()
            reading = reply.scanner(
                columns=columns,
                final=final,
                answer=answer,
                call=shape.kind is Kind.CALL,
                file=bool(shape.uses & Uses.LOCAL_INFILE),
            )
            relay = Relay(reading, backend, self._link, partial(_resolve, done), self.on_file)
            self.relay = relay
            self._active[backend] = shard
            backend.send(data, relay)
            await done
            scanner = relay.scanner
            if relay.failure is not None:
                reply.broke_off(scanner)
            self.settle(shard, shape, relay)
            untouched = may_wait and not relay.has_written and reply.stopped is None
            if relay.failure is not None:
                if untouched and is_repeatable(shape) and await shard.wait_available(deadline):
                    continue
                raise relay.failure
            if untouched and was_refused_undone(scanner.error) and loop.time() < deadline:
                await asyncio.sleep(_RETRY_PAUSE_S)
                if await shard.wait_available(deadline):
                    continue
            if (
                may_renew
                and not relay.has_written
                and not isinstance(packet, bytes)
                and scanner.error is not None
                and scanner.error.code in STALE
            ):
                may_renew = False
                packet.stale(backend)
                continue
            if insert_id and scanner.error is None:
                relay.held = with_insert_id(relay.held, insert_id)
            reply.end(relay, is_read=is_repeatable(shape))
            return scanner

    async def ask(
        self, shard: ShardRuntime, database: str | None, packet: bytes | Packet, shape: Shape
    ) -> Collected:
        """Run a command on one shard and return its whole answer; the session follows it.

        Raises:
            BackendError: the server refused it.
            BackendUnavailable, PoolTimeout, BackendLost: as `relay_on`.
        """
        backend = await self.take_patiently(shard, database, shape)
        data = await self.bytes_for(shard, backend, packet)
        try:
            (answer,) = await self.run(shard, backend, [data])
        except BackendError as error:
            follow_error(self._state, self.branches, shard, backend, error.code)
            raise
        except BackendLost:
            self._lost(shard, backend)
            raise
        assert answer.ok is not None
        self.follow(shard, backend, shape, answer.ok, answer.ok.trackers)
        return answer

    def deadline(self) -> float:
        """Return until when (loop time) a statement that begins now may wait for a shard."""
        return asyncio.get_running_loop().time() + self._failover_buffer_s

    async def ride_out(self, shard: ShardRuntime, deadline: float) -> bool:
        """Wait for *shard*, which refused a statement; False when *deadline* came first."""
        await asyncio.sleep(_RETRY_PAUSE_S)
        return await shard.wait_available(deadline)

    async def bytes_for(
        self, shard: ShardRuntime, backend: Backend, packet: bytes | Packet
    ) -> bytes:
        """Return the bytes of *packet* for a connection that was taken."""
        if isinstance(packet, bytes):
            return packet
        try:
            data = packet.packet_for(backend)
            if data is None:
                await packet.prepare(backend)
                data = packet.packet_for(backend)
        except BackendLost:
            self._lost(shard, backend)
            raise
        except BaseException:
            self.give_back(shard, backend)
            raise
        assert data is not None
        return data

    async def prepare_on(
        self, shard: ShardRuntime, database: str | None, sql: bytes
    ) -> PrepareReader:
        """Prepare a statement on any connection this session may have to *shard*.

        It takes no part in a transaction that has not reached the shard yet. Waits for a shard
        that is away, and raises, as `take_patiently`.
        """
        deadline = asyncio.get_running_loop().time() + self._failover_buffer_s
        while True:
            may_wait = not self.branches.open
            try:
                backend = await self._take_apart(shard, database)
                key = StatementKey(sql, database, self._state.settings.reading)
                try:
                    return await backend.prepare(key)
                except BackendLost:
                    self._lost(shard, backend)
                    raise
                finally:
                    if not backend.is_closed:
                        self.give_back(shard, backend)
            except (BackendUnavailable, BackendLost):
                if not may_wait or not await shard.wait_available(deadline):
                    raise

    async def take_patiently(
        self, shard: ShardRuntime, database: str | None, shape: Shape
    ) -> Backend:
        """Return what `take` does, outside a transaction waiting for a shard that is away.

        Raises as `take`, once `failover_buffer` is over.
        """
        deadline = self.deadline()
        while True:
            may_wait = not self.branches.open
            try:
                return await self.take(shard, database, shape)
            except (BackendUnavailable, BackendLost):
                if not may_wait or not await shard.wait_available(deadline):
                    raise

    async def run(
        self, shard: ShardRuntime, backend: Backend, packets: list[bytes]
    ) -> list[Collected]:
        """Run commands whose answers are not relayed; KILL and a vanishing client stop them too.

        Raises:
            BackendError, BackendLost: as `Backend.pipeline`.
        """
        self._active[backend] = shard
        try:
            return await backend.pipeline(packets)
        finally:
            self._active.pop(backend, None)

    async def take(self, shard: ShardRuntime, database: str | None, shape: Shape) -> Backend:
        """Return a connection to *shard* that is ready for a statement of this session.

        It has the session's variables and database, and takes part in its transaction.
        """
        backend = await self._take_apart(shard, database)
        try:
            if database is None and shape.kind in _TOUCH_NO_ROW:
                # It has no table of a keyspace, so this shard is not one of the transaction's.
                self.branches.check()
            else:
                await self.branches.join(shard, backend, shape)
            if shape.uses & Uses.LAST_INSERT_ID:
                await bring_insert_id(self._state, backend)
        except BaseException:
            if shard not in self.branches.held:
                shard.pool.give(backend)
            raise
        return backend

    async def _take_apart(self, shard: ShardRuntime, database: str | None) -> Backend:
        """Return a connection as `take`, but one that need not take part in a transaction."""
        database = _named(shard, database)
        backend = self.branches.held.get(shard)
        if backend is not None and backend.is_closed:
            self._lost(shard, backend)
            # Only now is it known, but nothing was sent: say what became of the transaction.
            self.branches.check()
            raise BackendLost(shard.keyspace, shard.name)
        if backend is None:
            backend = await shard.pool.take(self._state, database)
            self._homes[shard] = backend
        else:
            await adopt(backend, self._state, self._state.settings, database)
        return backend

    def settle(self, shard: ShardRuntime, shape: Shape, relay: Ended) -> None:
        """Follow what an answer means, and keep its connection or give it back."""
        backend = relay.backend
        scanner = relay.scanner
        self.relay = None
        self._active.pop(backend, None)
        if relay.failure is not None:
            self._lost(shard, backend)
        elif scanner.error is not None:
            follow_error(self._state, self.branches, shard, backend, scanner.error.code)
        elif (
            scanner.is_plain
            and not scanner.status & _STAYS
            and shard not in self.branches.held
            and traits(shape).is_traceless
            and not traits(shape).is_sticky
        ):
            # Nearly every statement: nothing happened that anybody must remember.
            self._state.answered_at = backend
            backend.found_rows = scanner.rows if traits(shape).finds_its_rows else None
            backend.row_count = -1
            backend.has_warnings = False
            shard.pool.give(backend)
        else:
            assert scanner.ok is not None
            self.follow(shard, backend, shape, scanner.ok, scanner.trackers)

    def follow(
        self,
        shard: ShardRuntime,
        backend: Backend,
        shape: Shape,
        ok: Ok,
        trackers: Sequence[Tracker],
    ) -> None:
        """Follow a successful answer that was not relayed, as `settle` does."""
        follow(self._state, self.branches, shard, backend, shape, ok, trackers)

    def _lost(self, shard: ShardRuntime, backend: Backend) -> None:
        shard.suspect()
        shard.pool.discard(backend)
        self._homes.pop(shard, None)
        self.branches.lost(shard, backend)

    def started(self, shard: ShardRuntime, backend: Backend) -> None:
        """Note that a statement runs on *backend*, for `interrupt` and `forget`."""
        self._active[backend] = shard

    def abandon(self, shard: ShardRuntime, backend: Backend) -> None:
        """Give up a connection in the middle of an answer that nobody wants any more."""
        self._active.pop(backend, None)
        self._spawn(shard.control.kill(backend.thread_id))
        shard.pool.discard(backend)
        if self._homes.get(shard) is backend:
            del self._homes[shard]

    def give_back(self, shard: ShardRuntime, backend: Backend) -> None:
        """Return a connection from `take` that answered a statement of the proxy's own."""
        if shard not in self.branches.held:
            shard.pool.give(backend)

    # --- other ends -----------------------------------------------------------------------

    def client_writable(self) -> None:
        """Let the answer under way go on."""
        if self.relay is not None:
            self.relay.client_writable()

    def file(self, piece: bytes) -> None:
        """Take a piece of the file that `on_file` told of."""
        if isinstance(self.relay, Relay):
            self.relay.file(piece)

    def interrupt(self) -> bool:
        """Stop what is running; the server's own error ends the answer. False if nothing is."""
        for backend, shard in self._active.items():
            backend.awaits_kill = True
            self._spawn(shard.control.kill_query(backend.thread_id))
        return bool(self._active)

    def break_off(self) -> None:
        """Stop what is running where the server does not: its connections break."""
        for backend in list(self._active):
            backend.abort()

    def forget(self) -> None:
        """Give up every connection: the session is reset or gone."""
        for backend, shard in self._active.items():
            # The server would run the statement to its end for nobody.
            self._spawn(shard.control.kill(backend.thread_id))
            shard.pool.discard(backend)
        self.branches.forget(self._spawn)
        for shard, backend in self._homes.items():
            shard.pool.forget_owner(self._state, backend)
        self._active.clear()
        self._homes.clear()


def _resolve(done: asyncio.Future[Relay], relay: Relay) -> None:
    # Cancelled when the client has left meanwhile.
    if not done.done():
        done.set_result(relay)


def _named(shard: ShardRuntime, database: str | None) -> str | None:
    """Return what the database of a view is called on *shard*.

    Shards may have databases of different names, and then a view has that of the first.
    """
    if database is None or shard.is_alone or database in SYSTEM_SCHEMAS:
        return database
    return shard.database
