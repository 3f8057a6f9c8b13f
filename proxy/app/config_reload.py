"""The configuration in force, and how a reloaded one replaces it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from streamfrom.proxy import process
from streamfrom.proxy.backends.shard_servers import stop_retired
from streamfrom.proxy.config.changes import Changes, changes
from streamfrom.proxy.config.file import Config, Role, Server, User
from streamfrom.proxy.config.keyspaces import make_keyspace
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import AccountChanged, KeyspaceRemoved
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.tls import ServerKey, ServerTls


if TYPE_CHECKING:
    from streamfrom.engine.fleet.elector import Elector
    from streamfrom.proxy.app.disconnection import Disconnection
    from streamfrom.proxy.app.membership import Membership
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.backends.shard_servers import ServersOfShard, ShardServers
    from streamfrom.proxy.config.keyspaces import KeyspaceConfig
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.twophase.recovery import Recovery
    from streamfrom.proxy.vschema_files import QueueSharding, VschemaFiles


log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class ConfigReload:
    """Applies the configuration in force to the running parts.

    config: the configuration that all of these were made from.
    vschema_files: apply keyspaces.
    recovery: None without `transaction_mode = "twopc"`.
    rsa_key: the key with which clients without TLS hide their passwords.
    """

    _config: Config
    _services: Services
    _servers: ShardServers
    _membership: Membership
    _vschema_files: VschemaFiles
    _queue_sharding: QueueSharding
    _recovery: Recovery | None
    _disconnection: Disconnection
    _rsa_key: ServerKey

    async def prepare(self, config: Config) -> None:
        """Make the RSA key if users of *config* may need it, in a thread because it takes about 80 ms."""
        if any(user.password_hash is not None for user in config.users):
            await asyncio.to_thread(self._rsa_key.make)

    def _keep_limits(self, server: Server) -> None:
        """Pass the limits of *server* to the parts that have some."""
        services = self._services
        services.backoff.longest_s = server.auth_backoff_s
        services.cache.tokens_max = server.max_statement_tokens
        services.registry.set_limits(server.schema_reload_s, server.stream_grace_s)
        self._servers.keep_limits(server)
        if services.coordinator is not None and self._recovery is not None:
            services.coordinator.patience_s = server.failover_buffer_s
            self._recovery.set_grace(server.recovery_grace_s)

    async def reload(self, read_again: Callable[[], Config]) -> None:
        """Apply the configuration that *read_again* returns, all of it or nothing."""
        try:
            read = await asyncio.to_thread(read_again)
            found = changes(self._config, read)
            tls_config = found.config.server.tls
            tls = None if tls_config is None else ServerTls(tls_config)
        except ConfigError as error:
            for each in (error, *error.others):
                log.warning(
                    "configuration not reloaded, the old one is still used",
                    key=each.key,
                    reason=each.problem,
                )
            return
        if tls is not None:
            tls.warn()
        await self.prepare(read)
        process.raise_file_limit(found.config)
        before, after = ({k.name for k in c.keyspaces} for c in (self._config, found.config))
        servers = await self._servers.prepare(found.config.keyspaces)
        electors = await self._prepare_keyspaces(
            [k for k in found.config.keyspaces if k.name not in before]
        )
        removed = sorted(before - after)
        is_renewed = self._put_into_force(found, tls, servers, removed)
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
        gone = await self._end_keyspaces(removed)
        # A new keyspace may have the database, and so the election, of one that is gone.
        for elector in electors:
            elector.start()
        self._stop_retired(gone)

    def _stop_retired(self, servers: Collection[ShardRuntime]) -> None:
        grace_s = self._services.config.shutdown_grace_s
        self._services.spawn(stop_retired(servers, grace_s))

    async def _prepare_keyspaces(self, keyspaces: list[KeyspaceConfig]) -> list[Elector]:
        """Find the message tables of new keyspaces, whose servers have been queried; return the electors, which the caller starts."""
        registry, electors = self._services.registry, []
        for each in keyspaces:
            registry.add(make_keyspace(each))
            for shard in each.shards:
                runtime = self._servers.primaries[each.name, shard.name]
                electors.append(self._membership.add(runtime))
        await asyncio.gather(*(registry.reload(each.name) for each in keyspaces))
        return electors

    async def _end_keyspaces(self, names: list[str]) -> list[ShardRuntime]:
        """End everything of keyspaces that no session can name any more; return their servers, which may still be in use.

        As when the proxy stops: streams end, rows show which messages were sent, another member dispatches.
        """
        registry, errors = (
            self._services.registry,
            {name: KeyspaceRemoved(name) for name in names},
        )
        for name, error in errors.items():
            registry.here.end_streams(error, name)
        grace_s = self._services.config.shutdown_grace_s
        await asyncio.gather(*(registry.here.hand_over(grace_s, name) for name in names))
        await self._membership.fleet.remove(
            shard for shard in self._servers.primaries if shard[0] in errors
        )
        await asyncio.gather(*(registry.remove(*each) for each in errors.items()))
        return self._servers.remove(names)

    def _put_into_force(
        self,
        found: Changes,
        tls: ServerTls | None,
        servers: Mapping[tuple[str, str], ServersOfShard],
        removed: Sequence[str],
    ) -> bool:
        """Apply *found*, without the keyspaces *removed*; return whether a certificate or key has changed.

        All of it happens in one turn of the loop, so no session sees half of it.
        """
        config, services = found.config, self._services
        authenticator = services.authenticator
        is_renewed = (services.tls and services.tls.fingerprint) != (tls and tls.fingerprint)
        users = {user.name: user for user in config.accounts}
        touched = {*found.added, *found.changed}
        # An unchanged user keeps its account, so that its current login continues.
        kept = {name: authenticator.account(name) for name in users.keys() - touched}
        authenticator.replace(
            {name: kept.get(name) or verifier_of(user) for name, user in users.items()}
        )
        authenticator.certificate_sha256 = None if tls is None else tls.certificate_sha256
        has_moved = config.keyspaces != self._config.keyspaces
        self._config = config
        gone = self._servers.publish(servers)
        self._vschema_files.replace(config.keyspaces)
        services.catalog.forget(removed, [*gone, *self._servers.of(removed)])
        for name in removed:
            self._queue_sharding.forget(name)
        services.config = config.server
        self._stop_retired(gone)
        services.users = users
        services.has_admin = has_admin(users)
        services.loopback_only = not config.users
        services.tls = tls
        self._keep_limits(config.server)
        if has_moved:
            self._membership.reconfigured(config)
        dismissed, ending = [], {name: self._servers.of([name]) for name in removed}
        for session in self._disconnection.clients():
            assert session.user is not None
            name = session.user.name
            if name not in users:
                session.work.stop_work(AccountChanged(name))
                dismissed.append(session)
            elif name in found.rights:
                session.work.shut_down(AccountChanged(name))
            for keyspace in removed:
                if session.work.is_on(ending[keyspace]):
                    session.work.shut_down(KeyspaceRemoved(keyspace))
        if dismissed:
            services.spawn(self._disconnection.dismiss(dismissed))
        return is_renewed


def has_admin(users: Mapping[str, User]) -> bool:
    """Return whether one of *users* is an admin."""
    return any(user.role is Role.ADMIN for user in users.values())


def verifier_of(user: User) -> Verifier:
    """Return the verifier of logins as *user*."""
    if user.password_hash is not None:
        return Verifier.from_hash(user.password_hash.reveal())
    assert user.password is not None
    return Verifier.from_password(user.password.reveal())
