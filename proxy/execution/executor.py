"""One session's statements on its shards: what runs them, stays together, is tried again.

An executor takes one of its session's connections (`proxy.execution.session_connections`) for a statement,
relays the answer, and then either keeps the connection (a transaction is open, or the session
left state there that nothing else can rebuild) or gives it back.

What becomes of a statement that meets trouble, `proxy.execution.retry_rules` say.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable
from streamfrom.proxy.execution.answer_relay import AnswerRelay
from streamfrom.proxy.execution.retry_rules import Ending, ending_of
from streamfrom.proxy.execution.session_connections import SessionConnections, named
from streamfrom.proxy.execution.session_state import traits
from streamfrom.proxy.execution.session_tracking import apply_error, apply_ok, apply_prepare
from streamfrom.proxy.execution.shared_reads import SharedReads
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.response import AnswerKind
from streamfrom.proxy.wire.resultset import with_insert_id
from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.diagnostics_area import LastDiagnostics
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.latency_class import LatencyClass
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.execution.shared_reads import SharedRead
    from streamfrom.proxy.execution.transaction import Branches
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.prepare_response import PrepareReader
    from streamfrom.proxy.wire.response import PassThrough, Resequencer
    from streamfrom.proxy.wire.response_reader import ResponseReader
    from streamfrom.proxy.wire.resultset import Ok, Tracker
    from streamfrom.sqlparse_ext.statements import Shape


_IN_TRANS: Final = int(Status.IN_TRANS)
_CURSOR_EXISTS: Final = int(Status.CURSOR_EXISTS)
_STAYS: Final = _IN_TRANS | _CURSOR_EXISTS


class Flow(Protocol):
    """An answer on its way to the client."""

    def client_writable(self) -> None:
        """Go on after the client caught up."""


class EndedAnswer(Protocol):
    """An answer that is complete, or broke off."""

    failure: BackendLost | None
    backend: Backend  # the connection that answered

    @property
    def scanner(self) -> ResponseReader:
        """What the answer was."""


class Executor(SessionConnections):
    """The statements of one session, on its connections.

    Attributes:
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
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        super().__init__(state, branches, failover_buffer_s=failover_buffer_s, spawn=spawn)
        self.relay: Flow | None = None
        self.on_file: Callable[[int], None] | None = None
        self._link = link
        self._shared_reads = SharedReads(state, link, self)

    # --- one statement on one shard -------------------------------------------------------

    def send_now(
        self,
        shard: ShardRuntime,
        database: str | None,
        packet: bytes | Packet,
        reply: Reply,
        on_over: Callable[[AnswerRelay | Exception], None],
        latency: LatencyClass | None = None,
    ) -> bool:
        """Send a statement in this turn of the loop, or when a connection comes back.

        This is the path of nearly every statement: no task, no future, no copy of the answer.
        *on_over* gets the answer, or what prevented that it was sent at all.
        latency: the latency class of a plain read: a quick one may share a connection, and
            then the answer is a `SharedRead`.

        Return False when the statement must do something else first: join a transaction, or
        make the connection that the session holds fit again, or bring user variables.
        """
        state = self._state
        backend = self.branches.held.get(shard)
        if backend is None:
            if state.transaction is not None or state.variables is not None:
                return False
            if latency is not None and latency.is_quick:
                self.relay = self._shared_reads.send(shard, database, packet, reply, on_over)
                if self.relay is not None:
                    return True
            backend = self._homes.get(shard)
            if backend is None or not shard.pool.acquire_own(
                backend, state, database if shard.is_alone else named(shard, database)
            ):
                use = partial(self._send, shard, packet, reply, on_over)
                self.acquire_soon(shard, database, use, on_over)
                return True
        elif (
            backend.is_closed
            or backend.settings is not state.settings
            or backend.variables is not state.variables
            or backend.database != named(shard, database)
            or (state.transaction is not None and not backend.in_transaction)
            or not (isinstance(packet, bytes) or packet.packet_for(backend))
        ):
            return False
        self._send(shard, packet, reply, on_over, backend)
        return True

    def _send(
        self,
        shard: ShardRuntime,
        packet: bytes | Packet,
        reply: Reply,
        on_over: Callable[[AnswerRelay | Exception], None],
        backend: Backend,
    ) -> None:
        self._active[backend] = shard
        data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
        if data is None:
            self._spawn(self._prepare_and_send(shard, packet, reply, on_over, backend))
            return
        self.relay = AnswerRelay(reply.scanner(), backend, self._link, on_over)
        backend.send(data, self.relay)

    async def _prepare_and_send(
        self,
        shard: ShardRuntime,
        packet: bytes | Packet,
        reply: Reply,
        on_over: Callable[[AnswerRelay | Exception], None],
        backend: Backend,
    ) -> None:
        try:
            await self.bytes_for(shard, backend, packet)
        except Exception as error:  # noqa: BLE001 - the waiting statement must end
            self._active.pop(backend, None)
            on_over(error)
        else:
            self._send(shard, packet, reply, on_over, backend)

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
        answer: AnswerKind = AnswerKind.RESULT,
        insert_id: int = 0,
        left: LastDiagnostics | None = None,
        warnings: int = 0,
    ) -> PassThrough | Resequencer:
        """Run a command on one shard and relay its answer, riding out a failover.

        insert_id: the insert id for the client's OK, where the server knows of none.
        left: takes the warnings, for other shards answer the client, too; they had *warnings*.

        Returns what the answer was; an error that the server answered is relayed, not raised.

        Raises:
            BackendUnavailable, PoolTimeout: nothing was sent.
            BackendLost: the answer broke off.
            BackendError: the connection could not be set up for this session.
        """
        loop = asyncio.get_running_loop()
        attempts = self.attempts(shape)
        while True:
            try:
                backend = await self.acquire(shard, database, shape)
                data = await self.bytes_for(shard, backend, packet)
            except (BackendUnavailable, BackendLost):
                if not await attempts.again(Ending.UNSENT, shard):
                    raise
                continue
            done: asyncio.Future[AnswerRelay] = loop.create_future()
            reading = reply.scanner(
                columns=columns,
                final=final,
                answer=answer,
                call=shape.kind is Kind.CALL,
                file=bool(shape.uses & Uses.LOCAL_INFILE),
                warnings=warnings,
            )
            relay = AnswerRelay(
                reading, backend, self._link, partial(_resolve, done), self.on_file
            )
            self.relay = relay
            self._active[backend] = shard
            backend.send(data, relay)
            await done
            scanner = relay.scanner
            if relay.failure is not None:
                reply.broke_off(scanner)
            elif left is not None and scanner.ok is not None and scanner.ok.warnings:
                # A connection that breaks now is found broken by the next statement.
                with suppress(BackendError, BackendLost):
                    await self.take_warnings(shard, backend, left)
            self.settle(shard, shape, relay)
            ending = (
                ending_of(scanner.error, is_prepared=not isinstance(packet, bytes))
                if relay.failure is None
                else Ending.BROKE_OFF
            )
            if await attempts.again(
                ending, shard, is_final=relay.has_written
            ) and await _is_renewed(ending, backend, packet):
                continue
            if relay.failure is not None:
                raise relay.failure
            if insert_id and scanner.error is None:
                relay.held = with_insert_id(relay.held, insert_id)
            reply.end(relay, shape)
            return scanner

    async def ask(
        self,
        shard: ShardRuntime,
        database: str | None,
        packet: bytes | Packet,
        shape: Shape,
        *,
        left: LastDiagnostics | None = None,
    ) -> BufferedAnswer:
        """Run a command on one shard and return its whole answer, as patiently as `relay_on`.

        left: the diagnostics that its warnings are added to, also an error's.

        Raises:
            BackendError: the server refused it.
            BackendUnavailable, PoolTimeout, BackendLost: as `relay_on`.
        """
        attempts = self.attempts(shape)
        rows = [] if left is None else left.rows
        while True:
            try:
                backend = await self.acquire(shard, database, shape)
                data = await self.bytes_for(shard, backend, packet)
            except (BackendUnavailable, BackendLost):
                if not await attempts.again(Ending.UNSENT, shard):
                    raise
                continue
            try:
                (answer,) = await self.pipeline(shard, backend, [data])
                if left is not None and answer.ok is not None and answer.ok.warnings:
                    await self.take_warnings(shard, backend, left)
            except BackendError as error:
                if left is not None:
                    with suppress(BackendError, BackendLost):
                        await self.take_warnings(shard, backend, left)
                apply_error(self._state, self.branches, shard, backend, shape, error.code)
                if not await attempts.again(ending_of(error), shard):
                    raise
            except BackendLost:
                self.connection_lost(shard, backend)
                if not await attempts.again(Ending.BROKE_OFF, shard):
                    raise
            else:
                assert answer.ok is not None
                self.apply_ok(shard, backend, shape, answer.ok, answer.ok.trackers)
                return answer
            if left is not None:
                left.rows = rows

    async def prepare_on(
        self, shard: ShardRuntime, database: str | None, sql: bytes
    ) -> PrepareReader:
        """Prepare a statement on any connection this session may have to *shard*.

        It takes no part in a transaction that has not reached the shard yet. Waits for a shard
        that is away, and raises, as `patiently`.
        """
        return await self.patiently(shard, lambda: self._prepare_once(shard, database, sql))

    async def _prepare_once(
        self, shard: ShardRuntime, database: str | None, sql: bytes
    ) -> PrepareReader:
        backend = await self.acquire_apart(shard, database)
        try:
            answer = await backend.prepare(
                StatementKey(sql, database, self._state.settings.reading)
            )
        except BackendLost:
            self.connection_lost(shard, backend)
            raise
        except BackendError:
            apply_prepare(self._state, backend)
            raise
        else:
            if answer.warnings:
                apply_prepare(self._state, backend)
            return answer
        finally:
            if not backend.is_closed:
                self.release(shard, backend)

    def settle_shared(self, shard: ShardRuntime, read: SharedRead) -> bool:
        """Follow the answer of a read that was sent among others', as `SharedReads.settle`."""
        self.relay = None
        return self._shared_reads.settle(shard, read)

    def settle(self, shard: ShardRuntime, shape: Shape, relay: EndedAnswer) -> None:
        """Follow what an answer means, and keep its connection or give it back."""
        backend = relay.backend
        scanner = relay.scanner
        self.relay = None
        self._active.pop(backend, None)
        if relay.failure is not None:
            self.connection_lost(shard, backend)
        elif scanner.error is not None:
            code = scanner.error.code
            apply_error(self._state, self.branches, shard, backend, shape, code)
        elif (
            scanner.is_plain
            and not scanner.status & _STAYS
            and shard not in self.branches.held
            and (said := traits(shape)).is_traceless
            and not (said.is_sticky or said.keeps_found_rows or said.sets_insert_id)
        ):
            # Nearly every statement: nothing happened that anybody must remember.
            self._state.answered_at = backend
            backend.found_rows = scanner.rows if said.finds_its_rows else None
            backend.row_count = -1
            backend.has_warnings = False
            shard.pool.release(backend)
        else:
            ok = scanner.ok
            assert ok is not None
            self.apply_ok(shard, backend, shape, ok, scanner.trackers)

    def apply_ok(
        self,
        shard: ShardRuntime,
        backend: Backend,
        shape: Shape,
        ok: Ok,
        trackers: Sequence[Tracker],
    ) -> None:
        """Follow a successful answer that was not relayed, as `settle` does."""
        apply_ok(self._state, self.branches, shard, backend, shape, ok, trackers)

    # --- other ends -----------------------------------------------------------------------

    def interrupt(self) -> list[asyncio.Task[None]]:
        """Stop what is running, as `SessionConnections.interrupt`."""
        self._shared_reads.break_up()
        return super().interrupt()

    def forget(self) -> list[asyncio.Task[None]]:
        """Give up every connection, as `SessionConnections.forget`."""
        self._shared_reads.forget()
        return super().forget()

    def client_writable(self) -> None:
        """Let the answer under way go on."""
        if self.relay is not None:
            self.relay.client_writable()

    def file(self, piece: bytes) -> None:
        """Take a piece of the file that the server asked for (`on_file`)."""
        if isinstance(self.relay, AnswerRelay):
            self.relay.file(piece)


async def _is_renewed(ending: Ending, backend: Backend, packet: bytes | Packet) -> bool:
    """Have *backend* ready for the statement that it refused; False where it cannot be."""
    if ending is Ending.STALE:
        assert not isinstance(packet, bytes)
        packet.forget_on(backend)
    elif ending is Ending.FULL:
        # A PREPARE in text, which counts like any other.
        return not backend.is_busy and await backend.make_room()
    return True


def _resolve(done: asyncio.Future[AnswerRelay], relay: AnswerRelay) -> None:
    # Cancelled when the client has left meanwhile.
    if not done.done():
        done.set_result(relay)
