"""The commands of one logged-in client: one at a time, in order, however many it sent ahead.

A login makes a `CommandLoop`, and COM_CHANGE_USER the next one. Plain statements take the hot path in the
turn of the loop they came in (`proxy.sql.fast_path`), everything else is a task. Every failure
becomes an ERR packet in one place (`_answer_error`): a `StreamfromError` with its own code,
anything else as `internal error` with the connection id, logged once with its trace.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.errors import (
    BackendError,
    ConnectionKilled,
    IdleTooLong,
    InternalError,
    ServerShutdown,
    SessionLost,
    StatementTimedOut,
    WireError,
)
from streamfrom.proxy.execution.diagnostics_queries import diagnostics_of_error
from streamfrom.proxy.execution.reply import INTERRUPTED, Reply
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.wire.constants import Command
from streamfrom.proxy.wire.server_connection import CommandReceived, ConnectionPhase, refusal
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Server
    from streamfrom.proxy.execution.attempt import Attempt
    from streamfrom.proxy.sessions.dispatch import Dispatch
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.sql.session_context import SessionContext


# A client may send commands ahead. Beyond this it is not read from until they are done.
QUEUED_BYTES_MAX: Final = 1 << 20

# The cost of a waiting command besides its bytes.
_QUEUED_COMMAND_BYTES: Final = 200
# From here on a command is counted while it runs; smaller ones are many, and use little.
_LARGE_BYTES: Final = 64 << 10

# How long a server may take for a KILL QUERY.
STOP_S: Final = 5.0

_QUERY: Final = int(Command.QUERY)
_EXECUTE: Final = int(Command.STMT_EXECUTE)
_NOTHING: Final = CommandReceived(b"", 0)
_COMMAND_NAMES: Final = {
    int(Command.STMT_PREPARE): "Prepare",
    int(Command.STMT_EXECUTE): "Execute",
    int(Command.STMT_FETCH): "Fetch",
}
_NO_QUESTIONS: Final = frozenset(
    {Command.PING, Command.STATISTICS, Command.STMT_PREPARE, Command.STMT_RESET}
)
# Statements that KILL QUERY undoes whole, so the client may be informed that they did not happen. Any other
# statement may commit in the middle, and only its own answer shows it.
_INTERRUPTIBLE: Final = frozenset(
    {
        Kind.SELECT,
        Kind.INSERT,
        Kind.REPLACE,
        Kind.UPDATE,
        Kind.DELETE,
        Kind.LOAD,
        Kind.SHOW,
        Kind.EXPLAIN,
        Kind.STREAM,
    }
)
_UNANSWERED: Final = frozenset({Command.STMT_CLOSE, Command.STMT_SEND_LONG_DATA})


class CommandLoop:
    """The commands of one user on one connection."""

    def __init__(
        self,
        context: SessionContext,
        dispatch: Dispatch,
        logger: FilteringBoundLogger,
        services: Services,
    ) -> None:
        self.context = context  # the session that they belong to
        self.is_busy = False  # a command is being carried out
        self._dispatch = dispatch
        self._link = context.link
        self._wire = context.wire
        self._log = logger
        self._tally = services.tally
        self._memory = context.memory
        self._large_bytes = 0  # of the command that runs
        self._loop = asyncio.get_running_loop()
        self._state = context.state
        self._executor = context.executor
        self._fast_path = dispatch.fast_path
        self._streams = dispatch.statements.streams
        self._current: CommandReceived
        self._reply: Reply
        # When its present activity began, in the loop's time.
        self._since_s = self._loop.time()
        # When the server was asked to stop a statement.
        self._stopped_s = 0.0
        self._is_over = False
        # Once the proxy ends: the error for the client as soon as the session is at rest.
        self._farewell: StreamfromError | None = None
        self._may_finish = True
        self._commands: deque[CommandReceived] = deque()
        self._queued_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def close(self) -> list[asyncio.Task[None]]:
        """End: the client is gone, or has become another user.

        Return the tasks that make servers end the session's state there.
        """
        self._is_over = True
        # Backends first: their readers must not wake a task that is being cancelled.
        ending = self._executor.forget()
        self._streams.close()
        if self._task is not None:
            self._task.cancel()
        while self._commands:
            self._take_queued()
        self._release_large()
        self._dispatch.forget_statements()
        return ending

    # --- one after the other --------------------------------------------------------------

    def command_received(self, command: CommandReceived) -> None:
        """Carry a command out, or queue it after the running one."""
        # The usual case: a client waits for its answer before it sends again.
        if not (self.is_busy or self._commands or self._link.blocked):
            self._begin(command)
            return
        if self._streams.current is not None and command.payload[:1] == b"\x01":
            # COM_QUIT in the middle of a stream: the client is done with both.
            self._link.close()
            return
        try:
            self._memory.change(len(command.payload) + _QUEUED_COMMAND_BYTES)
        except StreamfromError as error:
            # Its place is after answers that are still to come.
            self._log.info("connection closed", reason=str(error))
            self._link.write(refusal(error, self._wire.capabilities))
            self._link.close()
            return
        self._commands.append(command)
        self._queued_bytes += len(command.payload)
        if self._queued_bytes > QUEUED_BYTES_MAX:
            # A client that sends ahead without end then fills its own socket, not our memory.
            self._link.pause_reading()

    def _begin(self, command: CommandReceived) -> None:
        payload, sequence, piece = command
        if (compression := self._wire.compression) is not None:
            compression.sequence = piece
        code = payload[0] if payload else 0
        if code in _UNANSWERED:
            self._unanswered(payload)
            return
        self._current = command
        if code not in _NO_QUESTIONS:
            self._tally.questions += 1
        self.is_busy = True
        self._since_s = self._loop.time()
        reply = self._reply = Reply(self._link, self._state, sequence)
        try:
            if len(payload) > _LARGE_BYTES:
                self._memory.change(len(payload))
                self._large_bytes = len(payload)
            if sequence == 1:
                if code == _QUERY:
                    if self._fast_path.send(payload[1:], reply, self._sent_over):
                        return
                elif code == _EXECUTE and self._fast_path.execute(
                    payload, reply, self._sent_over
                ):
                    return
        except Exception as error:  # noqa: BLE001 - `_run` answers it
            self._start(_refuse, error)
        else:
            self._start(self._dispatch.dispatch, payload, reply)

    def _unanswered(self, payload: bytes) -> None:
        try:
            self._dispatch.run_unanswered(payload)
        except WireError as error:
            self._log.info("connection closed", reason=str(error))
            self._link.close()

    def _start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        # The coroutine is made by the task: if it were cancelled before its first step, because
        # the client broke the protocol in the same turn of the loop, it would never be awaited.
        self._task = asyncio.create_task(self._run(work, *arguments))

    def _sent_over(self, outcome: Attempt | Exception | None) -> None:
        """Continue after a statement of the hot path; called from the backend's link.

        outcome: the attempt, or the error that kept it from being sent; None if the client is answered already.
        """
        if self._is_over:
            return
        try:
            again = outcome is not None and not self._executor.finish(outcome)
        except Exception as error:  # noqa: BLE001 - the one place that turns errors into packets
            self._answer_error(error)
            again = False
        if again:
            self._start(self._dispatch.dispatch, self._current.payload, self._reply)
        else:
            self._next()

    async def _run(
        self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
    ) -> None:
        try:
            await work(*arguments)
        except asyncio.CancelledError:
            if self._is_over:
                return
            raise
        except Exception as error:  # noqa: BLE001 - the one place that turns errors into packets
            self._answer_error(error)
        self._task = None
        if self._wire.phase is ConnectionPhase.INFILE:
            # The answer came before the file was sent, so the following packets cannot be distinguished.
            self._link.close()
        self._next()

    def _release_large(self) -> None:
        self._memory.change(-self._large_bytes)
        self._large_bytes = 0
        # The command is not needed any more, and up to 64 MB would stay with an idle client.
        self._current = _NOTHING

    def _next(self) -> None:
        self.is_busy = False
        if self._large_bytes:
            self._release_large()
        self._since_s = self._loop.time()
        if self._may_finish:
            self._go_on()
        if self._farewell is not None:
            self._leave_at_rest()

    def client_writable(self) -> None:
        """Continue after the client caught up."""
        self._executor.client_writable()
        self._go_on()
        stream = self._streams.current
        if stream is not None and stream.resume():
            self.context.registry.streams.ready(stream)

    def _go_on(self) -> None:
        """Carry out queued commands; none while the client does not read the answers."""
        while self._commands and not (self._is_over or self.is_busy or self._link.blocked):
            before = self._queued_bytes
            command = self._take_queued()
            if before > QUEUED_BYTES_MAX >= self._queued_bytes:
                self._link.resume_reading()
            self._begin(command)

    def _take_queued(self) -> CommandReceived:
        command = self._commands.popleft()
        self._queued_bytes -= len(command.payload)
        self._memory.change(-(len(command.payload) + _QUEUED_COMMAND_BYTES))
        return command

    def _answer_error(self, error: Exception) -> None:
        stopped = None if self._wire.phase is ConnectionPhase.CLOSED else self._reply.stopped
        if isinstance(error, BackendError) and error.code == INTERRUPTED and stopped:
            shown = stopped
        elif isinstance(error, StreamfromError):
            shown = error
        else:
            self._log.exception("internal error", exc_info=error)
            # With the id by which the log has the trace: the client's message reveals nothing of
            # our code.
            shown = InternalError(self.context.connection_id)
        if not isinstance(shown, BackendError):
            self._state.answered_at, self._state.diagnostics = None, diagnostics_of_error(shown)
        if not self._is_over and self._wire.phase is not ConnectionPhase.INFILE:
            self._reply.error(shown)
            if isinstance(error, ConnectionKilled | SessionLost | WireError) or (
                isinstance(error, ServerShutdown) and not self._in_transaction
            ):
                self._link.close()

    # --- requests from others --------------------------------------------------------------

    def interrupt(self, error: StreamfromError) -> list[asyncio.Task[None]]:
        """Stop the running statement: a stream ends with *error*, a statement with its server's own.

        Returns as `SessionConnections.interrupt`.
        """
        stream = self._streams.current
        if stream is None:
            self.context.large_texts.interrupt(error)
            return self._executor.interrupt()
        stream.end(error)
        return []

    def shut_down(self, error: StreamfromError) -> None:
        """End with *error* as soon as there is no work and no open transaction."""
        if self.is_streaming:
            self.interrupt(error)
        self._farewell = error
        self._leave_at_rest()

    def stop_work(self, error: StreamfromError) -> None:
        """End with *error* once the current statement is answered; stop it if that loses nothing."""
        self._may_finish = False
        if self.is_busy and not self.is_committing and self.interrupt(error):
            self._reply.stopped = error
        self.shut_down(error)

    def cut_off(self, error: StreamfromError) -> None:
        """Disconnect; *error* is the answer of a running statement, unless a part of its own answer has been sent."""
        current = self._executor.current
        is_begun = self.is_busy and (
            self._reply.sequence != self._current.sequence
            or (current is not None and current.has_written)
        )
        if not (self._link.closed or is_begun):
            if self.is_busy:
                self._reply.error(error)
            elif self._farewell is not None:
                self._tell(self._farewell)
        self._link.close()

    @property
    def is_committing(self) -> bool:
        """True while the current statement may commit, so that only its own answer is true."""
        if not self.is_busy:
            return False
        payload = self._current.payload
        if payload[:1] == b"\x03":
            shape = self.context.compiler.target.parse(payload[1:]).shape
        elif payload[:1] == b"\x17":
            prepared = self._dispatch.table.get(int.from_bytes(payload[1:5], "little"))
            if prepared is None:
                return False
            shape = prepared.original.shape
        else:
            return False
        return shape.kind not in _INTERRUPTIBLE or bool(shape.uses & Uses.MULTIPLE)

    def _leave_at_rest(self) -> None:
        is_at_rest = not (self.is_busy or self._link.closed)
        if self._may_finish:
            is_at_rest = is_at_rest and not (self._commands or self._in_transaction)
        if is_at_rest:
            assert self._farewell is not None
            self._tell(self._farewell)
            self._link.close()

    def _tell(self, error: StreamfromError) -> None:
        """Send an error that answers no command, as MySQL does before it disconnects."""
        self._link.write(refusal(error, self._wire.capabilities))

    @property
    def _in_transaction(self) -> bool:
        return self._executor.branches.in_transaction

    def keep_limits(self, now_s: float, limits: Server) -> None:
        """Stop a statement that takes too long, again if it continues; disconnect a client that is silent for too long."""
        if self._is_over or self._link.closed:
            return
        took_s = now_s - self._since_s
        if self.is_busy:
            limit_s = limits.statement_timeout_s
            if limit_s and took_s >= limit_s and not self.is_streaming:
                self._time_out(now_s)
            return
        # The sooner of the configuration's limit, where 0 is none, and SET wait_timeout.
        idle_s, own_s = limits.idle_timeout_s, self._state.settings.wait_timeout_s
        if own_s is not None and own_s < (idle_s or math.inf):
            if took_s >= own_s:
                self._idle_too_long("wait_timeout and interactive_timeout", is_own=True)
        elif idle_s and took_s >= idle_s:
            self._idle_too_long("idle_timeout")

    def _idle_too_long(self, setting: str, *, is_own: bool = False) -> None:
        if not (is_own and self._wire.is_mariadb):  # MariaDB sends nothing
            self._log.info("client idle for too long")
            self._tell(IdleTooLong(setting))
        self._link.close()

    def _time_out(self, now_s: float) -> None:
        # First a KILL QUERY, which keeps the session; a server that does not end by it loses
        # the connection.
        if self._reply.stopped is None:
            # A statement that waits for a connection or a shard has other limits.
            error = StatementTimedOut()
            if self.context.large_texts.interrupt(error) or self._executor.interrupt():
                self._reply.stopped = error
                self._stopped_s = now_s
                self._log.info("statement timed out")
        elif now_s - self._stopped_s >= STOP_S:
            self._executor.connections.break_off()

    def is_on(self, servers: Collection[ShardRuntime]) -> bool:
        """Return whether its statements go to one of *servers* unless they name another."""
        return self.context.compiler.target.here().is_on(servers)

    @property
    def is_streaming(self) -> bool:
        """True while a STREAM is open."""
        return self._streams.current is not None

    def thread_on(self, shard: ShardRuntime) -> int | None:
        """Return its connection id on *shard*, if it holds a connection there."""
        backend = self._executor.branches.held.get(shard)
        return None if backend is None else backend.thread_id

    def process(self) -> Process:
        """Return the line in SHOW PROCESSLIST."""
        view = self.context.compiler.target.view
        command, state, info = "Sleep", "", None
        if self.is_busy:
            payload = self._current.payload
            command = _COMMAND_NAMES.get(payload[0], "Query")
            state = "streaming" if self.is_streaming else "executing"
            info = payload[1:] if payload[0] == _QUERY else None
        elif self._executor.branches.in_transaction:
            state = "transaction open"
        elif self._executor.branches.held:
            state = "holds a connection"
        return Process(
            self.context.connection_id,
            self.context.user.name,
            self._link.endpoint,
            None if view is None else view.name,
            command,
            int(self._loop.time() - self._since_s),
            state,
            info,
        )


async def _refuse(error: Exception) -> None:
    raise error
