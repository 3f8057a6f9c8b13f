"""Asks the servers of a configuration what their accounts may do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.accounts.grants import Rights, read_grants
from streamfrom.proxy.accounts.privilege_audit import BackendAccount, ShardAccounts, findings
from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.errors import BackendError, BackendUnavailable


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.file import Config
    from streamfrom.proxy.config.keyspaces import ShardConfig
    from streamfrom.proxy.report import Finding


# One server may be reached by several addresses; this names it.
_WHO: Final = "SELECT CURRENT_USER(), VERSION(), @@hostname, @@port, @@datadir"


async def ask(config: Config) -> list[Finding]:
    """Return what `proxy.accounts.privilege_audit.findings` finds; a server that is away is passed over."""
    has_account = any(s.readonly is not None for k in config.keyspaces for s in k.shards)
    if not has_account and not any(user.is_restricted for user in config.users):
        return []
    shards = await asyncio.gather(
        *(
            _shard(keyspace.name, shard)
            for keyspace in config.keyspaces
            for shard in keyspace.shards
        )
    )
    return list(findings(config.users, shards))


async def _shard(keyspace: str, shard: ShardConfig) -> ShardAccounts:
    server, owner = await _account(keyspace, shard.name, shard.primary)
    readonly, replicas = None, []
    second = shard.as_readonly()
    if second is not None:
        _, readonly = await _account(keyspace, shard.name, second.primary)
        for dsn in second.replicas:
            _, there = await _account(keyspace, shard.name, dsn)
            replicas.append((dsn.server, there))
    database = shard.primary.database
    return ShardAccounts(
        keyspace, shard.name, server, database, owner, readonly, tuple(replicas)
    )


async def _account(keyspace: str, shard: str, dsn: Dsn) -> tuple[str, BackendAccount]:
    """Return which server it is, and the account there; the address, where it cannot be asked."""
    control = Control(keyspace, shard, dsn)
    try:
        ((who, version, *place),) = await control.rows(_WHO)
        name, _, host = str(who).rpartition("@")
        on_mysql = "MariaDB" not in str(version)
        rights = await _rights(control, on_mysql=on_mysql)
    except BackendUnavailable:
        return dsn.server, BackendAccount(dsn.user)
    except BackendError as error:
        return dsn.server, BackendAccount(dsn.user, trouble=str(error))
    finally:
        await control.close()
    return ":".join(map(str, place)), BackendAccount(name, host, rights, on_mysql=on_mysql)


async def _rights(control: Control, *, on_mysql: bool) -> Rights:
    """Ask for all that the account may do, with roles that it has not set but may."""
    # MariaDB adds what everybody may (PUBLIC) to this form only.
    lines = await _lines(control, "SHOW GRANTS")
    roles = read_grants(lines).roles
    if roles and on_mysql:
        lines += await _lines(
            control, f"SHOW GRANTS FOR CURRENT_USER() USING {', '.join(roles)}"
        )
    elif roles:
        for role in roles:
            # Those of a role that is not set are not shown. One statement after the other, all of
            # them run on one connection.
            await control.execute(f"SET ROLE {role}")
            lines += await _lines(control, "SHOW GRANTS")
    return read_grants(lines)


async def _lines(control: Control, sql: str) -> list[str]:
    return [str(line) for (line,) in await control.rows(sql)]
