"""One client: login, commands one at a time, and what happens when it vanishes.

A session owns a client's link. Bytes go through `wire.ServerConnection`, which turns them into
events; commands run in order, one at a time, however many the client sent ahead. Every failure
becomes an ERR packet in one place (`_answer_error`): a `StreamfromError` with its own code,
anything else as `internal error` with the connection id, logged once with its trace.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from proxy.answers.processlist import Process
from proxy.config.file import Role
from proxy.errors import (
    BackendError,
    IdleTooLong,
    InternalError,
    NoClientCharset,
    ServerShutdown,
    SessionLost,
    StatementTimedOut,
    UnknownDatabase,
    WireError,
)
from proxy.sessions.dispatch import Dispatch
from proxy.sessions.entrance import Entrance
from proxy.sessions.neighbours import use
from proxy.sessions.parts import Parts, assemble
from proxy.sessions.peers import Peers
from proxy.sessions.reply import INTERRUPTED, Reply
from proxy.wire.auth import Authenticated
from proxy.wire.constants import COMPRESSIONS, PROXY_OFFER, Capability, Command
from proxy.wire.handshake import Greeting, offer_as, plugin_to_greet
from proxy.wire.server_connection import (
    Closed,
    CommandReceived,
    InfileData,
    Limits,
    LoginAttempt,
    Phase,
    ServerConnection,
    TlsRequested,
    refusal as wire_refusal,
)
from sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from proxy.backends.shard import ShardRuntime
    from proxy.config.file import User
    from proxy.net import Link
    from proxy.sessions.direct import DirectPath
    from proxy.sessions.preparation import Step
    from proxy.sessions.relay import Relay
    from proxy.sessions.services import Services
    from proxy.sessions.state import SessionState
    from proxy.wire.compression import Compression
    from proxy.wire.server_connection import Event


log = structlog.get_logger()

# A client may send commands ahead. Beyond this it is not read from until they are done.
QUEUED_BYTES_MAX: Final = 1 << 20

# How long a server may take to stop what it was told to stop.
STOP_S: Final = 5.0

_QUERY: Final = int(Command.QUERY)
_EXECUTE: Final = int(Command.STMT_EXECUTE)
_COMMAND_NAMES: Final = {
    int(Command.STMT_PREPARE): "Prepare",
    int(Command.STMT_EXECUTE): "Execute",
    int(Command.STMT_BULK_EXECUTE): "Execute",
    int(Command.STMT_FETCH): "Fetch",
}
_UNANSWERED: Final = frozenset({Command.STMT_CLOSE, Command.STMT_SEND_LONG_DATA})


class Session:
    """One client connection.

    Attributes:
        connection_id: what the client was told, and what KILL names.
        user: who is logged in, None before that.
        closed: set once the client's link is gone.
    """

    def __init__(self, services: Services, link: Link, connection_id: int) -> None:
        self.connection_id = connection_id
        self.user: User | None = None
        self.closed = asyncio.Event()
        self._services = services
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._log = log.bind(connection=connection_id)
        self._entrance = Entrance(services, link)
        self._wire: ServerConnection
        self._peers = Peers(services, self)
        self._parts: Parts
        self._dispatch: Dispatch
        self._state: SessionState
        self._direct: DirectPath
        self._current: CommandReceived
        self._takes_hot_path = False
        self._compression: Compression | None = None
        self._unpacks_more = False
        self._reply: Reply
        self._is_busy = False
        # When what it does now began, in the loop's time.
        self._since_s = self._loop.time()
        # When the server was told to stop a statement.
        self._stopped_s = 0.0
        self._is_over = False
        self._is_closing = False
        self._commands: deque[CommandReceived] = deque()
        self._queued_bytes = 0
        self._task: asyncio.Task[None] | None = None
        # After SET wait_timeout: when the silence has lasted too long.
        self._silence: asyncio.TimerHandle | None = None

    # --- what the link calls --------------------------------------------------------------

    def connected(self) -> None:
        """Greet, unless the client may not even try to log in."""
        services = self._services
        refusal = self._entrance.refusal()
        if refusal is not None:
            self._is_over = True
            self._link.write(wire_refusal(refusal))
            self._link.close()
            return
        services.sessions[self.connection_id] = self
        offer = PROXY_OFFER | COMPRESSIONS | (Capability.SSL if services.tls is not None else 0)
        version = services.server_version()
        greeting = Greeting(
            version,
            self.connection_id,
            services.nonce(),
            offer_as(version, offer),
            plugin=plugin_to_greet(version),
        )
        self._wire = ServerConnection(
            greeting,
            services.authenticator,
            host=self._link.peer,
            limits=Limits(packet_bytes_max=services.config.max_allowed_packet_bytes),
            is_secure=self._link.is_unix,
            requires_tls=services.config.tls is not None and services.config.tls.require,
        )
        self._entrance.open(self._login_timed_out)
        self._link.write(self._wire.data_to_send())

    def received(self, data: bytes) -> None:
        """Run what the bytes ask for, or queue it behind what is running."""
        if self._is_over:
            return
        for event in self._wire.receive(data):
            if self._link.closed:
                return
            if type(event) is CommandReceived:
                self._command(event)
            elif type(event) is InfileData:
                self._parts.executor.file(event.payload)
            else:
                self._login_event(event)
        answer = self._wire.data_to_send()
        if answer:
            self._link.write(answer)
        if self._compression is not None and self._wire.holds_back and not self._unpacks_more:
            self._unpacks_more = True
            self._loop.call_soon(self._unpack_more)

    def _unpack_more(self) -> None:
        """Go on with compressed bytes, once what the first of them became is settled."""
        if self._link.is_paused:
            self._link.on_resumed = self._unpack_more
            return
        self._unpacks_more = False
        self.received(b"")

    def writable(self) -> None:
        """Go on after the client caught up."""
        if self.user is None:
            return
        self._parts.executor.client_writable()
        stream = self._parts.streams.current
        if stream is not None and stream.resume():
            self._services.registry.ready(stream)

    def lost(self, error: Exception | None) -> None:
        """Clean up after a client that left, in whatever it was doing."""
        self._services.sessions.pop(self.connection_id, None)
        self._entrance.leave()
        self._is_over = True
        self.closed.set()
        if self._silence is not None:
            self._silence.cancel()
        if self.user is None:
            return
        self._log.info("session closed")
        # Backends first: their readers must not find a task to wake that is being cancelled.
        self._parts.executor.forget()
        if self._task is not None:
            self._task.cancel()

    # --- login ----------------------------------------------------------------------------

    def _login_event(self, event: Event) -> None:
        match event:
            case TlsRequested(leftover):
                assert self._services.tls is not None
                self._wire.tls_started()
                self._link.start_tls(
                    self._services.tls, server_side=True, hostname=None, early=leftover
                )
            case LoginAttempt(_, is_change=True) if self._is_busy:
                # It would be answered in the middle of what is running.
                self._log.info("connection closed", reason="COM_CHANGE_USER sent ahead")
                self._link.abort()
            case Authenticated(name):
                answer = self._wire.data_to_send()
                self._entrance.proven(name, answer, partial(self._logged_in, name))
            case Closed(error):
                what = "connection refused" if self.user is None else "connection closed"
                self._log.info(what, host=self._link.peer, reason=str(error))
                self._entrance.refused(error, self._wire.data_to_send(), self._link.close)
            case _:
                pass

    def _logged_in(self, name: str) -> None:
        """Make the session of a login, or of COM_CHANGE_USER, which makes a new one."""
        if self.user is not None:
            self._parts.executor.forget()
        services = self._services
        login = self._wire.login
        assert login is not None
        user = services.users[name]
        try:
            parts = assemble(
                services,
                self._link,
                self._wire,
                user,
                self.connection_id,
                kill=self._peers.kill,
                processes=self._peers.processes,
                holders=self._peers.holders,
            )
        except NoClientCharset as error:
            self._refuse(error)
            return
        try:
            self._entrance.check(user, self)
            if login.database:
                parts.preparation.use(login.database)
        except UnknownDatabase:
            # Perhaps a server has it beside a keyspace.
            self._task = asyncio.create_task(self._enter(user, parts, login.database or ""))
        except StreamfromError as error:
            self._refuse(error)
        else:
            self._welcome(user, parts)

    async def _enter(self, user: User, parts: Parts, database: str) -> None:
        """End a login that names a database which is no keyspace."""
        try:
            await use(parts.preparation, database)
            self._entrance.check(user, self)
        except StreamfromError as error:
            if not self._is_over:
                self._refuse(error)
        else:
            if not self._is_over:
                self._welcome(user, parts)

    def _refuse(self, error: StreamfromError) -> None:
        self._wire.refuse(error)
        self._link.write(self._wire.data_to_send())
        self._link.close()

    def _welcome(self, user: User, parts: Parts) -> None:
        self.user = user
        self._parts, self._state, self._direct = parts, parts.state, parts.direct
        self._dispatch = Dispatch(parts, self._link, self._peers)
        self._takes_hot_path = user.role is not Role.READONLY
        self._entrance.leave()
        self._log.info("session opened", user=user.name, host=self._link.peer)
        self._wire.accept(status=parts.state.status)
        self._link.write(self._wire.data_to_send())
        if self._compression is None and self._wire.compression is not None:
            self._compression = self._wire.compression
            self._link.start_packing(self._compression.pack_whole)
        # Commands that came in the same segment as the login.
        self.received(b"")

    def _login_timed_out(self) -> None:
        self._log.info("login timed out", host=self._link.peer)
        self._link.abort()

    # --- commands, one at a time ----------------------------------------------------------

    def _command(self, command: CommandReceived) -> None:
        if not self._is_busy:
            self._begin(command)
            return
        if self._parts.streams.current is not None and command.payload[:1] == b"\x01":
            # COM_QUIT in the middle of a stream: the client is done with both.
            self._link.close()
            return
        self._commands.append(command)
        self._queued_bytes += len(command.payload)
        if self._queued_bytes > QUEUED_BYTES_MAX:
            self._link.pause_reading()

    def _begin(self, command: CommandReceived) -> None:
        payload, sequence, piece = self._current = command
        if self._compression is not None:
            self._compression.sequence = piece
        code = payload[0] if payload else 0
        if code in _UNANSWERED:
            self._unanswered(payload)
            return
        self._is_busy = True
        self._since_s = self._loop.time()
        reply = self._reply = Reply(self._link, self._state, sequence)
        if self._takes_hot_path and sequence == 1:
            if code == _QUERY:
                if self._direct.send(payload[1:], reply, self._direct_done):
                    return
            elif code == _EXECUTE and self._direct.execute(payload, reply, self._direct_done):
                return
        self._start(command)

    def _unanswered(self, payload: bytes) -> None:
        try:
            self._dispatch.run_unanswered(payload)
        except WireError as error:
            self._log.info("connection closed", reason=str(error))
            self._link.close()

    def _start(self, command: CommandReceived) -> None:
        self._task = asyncio.create_task(self._run(command))

    def _direct_done(self, relay: Relay, shard: ShardRuntime, step: Step) -> None:
        """End of a statement on the hot path; called from the backend's link."""
        if self._is_over:
            return
        try:
            again = not self._direct.finish(relay, shard, step, self._reply)
        except Exception as error:  # noqa: BLE001 - the one place that turns errors into packets
            self._answer_error(error)
            again = False
        if again:
            self._start(CommandReceived(self._current.payload, self._reply.sequence))
        else:
            self._next()

    async def _run(self, command: CommandReceived) -> None:
        try:
            await self._dispatch.run(command.payload, self._reply)
        except asyncio.CancelledError:
            if self._is_over:
                return
            raise
        except Exception as error:  # noqa: BLE001 - the one place that turns errors into packets
            self._answer_error(error)
        self._task = None
        if self._wire.phase is Phase.INFILE:
            # The answer came before the file was sent: what follows cannot be told apart.
            self._link.close()
        self._next()

    def _next(self) -> None:
        self._is_busy = False
        self._since_s = self._loop.time()
        if self._is_closing:
            self._link.close()
            return
        while self._commands and not (self._is_over or self._is_busy):
            command = self._commands.popleft()
            before, self._queued_bytes = (
                self._queued_bytes,
                self._queued_bytes - len(command.payload),
            )
            if before > QUEUED_BYTES_MAX >= self._queued_bytes:
                self._link.resume_reading()
            self._begin(command)
        limit_s = self._state.settings.wait_timeout_s
        if limit_s is not None and not (self._is_over or self._is_busy):
            if self._silence is not None:
                self._silence.cancel()
            self._silence = self._loop.call_later(limit_s, self._was_silent, self._since_s)

    def _was_silent(self, since_s: float) -> None:
        if since_s == self._since_s and not (self._is_over or self._is_busy):
            self.leave_idle("wait_timeout and interactive_timeout")

    def _answer_error(self, error: Exception) -> None:
        stopped = None if self._wire.phase is Phase.CLOSED else self._reply.stopped
        if isinstance(error, BackendError) and error.code == INTERRUPTED and stopped:
            shown = stopped
        elif isinstance(error, StreamfromError):
            shown = error
        else:
            self._log.exception("internal error", exc_info=error)
            shown = InternalError(self.connection_id)
        if not self._is_over and self._wire.phase is not Phase.INFILE:
            self._reply.error(shown)
            if isinstance(error, SessionLost | ServerShutdown | WireError):
                self._link.close()

    # --- what others ask of this session --------------------------------------------------

    def interrupt(self, error: StreamfromError) -> None:
        """Stop what is running: a stream ends with *error*, a statement with its server's own."""
        if self.user is None:
            return
        stream = self._parts.streams.current
        if stream is not None:
            stream.end(error)
        else:
            self._parts.executor.interrupt()

    def shut_down(self, error: StreamfromError) -> None:
        """End the session soon: a stream with *error*, a statement when it is done, else now."""
        if self.is_streaming:
            self.interrupt(error)
        elif self._is_busy:
            self._is_closing = True
        else:
            self._link.close()

    def end(self) -> None:
        """End the session now; what it runs is stopped."""
        self._link.abort()

    def times(self, now_s: float) -> tuple[float, float]:
        """Return for how long a statement has been running, and the client been silent."""
        if self.user is None or self.is_streaming:
            return 0.0, 0.0
        since_s = now_s - self._since_s
        return (since_s, 0.0) if self._is_busy else (0.0, since_s)

    def time_out(self, now_s: float) -> None:
        """Stop the statement, which takes too long; once more if it goes on nevertheless."""
        if self._reply.stopped is None:
            # What waits for a connection or a shard has limits of its own.
            if self._parts.executor.interrupt():
                self._reply.stopped = StatementTimedOut()
                self._stopped_s = now_s
                self._log.info("statement timed out")
        elif now_s - self._stopped_s >= STOP_S:
            self._parts.executor.break_off()

    def leave_idle(self, setting: str = "idle_timeout") -> None:
        """End the session of a client that said nothing for longer than *setting* allows."""
        self._log.info("client idle for too long")
        self._link.write(wire_refusal(IdleTooLong(setting), self._wire.capabilities))
        self._link.close()

    @property
    def is_streaming(self) -> bool:
        """True while a STREAM is open."""
        return self.user is not None and self._parts.streams.current is not None

    def thread_on(self, shard: ShardRuntime) -> int | None:
        """Return the id that *shard* knows this session by, if it holds a connection there."""
        if self.user is None:
            return None
        backend = self._parts.executor.branches.held.get(shard)
        return None if backend is None else backend.thread_id

    def process(self) -> Process | None:
        """Return this session's line in SHOW PROCESSLIST, None before it has logged in."""
        if self.user is None:
            return None
        view = self._parts.preparation.view
        command, state, info = "Sleep", "", None
        if self._is_busy:
            payload = self._current.payload
            command = _COMMAND_NAMES.get(payload[0], "Query")
            state = "streaming" if self.is_streaming else "executing"
            info = payload[1:] if payload[0] == _QUERY else None
        return Process(
            self.connection_id,
            self.user.name,
            self._link.peer,
            None if view is None else view.name,
            command,
            int(self._loop.time() - self._since_s),
            state,
            info,
        )
