"""The composition root: builds every part of a proxy, starts it, stops it.

Start: each shard is queried once; a shard that is down is only logged. Message tables are discovered. Then the
listeners open. A stop closes these in reverse order, and lets clients finish (`Disconnection.drain`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import structlog

from streamfrom import __version__
from streamfrom.engine.clock import SystemClock
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.shell.watch import Watch
from streamfrom.proxy import listening, process
from streamfrom.proxy.addresses import AddressCounts
from streamfrom.proxy.app.config_reload import ConfigReload, has_admin, verifier_of
from streamfrom.proxy.app.disconnection import Disconnection
from streamfrom.proxy.app.membership import MemberNumber, Membership, take_number
from streamfrom.proxy.backends.charsets import Charsets
from streamfrom.proxy.backends.shard import MOVED, READ_ONLY, ShardRuntime
from streamfrom.proxy.backends.shard_servers import ShardServers
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.config.file import Config, SessionAccount, TransactionMode
from streamfrom.proxy.config.keyspaces import make_keyspace
from streamfrom.proxy.errors import ServerShutdown, UserMemoryExceeded
from streamfrom.proxy.log import name_member
from streamfrom.proxy.memory import users_memory
from streamfrom.proxy.net import Link
from streamfrom.proxy.process import NOBODY, ServiceManager
from streamfrom.proxy.rights.desk import RightsDesk
from streamfrom.proxy.sessions.connection_ids import ConnectionIds
from streamfrom.proxy.sessions.login_backoff import LoginBackoff
from streamfrom.proxy.sessions.login_work import LoginWork
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.sessions.services import Peer, Services, Tally
from streamfrom.proxy.sessions.session import Session, keep_time_limits
from streamfrom.proxy.sql.compile.catalog import Catalog
from streamfrom.proxy.sql.compile.large_texts import readers
from streamfrom.proxy.status.status_rows import MemberStatus
from streamfrom.proxy.status.status_source import StatusSource
from streamfrom.proxy.tls import ServerKey, ServerTls
from streamfrom.proxy.twophase.coordinator import Coordinator
from streamfrom.proxy.twophase.decisions import Decisions
from streamfrom.proxy.twophase.recovery import Recovery
from streamfrom.proxy.vschema_files import QueueSharding, VschemaFiles
from streamfrom.proxy.vtgate.inner_client import run_as
from streamfrom.proxy.wire.constants import NONCE_BYTES
from streamfrom.proxy.wire.login.auth import Authenticator, nonce_from
from streamfrom.proxy.wire.login.handshake import extends_metadata, version_to_greet
from streamfrom.proxy.workers.worker_seat import Parent, WorkerSeat
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.version_comments import server_version


if TYPE_CHECKING:
    import socket

    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.admin.admin_server import AdminServer
    from streamfrom.proxy.vtgate.message_service import MessageService


log = structlog.get_logger()

BACKLOG = 4096
# The version in greetings before any server was reached.
FALLBACK_VERSION = "8.0.36"


class Application:
    """One running proxy. Use it as an async context manager. Raises ConfigError if a certificate or a key cannot be used.

    hangup: setting this event reloads the configuration and the vschema files.
    hurry: setting this event makes a stop wait for no client.
    read_again: reads the configuration; without it a hangup reloads only the vschema files.
    seat: the place of this process among the workers that share the port; None for a process that serves the port exclusively.
    number: the name and number of this process in its fleet.
    manager: the service manager, which is notified of reloads.
    """

    def __init__(
        self,
        config: Config,
        hangup: asyncio.Event | None = None,
        hurry: asyncio.Event | None = None,
        read_again: Callable[[], Config] | None = None,
        seat: WorkerSeat | None = None,
        number: MemberNumber | None = None,
        manager: ServiceManager = NOBODY,
    ) -> None:
        server = config.server
        self._config = config
        self._hangup = hangup or asyncio.Event()
        self._hurry = hurry or asyncio.Event()
        self._read_again = read_again
        self._seat = seat
        self._manager = manager
        self._listeners: list[listening.Listener] = []
        self._unix: listening.UnixSocket | None = None  # only this process's
        self._background: set[asyncio.Task[None]] = set()
        # The wait for hangups, and the reloads they began.
        self._reloads: set[asyncio.Task[None]] = set()
        self._sessions: dict[int, Peer] = {}
        number = number or MemberNumber.drawn()
        # The number is part of each id: KILL finds the member of a session by it.
        self._connection_ids = ConnectionIds(number.number, int.from_bytes(os.urandom(4)))
        self._started = time.monotonic()
        self._stopped = False
        self._admin: AdminServer | None = None
        self._message_service: MessageService | None = None
        self._servers = ShardServers(config, self._shard_changed)
        # The runtimes of the shards' primaries, by the names of keyspace and shard.
        self.shards = self._servers.primaries
        keyspaces = [make_keyspace(keyspace) for keyspace in config.keyspaces]
        clock = SystemClock()
        self._membership = Membership(config, self.shards, number)
        fleet = self._fleet = self._membership.fleet
        store = ShardStore(self.shards, clock, fleet.elector)
        self._registry = Registry(
            keyspaces,
            store,
            clock=clock,
            reload_interval_s=server.schema_reload_s,
            stream_grace_s=server.stream_grace_s,
            may_send=fleet.may_send,
            member=self._connection_ids.member,
        )
        coordinator: Coordinator | None = None
        self._recovery: Recovery | None = None
        if server.transaction_mode is TransactionMode.TWOPC:
            decisions = Decisions(lambda: os.urandom(8).hex())
            coordinator = Coordinator(
                decisions,
                clock,
                patience_s=server.failover_buffer_s,
                new_number=lambda: os.urandom(16).hex(),
            )
            self._recovery = Recovery(
                self.shards.values(),
                decisions,
                coordinator,
                grace_s=server.recovery_grace_s,
            )
        self._charsets = Charsets()
        tls = None if server.tls is None else ServerTls(server.tls)
        if tls is not None:
            tls.warn()
        users = {user.name: user for user in config.accounts}
        rsa_key = ServerKey()
        catalog = Catalog(
            keyspaces, self._servers.primaries, self._registry, self._servers.replicas
        )
        registry = self._registry
        queue_sharding = QueueSharding(
            keyspaces, registry.tables, registry.column_types, catalog.replace
        )
        rights = RightsDesk(lambda: self.services.config.stream_grace_s, self._spawn)
        registry.tables_changed += queue_sharding.tables_changed, rights.tables_changed

        def vschema_changed(keyspace: Keyspace) -> None:
            registry.vschema_changed(keyspace)
            queue_sharding.vschema_changed(keyspace)

        self._vschemas_asked = asyncio.Event()
        self._vschema_files = VschemaFiles(
            config.keyspaces, self._vschemas_asked, vschema_changed
        )
        # The parts that all sessions share, and the connected clients.
        self.services = Services(
            config=server,
            users=users,
            has_admin=has_admin(users),
            loopback_only=not config.users,
            authenticator=Authenticator(
                {name: verifier_of(user) for name, user in users.items()},
                _nonce,
                decoy_seed=os.urandom(NONCE_BYTES),
                rsa_key=rsa_key,
                certificate_sha256=None if tls is None else tls.certificate_sha256,
            ),
            tls=tls,
            server_version=self._server_version,
            collation_id=lambda: self._charsets.greeted,
            extends_metadata=self._extends_metadata,
            catalog=catalog,
            registry=self._registry,
            rights=rights,
            cache=StatementCache(
                server=lambda: server_version(self._server_version()),
                tokens_max=server.max_statement_tokens,
            ),
            clock=clock,
            charset_settings=self._charsets.settings,
            sessions=self._sessions,
            is_stopping=lambda: self._stopped,
            uptime_s=lambda: time.monotonic() - self._started,
            tally=Tally(),
            status=StatusSource(
                Watch(self._registry, store, clock),
                self._registry,
                clock,
                self.shards,
                self._member,
                fleet.may_send,
            ),
            nonce=_nonce,
            backoff=LoginBackoff(server.auth_backoff_s),
            memory_of=users_memory(
                lambda: self.services.config.user_memory_bytes, UserMemoryExceeded
            ),
            work=LoginWork(),
            connected=AddressCounts(),
            strangers=AddressCounts(),
            coordinator=coordinator,
            readers=readers(),
            spawn=self._spawn,
        )
        self._membership.serve(self.services.status, LocalSessions(self._sessions))
        self.services.members = self._membership
        self._disconnection = Disconnection(self._sessions, self._hurry)
        self._config_reload = ConfigReload(
            config,
            self.services,
            self._servers,
            self._membership,
            self._vschema_files,
            queue_sharding,
            self._recovery,
            self._disconnection,
            rsa_key,
        )

    # --- life -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start; returns once clients can connect."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop; returns once everything has ended."""
        await self.stop()

    async def _start(self) -> None:
        server = self._config.server
        if self.services.loopback_only:
            log.warning(
                "no [[users]] in the configuration: only this machine may connect,"
                " as root with an empty password"
            )
        if server.tls is not None and server.tls.client_ca and not server.tls.require:
            log.warning(
                "server.tls.client_ca without server.tls.require: clients without TLS need no"
                " certificate"
            )
        await asyncio.gather(
            self._config_reload.prepare(self._config),
            *(runtime.start() for runtime in self._servers),
        )
        await self._membership.start(self._registry)
        await self._registry.start()
        if self._recovery is not None:
            await self._recovery.start()
        # Last, so that clients find shards that were queried, and known tables.
        shares_port = self._seat is not None
        tcp = listening.bind_tcp(
            "server.listen", server.host, server.port, shares_port=shares_port
        )
        self._listen("mysql", tcp)
        if server.unix_socket:
            if self._seat is None:
                path, mode = server.unix_socket, server.unix_socket_mode
                self._unix = listening.bind_unix(path, mode=mode)
                bound = self._unix.socket
            else:
                bound = self._seat.unix_socket()
            self._listen("mysql, by the Unix socket", [bound])
        self._spawn(self._vschema_files.watch())
        self._spawn(keep_time_limits(self.services))
        self._reloads.add(self._spawn(self._hangups()))
        await self._start_admin()
        await self._start_message_service()
        log.info("listening", host=server.host, port=self.port, socket=server.unix_socket)
        shared = [u.name for u in self._config.users if u.account is SessionAccount.SHARED]
        if shared:
            log.info(
                'users with account = "shared" may do all that the shards\' accounts may',
                users=shared,
            )

    async def stop(self) -> None:
        """Stop gracefully; may be called twice."""
        if self._stopped:
            return
        self._stopped = True
        for listener in self._listeners:
            listener.close()
        # From here on no keyspace is added or removed.
        for task in self._reloads:
            task.cancel()
        if self._reloads:
            await asyncio.wait(self._reloads)
        if self._message_service is not None:
            await self._message_service.drain()
        if self._unix is not None:
            self._unix.remove()
        if self._fleet.members():
            # Clients of other members must not wait until those of this process have finished.
            self._registry.here.end_streams(ServerShutdown())
            await self._registry.here.hand_over(self.services.config.shutdown_grace_s)
            await self._fleet.stop()
        await self._disconnection.drain(self._registry, self.services.config)
        if self._message_service is not None:
            await self._message_service.stop()
        if self._admin is not None:
            await self._admin.stop()
        await self._membership.stop()
        for task in list(self._background):
            task.cancel()
        if self._recovery is not None:
            await self._recovery.stop()
        await asyncio.gather(*(runtime.stop() for runtime in self._servers))
        self.services.readers.shutdown(wait=False, cancel_futures=True)
        log.info("stopped")

    async def _hangups(self) -> None:
        while True:
            await self._hangup.wait()
            self._hangup.clear()
            self._manager.reloading()
            if self._read_again is not None:
                # A reload that fails by a fault of ours is logged, and does not end this loop.
                reload = self._spawn(self._config_reload.reload(self._read_again))
                self._reloads.add(reload)
                await asyncio.wait([reload])
                self._reloads.discard(reload)
            self._vschemas_asked.set()
            self._manager.ready()

    @property
    def member(self) -> str:
        """The id of this process in its fleet."""
        return self._membership.member.id

    @property
    def port(self) -> int:
        """The TCP port, even if the configuration has 0."""
        port: int = self._listeners[0].sockets[0].getsockname()[1]
        return port

    # --- parts ----------------------------------------------------------------------------

    def _listen(self, name: str, bound: Sequence[socket.socket]) -> None:
        listener = listening.Listener(name, bound, lambda: Link(self._accept), backlog=BACKLOG)
        self._listeners.append(listener)

    def _accept(self, link: Link) -> Session:
        return self._accept_with(self.services, link)

    def _accept_with(self, services: Services, link: Link) -> Session:
        return Session(services, link, self._connection_ids.allocate(self._sessions))

    async def _start_admin(self) -> None:
        """Serve metrics and health by HTTP, if the configuration says so."""
        if self._config.admin is None:
            return
        # Its libraries take a fifth of a second to load, and only their users wait for it.
        from streamfrom.proxy.admin.admin_server import AdminServer

        host, port = self._config.admin
        self._admin = AdminServer(
            self.services, partial(run_as, self.services, self._accept_with)
        )
        await self._admin.start(host, port)
        scheme = "http" if self.services.tls is None else "https"
        log.info("admin", host=host, address=f"{scheme}://{host}:{self._admin.port}/metrics")

    async def _start_message_service(self) -> None:
        """Serve Vitess's message API, if the configuration says so."""
        if self._config.grpc is None:
            return
        # Health and reflection take a tenth of a second to load.
        from streamfrom.proxy.vtgate.message_service import MessageService

        host, port = self._config.grpc
        self._message_service = MessageService(
            self._accept,
            self._registry.keyspace_of,
            self.services.tls,
            self._config.server.max_allowed_packet_bytes,
            shares_port=self._seat is not None,
        )
        await self._message_service.start(host, port)
        log.info("grpc", host=host, address=f"{host}:{self._message_service.port}")

    def _member(self) -> MemberStatus:
        """Return this process's own report."""
        tls = self.services.tls
        return MemberStatus(
            member=self.member,
            version=__version__,
            uptime_s=self.services.uptime_s(),
            connections=len(self._sessions),
            streams=self._registry.here.receivers,
            questions=self.services.tally.questions,
            is_stopping=self._stopped,
            connections_max=self.services.config.max_connections,
            certificate_expires_s=(
                None if tls is None else tls.certificate.not_valid_after_utc.timestamp()
            ),
            address=self._membership.member.address,
            clock_unix_s=self.services.clock.time_ns() / 10**9,
            dispatches=tuple(
                f"{keyspace}/{shard}"
                for keyspace, shard in self.shards
                if self._fleet.may_send(keyspace, shard)
            ),
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background_done)
        return task

    def _background_done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            trace = None if isinstance(error, StreamfromError) else error
            log.warning("background work failed", reason=str(error), exc_info=trace)

    def _shard_changed(self, shard: ShardRuntime) -> None:
        self._registry.here.shard_checked(shard.keyspace, shard.name, shard.trouble)
        if shard.trouble is None:
            # Only a server that can be reached shows which collations it has.
            self._spawn(self._charsets.learn(shard.control))
        elif elector := self._fleet.elector(shard.keyspace, shard.name):
            if shard.trouble == READ_ONLY:
                elector.turned_read_only()
            elif shard.trouble == MOVED:
                elector.moved(MOVED)
            else:
                elector.unreachable(shard.trouble)

    def _server_version(self) -> str:
        versions = (shard.version for shard in self.shards.values() if shard.version)
        return version_to_greet(next(versions, FALLBACK_VERSION))

    def _extends_metadata(self) -> bool:
        versions = [runtime.version for runtime in self._servers if runtime.version]
        return bool(versions) and all(map(extends_metadata, versions))


def _nonce() -> bytes:
    return nonce_from(os.urandom(NONCE_BYTES))


async def run(
    config: Config,
    stop: asyncio.Event,
    hangup: asyncio.Event,
    hurry: asyncio.Event,
    read_again: Callable[[], Config],
    seat: WorkerSeat | None = None,
    manager: ServiceManager = NOBODY,
) -> None:
    """Run a proxy until *stop* is set; *hangup* reloads its files, by *read_again*.

    hurry: setting this event makes a stop wait for no client.
    seat: as in `Application`. With a seat the parent process sets *stop* and *hurry* as well.
    manager: the service manager, which is notified when clients are served.
    """
    parent = None if seat is None else Parent(seat, stop, hurry)
    try:
        number = await take_number(config, stop)
        application = Application(config, hangup, hurry, read_again, seat, number, manager)
        name_member(application.member)
        async with application:
            process.prepare(config)
            if parent is not None:
                parent.tell_ready()
            manager.ready()
            await stop.wait()
    finally:
        if parent is not None:
            parent.close()
    process.leave()
