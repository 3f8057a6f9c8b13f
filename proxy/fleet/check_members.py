"""The report of `streamfrom check` on the fleet: whether a shard's server has the directory, the members, and their limits.

A proxy without the directory, or without privileges on it, works on its own; so nothing here is a fault.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from streamfrom.engine.fleet.directory import CREATE, GRANT
from streamfrom.engine.fleet.lock_connection import DENIED, NO_DIRECTORY, member_lock
from streamfrom.proxy.backends.control_connection import CONNECTIONS_MAX
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.report import CheckReport


# Next to the pool: control connections, and one for the locks.
OWN_CONNECTIONS: Final = CONNECTIONS_MAX + 1
# One server may be reached by several addresses; this names it.
_WHO: Final = "SELECT @@hostname, @@port, @@datadir, @@max_connections"


class ServerLimits:
    """Adds up how many connections all proxies of one configuration may open at each server."""

    def __init__(self) -> None:
        # By a server's own identity, its `max_connections` last: shards, and how many processes have a pool for each.
        self._servers: defaultdict[tuple[Any, ...], list[tuple[ShardRuntime, int]]]
        self._servers = defaultdict(list)

    async def add(self, shard: ShardRuntime, members: int) -> None:
        """Count the pool of a server that responds. members: how many processes have such a pool."""
        try:
            rows = await shard.control.rows(_WHO)
        except (BackendError, BackendUnavailable):
            return  # reported as a shard that cannot be used
        for row in rows:
            self._servers[tuple(row)].append((shard, members))

    def report(self, report: CheckReport) -> None:
        """Report each server whose limit is lower than the connections of its proxies."""
        for (*_, most), counted in self._servers.items():
            allowed, members = int(most), max(1, *(count for _, count in counted))
            pools = [shard.pool.size for shard, _ in counted]
            wanted = members * (sum(pools) + OWN_CONNECTIONS * len(pools))
            if wanted <= allowed:
                continue
            room = allowed // members // len(pools) - OWN_CONNECTIONS
            lower = f", or pool_size to at most {room}" if room > 0 else ""
            proxies = "a proxy" if members == 1 else f"{members} proxies"
            report.warning(
                ", ".join(str(shard) for shard, _ in counted),
                f"{proxies} may open {wanted} connections to {counted[0][0].dsn.server} (pool_size"
                f" {' + '.join(map(str, pools))}, and {OWN_CONNECTIONS} more for each shard), and its"
                f" max_connections is {allowed}",
                f"set max_connections of the server to more than {wanted}{lower}",
            )


# The fix for a server's refusal, by its code: ER_LOCK_WAIT_TIMEOUT, ER_BINLOG_STMT_MODE_AND_ROW_ENGINE.
_FIXES: Final = {
    1205: "end the session that locks the table, and run this again",
    1665: "SET GLOBAL binlog_format = 'ROW' there, and set it in the server's configuration",
}
REACH_TIMEOUT_S: Final = 2.0
# They touch no row, and need every privilege that a member needs.
_PROBES: Final = tuple(
    probe.format(table=table)
    for table in ("members", "locks")
    for probe in (
        "INSERT INTO streamfrom.{table} SELECT * FROM streamfrom.{table} WHERE 1 = 0",
        "UPDATE streamfrom.{table} SET database_name = database_name WHERE 1 = 0",
        "DELETE FROM streamfrom.{table} WHERE 1 = 0",
    )
)
# Always fails: without the privilege to create, or because the source table does not exist.
_CREATE_PROBE: Final = "CREATE TABLE streamfrom.members LIKE streamfrom.members_of_nobody"
# The connected members, by the locks that only they hold.
_PRESENT: Final = (
    "SELECT member, fleet, address, version, configuration FROM streamfrom.members"
    " WHERE database_name = {database} AND IS_USED_LOCK(CONCAT({prefix}, member)) IS NOT NULL ORDER BY member"
)


def fix_of(error: Exception) -> str | None:
    """Return the fix for a failure, if it is a server's refusal with a known fix."""
    return _FIXES.get(error.code) if isinstance(error, BackendError) else None


async def check_members(
    shard: ShardRuntime, version: str, configuration: str, report: CheckReport
) -> int:
    """Report any cause that keeps proxies of *shard* from finding each other, and the proxies that differ from this one.

    Return how many are connected.

    version, configuration: those of this product and of the checked file, as members publish them.
    """
    subject = str(shard)
    try:
        for probe in _PROBES:
            await shard.control.rows(probe)
        prefix = literal(member_lock(shard.database, b"")).decode()
        database = literal(shard.database.encode()).decode()
        members = await shard.control.rows(_PRESENT.format(database=database, prefix=prefix))
    except BackendError as error:
        if error.code in NO_DIRECTORY:
            await _check_absent(shard, report)
        elif error.code not in DENIED:
            report.error(subject, f"the database streamfrom: {error}", fix_of(error))
        else:
            report.warning(
                subject,
                f"a proxy works alone here, without rights on the database streamfrom: {error}",
                f"run: {await _grant(shard)}",
            )
        return 0
    except BackendUnavailable as error:
        report.warning(subject, f"the database streamfrom: {error}")
        return 0
    report.ok(subject, f"database streamfrom, {len(members)} connected")
    troubles = await asyncio.gather(*(_trouble(member[2]) for member in members))
    for trouble, (name, fleet, address, its_version, its_configuration) in zip(
        troubles, members, strict=True
    ):
        place = f"{subject}, member {name} at {address or 'no address'}"
        if fleet:
            place += f" of fleet {fleet}"
        if trouble is not None:
            report.warning(
                place,
                f"not reached from this machine: {trouble}",
                "let members reach each other's ports, or name in advertise of [fleet] where they reach it",
            )
        if its_version != version:
            report.warning(
                place,
                f"version {its_version}, and this is {version}",
                "upgrade one after another",
            )
        if its_configuration != configuration:
            report.warning(
                place,
                "its keyspaces or shards are not those of this file",
                "have equal keyspaces and shards in the files of all proxies, and start them again",
            )
    return len(members)


async def _trouble(address: str) -> str | None:
    """Return why a member at *address* cannot be reached from here, None if it can, or if it has no address."""
    host, _, port = address.rpartition(":")
    if not host:
        return None
    try:
        async with asyncio.timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return f"no connection within {REACH_TIMEOUT_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None


async def _check_absent(shard: ShardRuntime, report: CheckReport) -> None:
    """Report which proxy creates the missing directory."""
    try:
        await shard.control.rows(_CREATE_PROBE)
    except (BackendError, BackendUnavailable) as error:
        if isinstance(error, BackendError) and error.code in NO_DIRECTORY:
            report.ok(str(shard), "database streamfrom, which the first proxy makes")
            return
        report.warning(
            str(shard),
            f"no database streamfrom, by which several proxies find each other: {error}",
            f"run: {'; '.join((*CREATE, await _grant(shard)))}",
        )


async def _grant(shard: ShardRuntime) -> str:
    """Return the statement that grants the shard's account the privileges on the directory."""
    user = shard.dsn.user
    with suppress(BackendError, BackendUnavailable):
        ((account,),) = await shard.control.rows("SELECT CURRENT_USER()")
        name, _, host = str(account).rpartition("@")
        user = f"'{name}'@'{host}'"
    return GRANT.format(user=user)
