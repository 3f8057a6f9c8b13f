"""The configuration in force, and how one that was read again takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from streamfrom.proxy import process
from streamfrom.proxy.backends.shard import stop_retired
from streamfrom.proxy.config.changes import Changes, changes
from streamfrom.proxy.config.file import Config, Role, Server, User
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import AccountChanged
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.tls import ServerKey, ServerTls
from streamfrom.proxy.wire.login.auth import Credentials


if TYPE_CHECKING:
    from streamfrom.proxy.app.disconnection import Disconnection
    from streamfrom.proxy.app.membership import Membership
    from streamfrom.proxy.backends.shard import ServersOfShard, ShardServers
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.twophase.recovery import Recovery


log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class ConfigReload:
    """Keeps what runs to the configuration in force.

    config: the configuration that all of these were made of.
    recovery: None without `transaction_mode = "twopc"`.
    rsa_key: the key with which clients without TLS hide their passwords.
    """

    _config: Config
    _services: Services
    _servers: ShardServers
    _membership: Membership
    _recovery: Recovery | None
    _disconnection: Disconnection
    _rsa_key: ServerKey

    async def prepare(self, config: Config) -> None:
        """Make the RSA key if users of *config* may need it, in a thread: that takes some 80 ms."""
        if any(user.password_hash is not None for user in config.users):
            await asyncio.to_thread(self._rsa_key.make)

    def _keep_limits(self, server: Server) -> None:
        """Give the parts that have limits of their own those of *server*."""
        services = self._services
        services.backoff.longest_s = server.auth_backoff_s
        services.cache.tokens_max = server.max_statement_tokens
        services.registry.set_limits(server.schema_reload_s, server.stream_grace_s)
        self._servers.keep_limits(server)
        if services.coordinator is not None and self._recovery is not None:
            services.coordinator.patience_s = server.failover_buffer_s
            self._recovery.set_grace(server.recovery_grace_s)

    async def reload(self, read_again: Callable[[], Config]) -> None:
        """Put what *read_again* returns into force, all of it or nothing."""
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
        servers = await self._servers.prepare(found.config.keyspaces)
        is_renewed = self._put_into_force(found, tls, servers)
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

    def _put_into_force(
        self,
        found: Changes,
        tls: ServerTls | None,
        servers: Mapping[tuple[str, str], ServersOfShard],
    ) -> bool:
        """Let *found* count from now on; return whether a certificate or key is another one.

        All of it happens in one turn of the loop, so no session sees half of it.
        """
        config, services = found.config, self._services
        authenticator = services.authenticator
        is_renewed = (services.tls and services.tls.fingerprint) != (tls and tls.fingerprint)
        users = {user.name: user for user in config.accounts}
        touched = {*found.added, *found.changed}
        # A user that is as it was keeps its account, so that its login under way goes on.
        kept = {name: authenticator.account(name) for name in users.keys() - touched}
        authenticator.replace(
            {name: kept.get(name) or credentials_of(user) for name, user in users.items()}
        )
        authenticator.certificate_sha256 = None if tls is None else tls.certificate_sha256
        has_moved = config.keyspaces != self._config.keyspaces
        self._config = config
        gone = self._servers.publish(servers)
        services.catalog.forget(gone)
        services.spawn(stop_retired(gone, config.server.shutdown_grace_s))
        services.config = config.server
        services.users = users
        services.has_admin = has_admin(users)
        services.loopback_only = not config.users
        services.tls = tls
        self._keep_limits(config.server)
        if has_moved:
            self._membership.reconfigured(config)
        removed = []
        for session in self._disconnection.clients():
            assert session.user is not None
            name = session.user.name
            if name not in users:
                session.work.stop_work(AccountChanged(name))
                removed.append(session)
            elif name in found.rights:
                session.work.shut_down(AccountChanged(name))
        if removed:
            services.spawn(self._disconnection.dismiss(removed))
        return is_renewed


def has_admin(users: Mapping[str, User]) -> bool:
    """Return whether one of *users* is an admin."""
    return any(user.role is Role.ADMIN for user in users.values())


def credentials_of(user: User) -> Credentials:
    """Return what logins as *user* are judged by."""
    if user.password_hash is not None:
        return Credentials(user.name, Verifier.from_hash(user.password_hash.reveal()))
    assert user.password is not None
    return Credentials.from_password(user.name, user.password.reveal())
