"""One client: its bytes, its login, and what happens when it vanishes.

A session owns a client's link. Bytes go through `wire.ServerConnection`, which turns them into
events. Login events are carried out here; commands go to `CommandLoop`, a new one for each login.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import structlog

from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.errors import (
    AccessDenied,
    AccountChanged,
    ConnectionMemoryExceeded,
    RoundedId,
    ServerShutdown,
)
from streamfrom.proxy.execution.executor import Executor
from streamfrom.proxy.execution.pending_effects import PendingEffects
from streamfrom.proxy.execution.session_connections import SessionConnections
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.execution.transaction import Branches
from streamfrom.proxy.fairness import next_turn
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.sessions.command_loop import CommandLoop
from streamfrom.proxy.sessions.dispatch import Dispatch
from streamfrom.proxy.sessions.login_gate import LoginGate
from streamfrom.proxy.sessions.process_list import ProcessList
from streamfrom.proxy.sql.compile.large_texts import LargeTexts
from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
from streamfrom.proxy.sql.session_context import SessionContext
from streamfrom.proxy.sql.session_rights import SessionRights
from streamfrom.proxy.sql.statement_runner import use
from streamfrom.proxy.wire.constants import (
    COMPRESSIONS,
    MARIADB_METADATA,
    PROXY_OFFER,
    UTF8MB4_CHARSET,
    Capability,
)
from streamfrom.proxy.wire.login.auth import Authenticated, Deferred
from streamfrom.proxy.wire.login.handshake import Greeting, offer_as, plugin_to_greet
from streamfrom.proxy.wire.server_connection import (
    Closed,
    CommandReceived,
    ConnectionPhase,
    InfileData,
    LoginAttempt,
    ServerConnection,
    TlsRequested,
)
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.passwords.verifier import Verifier
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.wire.compression import Compression
    from streamfrom.proxy.wire.login.handshake import LoginRequest
    from streamfrom.proxy.wire.server_connection import Event
    from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites


log = structlog.get_logger()


class Session:
    """One client connection."""

    work: CommandLoop  # the work of that user

    def __init__(self, services: Services, link: Link, connection_id: int) -> None:
        self.connection_id = connection_id  # the id in the client's greeting, which KILL takes
        self.user: User | None = None  # the user that is logged in, None before the login
        self.closed = asyncio.Event()  # set once the client's link is gone
        self._services = services
        # As it is offered to this client, whatever is reloaded meanwhile.
        self._tls = services.tls
        # Who the login that is under way began to log in as.
        self._account: Verifier | None = None
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._log = log.bind(connection=connection_id)
        self._login_gate = LoginGate(services, link)
        self._wire: ServerConnection
        link.on_blocked = self._unread
        self._process_list = ProcessList(services, self)
        self._compression: Compression | None = None
        self._memory = Memory(
            lambda: services.config.connection_memory_bytes, ConnectionMemoryExceeded
        )
        self._unread_bytes = 0
        self._goes_on = False
        self._is_over = False

    # --- called by the link ------------------------------------------------------------------

    def connection_made(self) -> None:
        """Greet, unless the client may not even try to log in."""
        services = self._services
        if not self._login_gate.admits():
            self._is_over = True
            return
        services.sessions[self.connection_id] = self
        tls = self._tls
        offer = PROXY_OFFER | COMPRESSIONS | (Capability.SSL if tls is not None else 0)
        if services.extends_metadata():
            offer |= MARIADB_METADATA
        version = services.server_version()
        greeting = Greeting(
            version,
            self.connection_id,
            services.nonce(),
            offer_as(version, offer),
            services.collation_id(),
            # Drivers use it when they put values into their first text.
            status=SessionState(0, services.charset_settings(UTF8MB4_CHARSET)).status,
            plugin=plugin_to_greet(version),
        )
        self._wire = ServerConnection(
            greeting,
            services.authenticator,
            host=self._link.peer,
            packet_bytes_max=services.config.max_allowed_packet_bytes,
            memory=self._memory,
            is_secure=self._link.is_unix,
            requires_tls=tls is not None and tls.requires_tls,
            lacks_certificate=lambda: (
                tls is not None and tls.wants_certificate and self._link.subject is None
            ),
        )
        self._login_gate.open()
        self._link.write(self._wire.data_to_send())

    def data_received(self, data: bytes) -> None:
        """Run the commands in *data*, or queue them after the running one."""
        if self._is_over:
            return
        for event in self._wire.receive_data(data):
            if self._link.closed:
                return
            if type(event) is CommandReceived:
                self.work.command_received(event)
            elif type(event) is InfileData:
                self.work.context.executor.file(event.payload)
            else:
                self._login_event(event)
        answer = self._wire.data_to_send()
        if answer:
            self._link.write(answer)
        if self._wire.holds_back and not self._goes_on:
            self._goes_on = True
            self._link.set_busy(on=True)
            next_turn().add_done_callback(self._go_on)

    def _go_on(self, _turn: object = None) -> None:
        """Continue with bytes that came before, once the command in front of them is settled."""
        if self._link.is_paused:
            self._link.on_resumed = self._go_on
            return
        self._goes_on = False
        self.data_received(b"")
        if not self._goes_on:
            self._link.set_busy(on=False)

    def _unread(self, waiting_bytes: int) -> None:
        """Count the bytes that the client does not read."""
        try:
            self._memory.change(waiting_bytes)
        except StreamfromError as error:
            self._log.info("connection closed", reason=str(error))
            self._link.abort()
        else:
            self._unread_bytes += waiting_bytes

    def resume_writing(self) -> None:
        """Continue after the client caught up."""
        self._memory.change(-self._unread_bytes)
        self._unread_bytes = 0
        if self.user is not None:
            self.work.client_writable()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up after a client that left, whatever it was doing."""
        self._services.sessions.pop(self.connection_id, None)
        self._login_gate.disconnected()
        self._is_over = True
        self.closed.set()
        if self._link.fault is not None:
            self._services.turned_away.info(
                "TLS failed", host=self._link.peer, reason=self._link.fault
            )
        if self.user is not None:
            self._log.debug("session closed")
            self.work.close()
        self._memory.belong_to(None)

    # --- login ----------------------------------------------------------------------------

    def _login_event(self, event: Event) -> None:
        match event:
            case TlsRequested(leftover):
                assert self._tls is not None
                self._wire.tls_started()
                self._link.start_tls(
                    self._tls.context, server_side=True, hostname=None, early=leftover
                )
            case LoginAttempt(_, is_change=True) if self.work.is_busy:
                # Its answer would come in the middle of a running one.
                self._log.info("connection closed", reason="COM_CHANGE_USER sent ahead")
                self._link.abort()
            case LoginAttempt(request):
                self._account = self._services.authenticator.account(request.user)
            case Deferred(is_costly):
                login = self._wire.login
                assert login is not None
                self._login_gate.judge(
                    login.user, self._wire.judge(), self._judged, is_costly=is_costly
                )
            case Closed(error):
                is_stranger = self.user is None
                # Guesses of passwords are slow (`auth_backoff`), and each has a line.
                is_guess = isinstance(error, AccessDenied)
                log = self._services.turned_away if is_stranger and not is_guess else self._log
                log.info(
                    "connection refused" if is_stranger else "connection closed",
                    host=self._link.peer,
                    reason=str(error),
                )
                self._login_gate.refused(error, self._wire.data_to_send())
            case _:
                pass

    async def _judged(self, events: list[Event]) -> None:
        """Continue after a proof was judged."""
        for event in events:
            if self._link.closed:
                return
            if isinstance(event, Authenticated):
                self._login_gate.proven(event.user)
                self._link.write(self._wire.data_to_send())
                await self._enter(event.user)
            else:
                self._login_event(event)
        # Includes packets that came behind the proof.
        self.data_received(b"")

    async def _enter(self, name: str) -> None:
        """Make the session of a login, or of COM_CHANGE_USER, which makes a new one."""
        ending = [] if self.user is None else self.work.close()
        if ending:
            # The servers end the former session's state there, above all its locks.
            await asyncio.wait(ending)
        try:
            user, context = await self._context_of(name)
        except StreamfromError as error:
            if not self._link.closed:
                self._login_gate.refuse(self._wire, error)
        else:
            if not self._link.closed:
                self._welcome(user, context)

    async def _context_of(self, name: str) -> tuple[User, SessionContext]:
        services, login = self._services, self._wire.login
        assert login is not None
        if services.is_stopping():
            raise ServerShutdown
        if services.authenticator.account(name) is not self._account:
            raise AccountChanged(name)  # since the proof was requested
        user = services.users[name]
        context = self._make_context(user, login)
        if self.user is not None:
            before = self.work.context.state
            context.state.multi_statements = before.multi_statements
        if login.database:
            await use(context.compiler.target, login.database)
        self._login_gate.check(user, self)
        return user, context

    def _make_context(self, user: User, login: LoginRequest) -> SessionContext:
        """Return the initial state of a session of *user*. COM_CHANGE_USER makes a new one, so nothing of the former user is left."""
        services, link, wire = self._services, self._link, self._wire

        def publish(shard: ShardRuntime, table: str, effects: list[Effect]) -> None:
            services.registry.committed(shard.keyspace, shard.name, table, effects)

        def hidden(shard: ShardRuntime) -> HiddenWrites:
            return services.registry.hidden_writes(shard.keyspace)

        def fault_of(shard: ShardRuntime, table: str, effect: Effect) -> RoundedId | None:
            if effect.kind is not EffectKind.ACK:
                return None
            given = [value for value in effect.ids or () if isinstance(value, int)]
            found = services.registry.here.find_rounded(shard.keyspace, table, given)
            return None if found is None else RoundedId(*found)

        state = SessionState(
            wire.capabilities,
            services.charset_settings(login.charset),
            account_of(user),
            time.monotonic(),
        )
        connections = SessionConnections(
            state,
            Branches(
                state,
                PendingEffects(publish, hidden),
                may_span_shards=services.config.transaction_mode != "single",
                coordinator=services.coordinator,
            ),
            failover_buffer_s=services.config.failover_buffer_s,
            spawn=services.spawn,
        )
        executor = Executor(state, connections)
        executor.on_file = wire.expect_infile
        executor.fault_of = fault_of
        catalog = services.catalog
        compiler = StatementCompiler(
            state, catalog, services.registry, services.cache, services.clock
        )
        return SessionContext(
            self.connection_id,
            state,
            link,
            wire,
            self._memory,
            connections,
            executor,
            user,
            link.peer,
            catalog,
            services.registry,
            SessionRights(
                services.rights, state, connections, services.registry, compiler.uncounted
            ),
            compiler,
            LargeTexts(services.readers),
            services.config,
            self._process_list,
            services.status,
        )

    def _welcome(self, user: User, context: SessionContext) -> None:
        self.user = user
        self._memory.belong_to(self._services.memory_of(user.name))
        dispatch = Dispatch(context, self._process_list)
        self.work = CommandLoop(context, dispatch, self._log, self._services)
        self._login_gate.logged_in()
        subject = {} if (found := self._link.subject) is None else {"subject": found}
        self._log.debug("session opened", user=user.name, host=self._link.peer, **subject)
        self._wire.accept(status=context.state.status)
        self._link.write(self._wire.data_to_send())
        if self._compression is None and self._wire.compression is not None:
            self._compression = self._wire.compression
            self._link.start_packing(self._compression.pack_whole)
        # Commands that came in the same segment as the login.
        self.data_received(b"")

    # --- requests from others --------------------------------------------------------------

    def cut_off(self, error: StreamfromError) -> None:
        """Disconnect now; send *error* first if the client waits for an answer."""
        if self.user is not None:
            self.work.cut_off(error)
        elif self._wire.phase in (
            ConnectionPhase.AUTHENTICATING,
            ConnectionPhase.JUDGING,
            ConnectionPhase.DECIDING,
        ):
            self._login_gate.refuse(self._wire, error)
        else:
            self._link.close()

    def end(self) -> None:
        """End the session now; its running statement is stopped."""
        self._link.abort()


SWEEP_S_MIN: Final = 0.02
# A client sets its wait_timeout in whole seconds.
SWEEP_S_MAX: Final = 1.0


async def keep_time_limits(services: Services) -> None:
    """Make all sessions keep the time limits of the current configuration, until cancelled.

    A timer for each command would cost every point SELECT more than a sweep costs in a second. So a limit is exceeded by at most a tenth of
    itself, or by SWEEP_S_MAX.
    """
    loop = asyncio.get_running_loop()
    while True:
        limit_s = services.config.statement_timeout_s or SWEEP_S_MAX * 10
        await asyncio.sleep(min(max(limit_s / 10, SWEEP_S_MIN), SWEEP_S_MAX))
        for session in list(services.sessions.values()):
            if session.user is not None:
                session.work.keep_limits(loop.time(), services.config)
