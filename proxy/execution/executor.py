"""Runs the statements of one session on its shards, and tries them again if that is allowed.

An executor takes one of its session's connections (`proxy.execution.session_connections`) for an
`Attempt`. When that has its answer, it either keeps the connection (a transaction is open, or the
session left state there that nothing else can rebuild) or gives it back.

`proxy.execution.retry_rules` decide whether a failed statement is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.backends.answer_readers import Awaited
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable
from streamfrom.proxy.execution.attempt import Attempt, SucceedingStep
from streamfrom.proxy.execution.retry_rules import (
    Ending,
    Verdict,
    decide,
    ending_of,
    is_repeatable,
    is_whole_ack,
)
from streamfrom.proxy.execution.session_connections import Retries, SessionConnections, named
from streamfrom.proxy.execution.session_state import SessionState, footprint_of
from streamfrom.proxy.execution.session_tracking import (
    apply_error,
    apply_ok,
    apply_prepare,
    generated,
)
from streamfrom.proxy.execution.shared_reads import SharedReads
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.response_reader import AnswerKind
from streamfrom.proxy.wire.resultset import with_insert_id, with_row_info
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses


if TYPE_CHECKING:
    import asyncio

    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend, LastDiagnostics
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.wire.pass_through import PassThrough
    from streamfrom.proxy.wire.prepare_response import PrepareReader
    from streamfrom.proxy.wire.resequencer import Resequencer
    from streamfrom.proxy.wire.response_reader import ResponseReader
    from streamfrom.sqlparse_ext.errors import StreamfromError
    from streamfrom.sqlparse_ext.writes.message_effects import Effect


_IN_TRANS: Final = int(Status.IN_TRANS)
_CURSOR_EXISTS: Final = int(Status.CURSOR_EXISTS)
_STAYS: Final = _IN_TRANS | _CURSOR_EXISTS


class Flow(Protocol):
    """An answer on its way to the client."""

    has_written: bool

    def client_writable(self) -> None:
        """Continue after the client caught up."""


class EndedAnswer(Protocol):
    """A shard's answer that is complete, or broke off; an `Attempt` is one at its end."""

    shard: ShardRuntime
    backend: Backend  # the connection that answered
    failure: BackendLost | None

    @property
    def scanner(self) -> ResponseReader:
        """The reader of the answer, with its status, rows, OK or error."""


class Executor:
    """The statements of one session, on its *connections*."""

    def __init__(self, state: SessionState, connections: SessionConnections) -> None:
        self.connections = connections
        # The connections that must stay with the session, and its transaction.
        self.branches = connections.branches
        self._state = state
        self._homes, self._active = connections.homes, connections.active
        self.current: Flow | None = None  # the answer that is on its way to the client, if any
        # Called with a packet number when a server asks for the client's file.
        self.on_file: Callable[[int], None] | None = None
        # Called for an ack that matched no row.
        self.fault_of: Callable[[ShardRuntime, str, Effect], StreamfromError | None] = (
            lambda *_: None
        )
        self._shared_reads = SharedReads(state, connections)

    # --- one statement on one shard -------------------------------------------------------

    def send_now(self, attempt: Attempt) -> bool:
        """Send a statement in this turn of the loop, or when a connection comes back.

        Nearly every statement takes this path: no task, no future, no copy of the answer.
        The argument of the attempt's `on_over` goes to `finish`.

        Return False when something must be done first: join a transaction, reset or set up the connection that the session
        holds, or set user variables there.
        """
        state = self._state
        state.is_stopped = False
        shard, packet = attempt.shard, attempt.packet
        backend = self.branches.held.get(shard)
        if backend is None:
            if state.variables is not None:
                return False
            if state.transaction is not None:
                if not self.branches.opens_at_once:
                    return False
                attempt.latency = None
            # Only statements that `plain_reads` has recognised have a latency class.
            elif attempt.latency is not None and self._shared_reads.send(attempt):
                self.current = attempt
                return True
            backend = self._homes.get(shard)
            database = attempt.database if shard.is_alone else named(shard, attempt.database)
            if backend is None or not shard.pool.acquire_own(backend, state, database):
                if attempt.any_of:
                    return False  # it must not wait here if another shard can answer
                # No connection is free: the statement waits in the pool's queue as a function,
                # not as a task.
                use = partial(self._send, attempt)
                self.connections.acquire_soon(shard, database, use, attempt.on_over)
                return True
        elif (
            backend.is_closed
            or backend.settings is not state.settings
            or backend.variables is not state.variables
            or backend.database != named(shard, attempt.database)
            or (state.transaction is not None and not backend.in_transaction)
            or not (isinstance(packet, bytes) or packet.packet_for(backend))
        ):
            return False
        else:
            attempt.latency = None  # a wait in a transaction is no measure of the shape
        self._send(attempt, backend)
        return True

    def _send(self, attempt: Attempt, backend: Backend) -> None:
        self._active[backend] = attempt.shard
        packet = attempt.packet
        data = packet if isinstance(packet, bytes) else packet.packet_for(backend)
        if data is None:
            self.connections.spawn(self._prepare_and_send(attempt, backend))
            return
        attempt.backend, attempt.scanner = backend, attempt.reply.scanner()
        self.current = attempt
        if attempt.any_of:
            backend.has_other = self._other(attempt.any_of, attempt.shard, attempt.shape)
        if self._state.transaction is not None and not backend.in_transaction:
            self.branches.open_ahead(attempt.shard, backend)
        backend.send(data, attempt)

    async def _prepare_and_send(self, attempt: Attempt, backend: Backend) -> None:
        try:
            await self.connections.bytes_for(attempt.shard, backend, attempt.packet)
        except Exception as error:  # noqa: BLE001 - the waiting statement must end
            self._active.pop(backend, None)
            attempt.on_over(error)
        else:
            self._send(attempt, backend)

    def finish(self, outcome: Attempt | Exception) -> bool:
        """Finish the attempt of `send_now`; False if it should be tried again the long way.

        Raises BackendLost or SessionLost if the answer broke off, PoolTimeout or BackendError if nothing was sent.
        """
        if isinstance(outcome, Exception):
            if isinstance(outcome, BackendUnavailable | BackendLost):
                # UNSENT: the long way starts over, and decides whether the statement waits.
                return False
            raise outcome
        attempt = outcome
        attempt.backend.has_other = None
        stands = None if attempt.latency is None else self._shared_reads.answered(attempt)
        if stands is not None:
            self.current = None
            if not stands:
                return False  # the client has seen nothing, and the next one is on a connection of the session's own
        elif attempt.failure is None and attempt.scanner.error is None:
            # The usual end needs no rule: reading a member of an enumeration is a call (Python 3.11).
            self.settle(attempt, attempt.shape)
        else:
            ending, has_begun = attempt.ending, self.branches.has_begun
            self.settle(attempt, attempt.shape)
            verdict = decide(
                ending,
                in_transaction=has_begun,
                is_read=is_repeatable(attempt.shape),
                is_ack=is_whole_ack(attempt.shape) and self._state.settings.autocommit,
                # A KILL that its server did not carry out has closed the connection.
                is_final=attempt.has_written
                or attempt.reply.stopped is not None
                or self._state.is_stopped,
            )
            if verdict is not Verdict.STANDS:
                return False
        if attempt.step is not None:
            self._succeeded(attempt, attempt.step)
        attempt.tell()
        return True

    async def relay(
        self,
        attempt: Attempt,
        *,
        columns: bool = True,
        final: bool = True,
        answer: AnswerKind = AnswerKind.RESULT,
        diagnostics: LastDiagnostics | None = None,
        warnings: int = 0,
    ) -> PassThrough | Resequencer:
        """Run a statement on its shard and relay the answer, riding out a failover.

        diagnostics: gets the warnings if other shards answer the client, too.
        warnings: the number of warnings of the earlier answers.

        Returns the reader of the answer; an error that the server answered is relayed, not raised.

        Raises BackendUnavailable, PoolTimeout or BackendError if nothing was sent, BackendLost if the answer broke off.
        """
        shape, packet = attempt.shape, attempt.packet
        shards = attempt.any_of or (attempt.shard,)
        connections = self.connections
        retries = connections.retries(shape)
        attempt.on_file = self.on_file
        while True:
            # Again in each round: after a failover the shard's connections lead to another
            # server.
            shard, backend, data = await self._ready(
                shards, attempt.database, packet, shape, retries
            )
            attempt.shard = shard
            outcome: Awaited[object] = Awaited()
            attempt.on_over = outcome.succeed  # unless the client has left meanwhile
            attempt.backend, attempt.failure = backend, None
            scanner = attempt.scanner = attempt.reply.scanner(
                columns=columns,
                final=final,
                answer=answer,
                call=shape.kind is Kind.CALL,
                file=bool(shape.uses & Uses.LOCAL_INFILE),
                warnings=warnings,
            )
            self.current = attempt
            self._active[backend] = shard
            backend.send(data, attempt)
            backend.has_other = self._other(shards, shard, shape)
            await outcome.future
            backend.has_other = None
            if diagnostics is not None and scanner.ok is not None and scanner.ok.warnings:
                # If the connection breaks now, the next statement finds it broken.
                with suppress(BackendError, BackendLost):
                    await connections.take_warnings(shard, backend, diagnostics)
            ending = attempt.ending
            self.settle(attempt, shape)
            if not await retries.again(
                ending, *shards, is_any=True, is_final=attempt.has_written
            ) or not await _is_renewed(ending, backend, packet):
                if attempt.step is not None:
                    self._succeeded(attempt, attempt.step)
                attempt.tell()
                return scanner

    async def _ready(
        self,
        shards: Sequence[ShardRuntime],
        database: str | None,
        packet: bytes | Packet,
        shape: Shape,
        retries: Retries,
    ) -> tuple[ShardRuntime, Backend, bytes]:
        """Return a connection to one of *shards* for a statement, and the bytes to send there, as `SessionConnections.ask_any`."""

        async def take(shard: ShardRuntime) -> tuple[ShardRuntime, Backend, bytes]:
            backend = await self.connections.acquire(shard, database, shape)
            return shard, backend, await self.connections.bytes_for(shard, backend, packet)

        return await self.connections.ask_any(shards, take, retries)

    def _other(
        self, shards: Sequence[ShardRuntime], shard: ShardRuntime, shape: Shape
    ) -> Callable[[], bool] | None:
        """Return the value of `Backend.has_other` while *shard* runs a statement that any of *shards* can answer."""
        if len(shards) == 1 or self.branches.held or not is_repeatable(shape):
            return None
        return lambda: any(each.is_answering for each in shards if each is not shard)

    async def ask(
        self,
        shards: Sequence[ShardRuntime],
        database: str | None,
        packet: bytes | Packet,
        shape: Shape,
        *,
        diagnostics: LastDiagnostics | None = None,
    ) -> BufferedAnswer:
        """Run a command on one of *shards* and return its whole answer; waits and raises as `relay`, and BackendError if it is refused.

        shards: those that answer alike, as in `SessionConnections.choices`.
        diagnostics: gets its warnings, and those of an error.
        """
        connections = self.connections
        retries = connections.retries(shape)
        rows = [] if diagnostics is None else diagnostics.rows
        while True:
            shard, backend, data = await self._ready(shards, database, packet, shape, retries)
            has_other = self._other(shards, shard, shape)
            try:
                (answer,) = await connections.pipeline(
                    shard, backend, [data], has_other=has_other
                )
                if diagnostics is not None and answer.ok is not None and answer.ok.warnings:
                    await connections.take_warnings(shard, backend, diagnostics)
            except BackendError as error:
                if diagnostics is not None:
                    with suppress(BackendError, BackendLost):
                        await connections.take_warnings(shard, backend, diagnostics)
                apply_error(self._state, self.branches, shard, backend, shape, error.code)
                if not await retries.again(ending_of(error), *shards, is_any=True):
                    raise
            except BackendLost:
                self.branches.broke_off(shard, shape)
                connections.connection_lost(shard, backend)
                if not await retries.again(Ending.BROKE_OFF, *shards, is_any=True):
                    raise
            else:
                assert answer.ok is not None
                ok = answer.ok
                apply_ok(self._state, self.branches, shard, backend, shape, ok, ok.trackers)
                return answer
            if diagnostics is not None:
                # The next round begins with the warnings from before this one.
                diagnostics.rows = rows

    async def prepare_on(
        self, shards: Sequence[ShardRuntime], database: str | None, sql: bytes
    ) -> PrepareReader:
        """Prepare a statement on any connection this session may have to one of *shards*; waits and raises as `ask_any`.

        The connection does not join a transaction that has not reached the shard yet.
        """
        return await self.connections.ask_any(
            shards, lambda shard: self._prepare_once(shard, database, sql)
        )

    async def _prepare_once(
        self, shard: ShardRuntime, database: str | None, sql: bytes
    ) -> PrepareReader:
        backend = await self.connections.acquire_apart(shard, database)
        try:
            answer = await backend.prepare(
                StatementKey(sql, database, self._state.settings.reading)
            )
        except BackendLost:
            self.connections.connection_lost(shard, backend)
            raise
        except BackendError:
            apply_prepare(self._state, backend)
            raise
        else:
            # Another session that gets this connection must not read the warnings with SHOW WARNINGS.
            if answer.warnings:
                apply_prepare(self._state, backend)
            return answer
        finally:
            if not backend.is_closed:
                self.connections.release(shard, backend)

    def settle(self, answer: EndedAnswer, shape: Shape) -> None:
        """Apply an answer to the session, and keep its connection or release it.

        Raises SessionLost if the connection broke and held state of the session.
        """
        shard, backend, scanner = answer.shard, answer.backend, answer.scanner
        self.current = None
        self._active.pop(backend, None)
        if answer.failure is not None:
            self.branches.broke_off(shard, shape)
            self.connections.connection_lost(shard, backend)
        elif scanner.error is not None:
            code = scanner.error.code
            apply_error(self._state, self.branches, shard, backend, shape, code)
        elif (
            scanner.is_plain
            and not scanner.status & _STAYS
            and shard not in self.branches.held
            and (footprint := footprint_of(shape)).is_traceless
            and not (
                footprint.is_sticky or footprint.keeps_found_rows or footprint.sets_insert_id
            )
            and not (footprint.may_hide and self.branches.effects.hidden(shard).by(shape))
        ):
            # The case of nearly every statement: it left no state to remember.
            self._state.answered_by(backend)
            backend.found_rows = scanner.rows if footprint.finds_its_rows else None
            backend.row_count = -1
            backend.has_warnings = False
            shard.pool.release(backend)
        else:
            ok = scanner.ok
            assert ok is not None
            trackers = scanner.trackers
            apply_ok(self._state, self.branches, shard, backend, shape, ok, trackers)

    def _succeeded(self, attempt: Attempt, step: SucceedingStep) -> None:
        """Carry out the consequences of a statement, unless it failed."""
        if attempt.failure is not None or attempt.scanner.error is not None:
            return
        if step.insert_id:
            attempt.held = with_insert_id(attempt.held, step.insert_id)
            generated(self._state, step.insert_id)
        elif step.own_id:
            attempt.held = with_insert_id(attempt.held, step.own_id)
        if step.has_selected:
            attempt.held = with_row_info(attempt.held)
        if step.effect is not None:
            ok = attempt.scanner.ok
            # With RETURNING the answer is rows, one for each that was affected.
            rows = attempt.scanner.rows or (0 if ok is None else ok.affected_rows)
            insert_id = 0 if ok is None else ok.last_insert_id
            self.branches.happened(attempt.shard, step.table, step.effect, insert_id, rows=rows)
            if not rows:
                attempt.refusal = self.fault_of(attempt.shard, step.table, step.effect)

    # --- other ends -----------------------------------------------------------------------

    def interrupt(self) -> list[asyncio.Task[None]]:
        """Stop the running statement, as `SessionConnections.interrupt`."""
        self._shared_reads.break_up()
        return self.connections.interrupt()

    def forget(self) -> list[asyncio.Task[None]]:
        """Give up every connection, as `SessionConnections.forget`."""
        self._shared_reads.forget()
        return self.connections.forget()

    def client_writable(self) -> None:
        """Let the current answer continue."""
        if self.current is not None:
            self.current.client_writable()

    def file(self, piece: bytes) -> None:
        """Take a piece of the file that the server asked for (`on_file`)."""
        if isinstance(self.current, Attempt):
            self.current.file(piece)


async def _is_renewed(ending: Ending, backend: Backend, packet: bytes | Packet) -> bool:
    """Prepare *backend* for the statement that it refused; return False if that is impossible."""
    if ending is Ending.STALE:
        assert not isinstance(packet, bytes)
        packet.forget_on(backend)
    elif ending is Ending.FULL:
        # A procedure's PREPARE takes a place among the server's prepared statements, too.
        return not backend.is_busy and await backend.make_room()
    return True
