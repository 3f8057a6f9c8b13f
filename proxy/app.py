"""The composition root: builds every part of a proxy, starts it, stops it.

Start: shards are asked once (one that is down is only logged), message tables are discovered,
then the listeners open. Stop is the same backwards, and lets people finish (`Application._drain`).
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import structlog

from streamfrom.engine.messaging.clock import SystemClock
from streamfrom.engine.messaging.registry import Registry
from streamfrom.proxy import net, process
from streamfrom.proxy.accounts.grant_discovery import ask
from streamfrom.proxy.backends.charsets import Charsets
from streamfrom.proxy.backends.health import ReplicaHealth
from streamfrom.proxy.backends.shard import ShardRuntime, readonly_of, replicas_of
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.config.changes import changes
from streamfrom.proxy.config.file import Role, TransactionMode, User
from streamfrom.proxy.config.keyspaces import make_keyspace
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import (
    AccountChanged,
    ServerShutdown,
    ShutdownUnanswered,
    UserMemoryExceeded,
)
from streamfrom.proxy.memory import users_memory
from streamfrom.proxy.reload import VschemaFiles
from streamfrom.proxy.report import Level
from streamfrom.proxy.rsa import ServerKey
from streamfrom.proxy.sessions.addresses import Addresses
from streamfrom.proxy.sessions.connection_ids import ConnectionIds
from streamfrom.proxy.sessions.login_backoff import LoginBackoff
from streamfrom.proxy.sessions.login_work import LoginWork
from streamfrom.proxy.sessions.services import Peer, Services, Tally
from streamfrom.proxy.sessions.session import Session
from streamfrom.proxy.sessions.statement_timeout import StatementTimeout
from streamfrom.proxy.sql.catalog import Catalog, Catalogs
from streamfrom.proxy.sql.large_texts import readers
from streamfrom.proxy.tls import ServerTls
from streamfrom.proxy.twophase.coordinator import Coordinator
from streamfrom.proxy.twophase.decisions import Decisions
from streamfrom.proxy.twophase.recovery import Recovery
from streamfrom.proxy.wire.auth import Account, Authenticator, Verifier, nonce_from
from streamfrom.proxy.wire.handshake import extends_metadata
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.version_comments import server_version


if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.config.changes import Changes
    from streamfrom.proxy.config.file import Config, Server
    from streamfrom.proxy.net import Link


log = structlog.get_logger()

BACKLOG = 4096
NONCE_BYTES = 20
FALLBACK_VERSION = "8.0.36"

# How long a stop waits for a statement that it has had its server stop, and then for clients to
# take their last answer.
INTERRUPT_S = 1.0


class Application:
    """One running proxy. Use it as an async context manager.

    hangup: when it is set, the configuration and the vschema files are read again.
    hurry: when it is set, a stop waits for nobody any more.
    read_again: reads the configuration; without it a hangup concerns the vschema files alone.

    Attributes:
        shards: the servers of each shard's primary, by the names of keyspace and shard.
        services: what all sessions share, and who is connected.

    Raises:
        ConfigError: a certificate or a key cannot be used.
    """

    def __init__(
        self,
        config: Config,
        hangup: asyncio.Event | None = None,
        hurry: asyncio.Event | None = None,
        read_again: Callable[[], Config] | None = None,
    ) -> None:
        self._config = config
        self._hangup = hangup or asyncio.Event()
        self._hurry = hurry or asyncio.Event()
        self._read_again = read_again
        self._servers: list[asyncio.Server] = []
        self._background: set[asyncio.Task[None]] = set()
        self._sessions: dict[int, Peer] = {}
        self._connection_ids = ConnectionIds(int.from_bytes(os.urandom(4)))
        self._started = time.monotonic()
        self._stopped = False
        self.shards: dict[tuple[str, str], ShardRuntime] = {
            (keyspace.name, shard.name): ShardRuntime(
                keyspace.name,
                shard,
                pool_timeout_s=config.server.pool_timeout_s,
                on_change=self._shard_changed,
            )
            for keyspace in config.keyspaces
            for shard in keyspace.shards
        }
        self._replica_health = ReplicaHealth(config.server.replica_max_lag_s)
        self._replicas = {
            (keyspace.name, shard.name): replicas_of(
                keyspace.name,
                shard,
                pool_timeout_s=config.server.pool_timeout_s,
                health=self._replica_health,
            )
            for keyspace in config.keyspaces
            for shard in keyspace.shards
        }
        # The same servers by their readonly accounts, where they have one.
        self._readonly_shards: dict[tuple[str, str], ShardRuntime] = {}
        self._readonly_replicas: dict[tuple[str, str], tuple[ShardRuntime, ...]] = {}
        for keyspace in config.keyspaces:
            for shard in keyspace.shards:
                key = keyspace.name, shard.name
                made = readonly_of(
                    shard,
                    self.shards[key],
                    self._replicas[key],
                    pool_timeout_s=config.server.pool_timeout_s,
                    health=self._replica_health,
                )
                if made is not None:
                    self._readonly_shards[key], self._readonly_replicas[key] = made
        keyspaces = [make_keyspace(keyspace) for keyspace in config.keyspaces]
        clock = self._clock = SystemClock()
        self._registry = Registry(
            keyspaces,
            ShardStore(self.shards, clock),
            clock=clock,
            reload_interval_s=config.server.schema_reload_s,
            stream_grace_s=config.server.stream_grace_s,
        )
        self._coordinator: Coordinator | None = None
        self._recovery: Recovery | None = None
        if config.server.transaction_mode is TransactionMode.TWOPC:
            decisions = Decisions(lambda: os.urandom(8).hex())
            self._coordinator = Coordinator(
                decisions,
                clock,
                patience_s=config.server.failover_buffer_s,
                new_number=lambda: os.urandom(16).hex(),
            )
            self._recovery = Recovery(
                list(self.shards.values()),
                decisions,
                self._coordinator,
                grace_s=config.server.recovery_grace_s,
            )
        self._charsets = Charsets()
        tls = None if config.server.tls is None else ServerTls(config.server.tls)
        users = {user.name: user for user in config.accounts}
        self._accounts = {name: Account(name, _verifier(user)) for name, user in users.items()}
        self._rsa_key = ServerKey()
        catalogs = self._catalogs(keyspaces)
        self._vschemas_asked = asyncio.Event()
        self._vschema_files = VschemaFiles(
            config.keyspaces, self._vschemas_asked, catalogs.replace
        )
        self._looking: asyncio.Task[None] | None = None
        self.services = Services(
            config=config.server,
            users=users,
            has_admin=_has_admin(users),
            loopback_only=not config.users,
            authenticator=Authenticator(
                self._accounts,
                _nonce,
                decoy_seed=os.urandom(NONCE_BYTES),
                rsa_key=self._rsa_key,
                certificate_sha256=None if tls is None else tls.certificate_sha256,
            ),
            tls=tls,
            server_version=self._server_version,
            collation_id=lambda: self._charsets.greeted,
            extends_metadata=self._extends_metadata,
            catalogs=catalogs,
            registry=self._registry,
            cache=StatementCache(
                server=lambda: server_version(self._server_version()),
                tokens_max=config.server.max_statement_tokens,
            ),
            clock=clock,
            charset_settings=self._charsets.settings,
            sessions=self._sessions,
            is_stopping=lambda: self._stopped,
            uptime_s=lambda: time.monotonic() - self._started,
            tally=Tally(),
            nonce=_nonce,
            backoff=LoginBackoff(config.server.auth_backoff_s),
            memory_of=users_memory(
                lambda: self._config.server.user_memory_bytes, UserMemoryExceeded
            ),
            work=LoginWork(),
            addresses=Addresses(),
            coordinator=self._coordinator,
            readers=readers(),
            spawn=self._spawn,
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
            self._prepare_for(self._config), *(shard.start() for shard in self._all_servers())
        )
        await self._registry.start()
        if self._recovery is not None:
            await self._recovery.start()
        tcp = await net.listen_tcp(self._accept, server.host, server.port, backlog=BACKLOG)
        self._servers.append(tcp)
        if server.unix_socket:
            self._servers.append(
                await net.listen_unix(
                    self._accept,
                    server.unix_socket,
                    backlog=BACKLOG,
                    mode=server.unix_socket_mode,
                )
            )
        self._vschema_files.start()
        self._keep_deadlines(server)
        self._spawn(_say_who_is_held_back(self._config))
        self._spawn(self._hangups())
        log.info("listening", host=server.host, port=self.port, socket=server.unix_socket)

    async def stop(self) -> None:
        """Stop gracefully; may be called twice."""
        if self._stopped:
            return
        self._stopped = True
        self._vschema_files.stop()
        for server in self._servers:
            server.close()
        if self._config.server.unix_socket:
            net.remove_socket(self._config.server.unix_socket)
        await self._drain()
        for task in list(self._background):
            task.cancel()
        if self._recovery is not None:
            await self._recovery.stop()
        await asyncio.gather(*(shard.stop() for shard in self._all_servers()))
        self.services.readers.shutdown(wait=False, cancel_futures=True)
        log.info("stopped")

    async def _drain(self) -> None:
        """Let clients finish, for a bounded time, then disconnect them.

            at once              streams end
            `shutdown_grace`     sessions go once they are at rest: nothing to do, no transaction. As long
                                 as messages that were sent may be acked, sessions at rest stay, too
            INTERRUPT_S          what still runs is stopped on its server, unless it may commit
            `failover_buffer`    what may commit is waited for

        Whoever has no answer then is told that the outcome is unknown.
        """
        loop = asyncio.get_running_loop()
        error, server = ServerShutdown(), self._config.server
        grace_ends_s = loop.time() + server.shutdown_grace_s
        acks_s = (self._registry.leased_until_ns - self._clock.time_ns()) / 10**9
        log.info("stopping", clients=len(self._clients()))
        streams = asyncio.create_task(self._registry.stop(error))
        await self._gone(self._clients(), min(acks_s, server.shutdown_grace_s))
        for session in self._clients():
            session.shut_down(error)
        await self._gone(self._clients(), grace_ends_s - loop.time())
        for session in self._clients():
            session.stop_work(error)
        await self._gone([s for s in self._clients() if not s.is_committing], INTERRUPT_S)
        for session in self._clients():
            if not session.is_committing:
                session.cut_off(ShutdownUnanswered())
        if committing := [session for session in self._clients() if session.is_committing]:
            log.info("waiting for commits", clients=len(committing))
            await self._gone(committing, server.failover_buffer_s)
        for session in list(self._sessions.values()):
            session.cut_off(error if session.user is None else ShutdownUnanswered())
        await self._gone(list(self._sessions.values()), INTERRUPT_S)
        for session in list(self._sessions.values()):
            session.end()
        await streams

    def _clients(self) -> list[Peer]:
        """Return who has logged in."""
        return [session for session in self._sessions.values() if session.user is not None]

    async def _gone(self, sessions: list[Peer], within_s: float) -> None:
        """Return when all *sessions* are gone, after *within_s*, or when a stop must hurry."""
        if not sessions or within_s <= 0:
            return
        gone = asyncio.gather(*(session.closed.wait() for session in sessions))
        hurry = asyncio.ensure_future(self._hurry.wait())
        waited: set[asyncio.Future[Any]] = {gone, hurry}
        await asyncio.wait(waited, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone

    # --- reading the configuration again --------------------------------------------------

    async def _hangups(self) -> None:
        while True:
            await self._hangup.wait()
            self._hangup.clear()
            if self._read_again is not None:
                await self._reload(self._read_again)
            self._vschemas_asked.set()

    async def _reload(self, read_again: Callable[[], Config]) -> None:
        """Put what *read_again* returns into force, all of it or nothing."""
        try:
            read = await asyncio.to_thread(read_again)
            found = changes(self._config, read)
            tls_config = found.config.server.tls
            tls = None if tls_config is None else ServerTls(tls_config)
        except ConfigError as error:
            for each in (error, *error.others):
                log.warning(
                    "configuration not reloaded, the old one stays",
                    key=each.key,
                    reason=each.problem,
                )
            return
        await self._prepare_for(read)
        process.raise_file_limit(found.config)
        is_renewed = self._put_into_force(found, tls)
        if found.added or found.rights:
            self._spawn(_say_who_is_held_back(found.config))
        if found.restart:
            log.warning("changes that need a restart", keys=list(found.restart))
        if found.is_nothing and not is_renewed:
            log.info("configuration unchanged")
        else:
            log.info(
                "configuration reloaded",
                keys=list(found.live),
                certificates="renewed" if is_renewed else "unchanged",
                users_added=list(found.added),
                users_removed=list(found.removed),
                users_changed=list(found.changed),
            )

    async def _prepare_for(self, config: Config) -> None:
        """Make the key that the users of *config* may need, beside the loop, which it would hold up."""
        if any(user.password_hash is not None for user in config.users):
            await asyncio.to_thread(self._rsa_key.make)

    def _put_into_force(self, found: Changes, tls: ServerTls | None) -> bool:
        """Let *found* count from now on; return whether a certificate or key is another one.

        In one turn of the loop, so nobody sees half of it.
        """
        config, services = found.config, self.services
        is_renewed = (services.tls and services.tls.fingerprint) != (tls and tls.fingerprint)
        users = {user.name: user for user in config.accounts}
        # Those that are as they were keep their account, so that a login under way goes on.
        touched = {*found.added, *found.changed}
        self._accounts = {
            name: Account(name, _verifier(user)) if name in touched else self._accounts[name]
            for name, user in users.items()
        }
        self._config = config
        services.config = config.server
        services.users = users
        services.has_admin = _has_admin(users)
        services.loopback_only = not config.users
        services.tls = tls
        services.authenticator.replace(self._accounts)
        services.authenticator.certificate_sha256 = (
            None if tls is None else tls.certificate_sha256
        )
        self._keep_limits(config.server)
        self._keep_deadlines(config.server)
        removed = []
        for session in self._clients():
            assert session.user is not None
            name = session.user.name
            if name not in users:
                session.stop_work(AccountChanged(name))
                removed.append(session)
            elif name in found.rights:
                session.shut_down(AccountChanged(name))
        if removed:
            self._spawn(self._dismiss(removed))
        return is_renewed

    def _keep_limits(self, server: Server) -> None:
        """Tell the parts that were given a limit of their own those of *server*."""
        self.services.backoff.longest_s = server.auth_backoff_s
        self.services.cache.tokens_max = server.max_statement_tokens
        self._registry.set_limits(server.schema_reload_s, server.stream_grace_s)
        self._replica_health.lag_max_s = server.replica_max_lag_s
        for shard in self._all_servers():
            shard.pool.timeout_s = server.pool_timeout_s
        if self._coordinator is not None and self._recovery is not None:
            self._coordinator.patience_s = server.failover_buffer_s
            self._recovery.set_grace(server.recovery_grace_s)

    def _keep_deadlines(self, server: Server) -> None:
        """Have all sessions keep to the time limits of *server* from now on."""
        if self._looking is not None:
            self._looking.cancel()
        timeout = StatementTimeout(self._sessions, server.statement_timeout_s)
        self._looking = self._spawn(timeout.run())
        for session in self._sessions.values():
            session.limits_changed()

    async def _dismiss(self, sessions: list[Peer]) -> None:
        """Cut those off whose server does not stop what it was told to stop."""
        await self._gone(sessions, INTERRUPT_S)
        for session in sessions:
            if session.user is not None and not session.is_committing:
                session.cut_off(AccountChanged(session.user.name))

    @property
    def port(self) -> int:
        """The TCP port, also where the configuration said 0."""
        port: int = self._servers[0].sockets[0].getsockname()[1]
        return port

    # --- parts ----------------------------------------------------------------------------

    def _all_servers(self) -> list[ShardRuntime]:
        accounts = (
            (self.shards, self._replicas),
            (self._readonly_shards, self._readonly_replicas),
        )
        return [
            runtime
            for primaries, replicas in accounts
            for runtime in (
                *primaries.values(),
                *(r for all_ in replicas.values() for r in all_),
            )
        ]

    def _catalogs(self, keyspaces: Sequence[Keyspace]) -> Catalogs:
        owner = Catalog(keyspaces, self.shards, self._registry, self._replicas)
        if not self._readonly_shards:
            return Catalogs(owner, owner)
        readonly = Catalog(
            keyspaces,
            self.shards | self._readonly_shards,
            self._registry,
            self._replicas | self._readonly_replicas,
        )
        return Catalogs(owner, readonly)

    def _accept(self, link: Link) -> Session:
        return Session(self.services, link, self._connection_ids.allocate(self._sessions))

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
        if shard.trouble is None:
            self._registry.shard_up(shard.keyspace, shard.name)
            self._spawn(self._charsets.learn(shard.control))
        else:
            self._registry.shard_down(shard.keyspace, shard.name, shard.trouble)

    def _server_version(self) -> str:
        for shard in self.shards.values():
            if shard.version:
                return greeting_version(shard.version)
        return FALLBACK_VERSION

    def _extends_metadata(self) -> bool:
        versions = [server.version for server in self._all_servers() if server.version]
        return bool(versions) and all(map(extends_metadata, versions))


async def _say_who_is_held_back(config: Config) -> None:
    """Log which users the servers would not stop, as `streamfrom check` says it."""
    for finding in await ask(config):
        if finding.level is not Level.OK:
            log.warning(finding.text, about=finding.place, run=finding.cure or "")


def greeting_version(version: str) -> str:
    """Return how a server of *version* greets.

    MariaDB before 11 prefixes 5.5.5- so that old replicas accept a two-digit major version;
    its clients look for that prefix.
    """
    major = version.split(".", 1)[0]
    if "MariaDB" in version and major.isdigit() and int(major) < 11:
        return f"5.5.5-{version}"
    return version


def _has_admin(users: Mapping[str, User]) -> bool:
    return any(user.role is Role.ADMIN for user in users.values())


def _verifier(user: User) -> Verifier:
    if user.password_hash is not None:
        return Verifier.from_hash(user.password_hash.reveal())
    assert user.password is not None
    return Verifier.from_password(user.password.reveal())


def _nonce() -> bytes:
    return nonce_from(os.urandom(NONCE_BYTES))


async def run(
    config: Config,
    stop: asyncio.Event,
    hangup: asyncio.Event,
    hurry: asyncio.Event,
    read_again: Callable[[], Config],
) -> None:
    """Run a proxy until *stop* is set; *hangup* has it read its files again, by *read_again*.

    hurry: has a stop wait for nobody.
    """
    async with Application(config, hangup, hurry, read_again):
        process.prepare(config)
        await stop.wait()
    process.leave()
