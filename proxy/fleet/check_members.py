"""What `streamfrom check` says of the fleet: whether a shard can be its directory, and who is there.

A proxy without the table, or without rights on it, works alone; so nothing here is a fault.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from streamfrom.engine.fleet.directory import CREATE_TEXT
from streamfrom.engine.fleet.lock_connection import NO_SUCH_TABLE, member_lock
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.report import CheckReport


REACH_TIMEOUT_S: Final = 2.0
# They touch no row, and need every privilege that a member needs.
_PROBES: Final = (
    "INSERT INTO streamfrom_members SELECT * FROM streamfrom_members WHERE 1 = 0",
    "UPDATE streamfrom_members SET term = term WHERE 1 = 0",
    "DELETE FROM streamfrom_members WHERE 1 = 0",
)
# It fails in any case: for want of the right to create, or of a table to be like.
_CREATE_PROBE: Final = "CREATE TABLE streamfrom_members LIKE streamfrom_members_of_nobody"
# Who is there, by the locks that only a connected member holds.
_PRESENT: Final = (
    "SELECT member, fleet, address, version, configuration FROM streamfrom_members"
    " WHERE IS_USED_LOCK(CONCAT({prefix}, member)) IS NOT NULL ORDER BY member"
)


async def check_members(
    shard: ShardRuntime, version: str, configuration: str, report: CheckReport
) -> int:
    """Say what keeps proxies of *shard* from finding each other, and which of them differ from this one.

    Return how many are connected.

    version, configuration: those of this product and of the file that is checked, as members publish them.
    """
    subject = str(shard)
    try:
        for probe in _PROBES:
            await shard.control.rows(probe)
        prefix = literal(member_lock(shard.database, b"")).decode()
        members = await shard.control.rows(_PRESENT.format(prefix=prefix))
    except BackendError as error:
        if error.code == NO_SUCH_TABLE:
            await _check_absent(shard, report)
        else:
            report.warning(
                subject,
                f"a proxy works alone here, for want of rights on streamfrom_members: {error}",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON streamfrom_members TO {shard.dsn.user}",
            )
        return 0
    except BackendUnavailable as error:
        report.warning(subject, f"streamfrom_members: {error}")
        return 0
    report.ok(subject, f"table streamfrom_members, {len(members)} connected")
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
            report.warning(place, f"version {its_version}, and this is {version}")
        if its_configuration != configuration:
            report.warning(
                place,
                "its keyspaces or shards are not those of this file",
                "have equal keyspaces and shards in the files of all proxies, and start them again",
            )
    return len(members)


async def _trouble(address: str) -> str | None:
    """Return why nobody here can reach a member at *address*, None if they can, or if it is reached by nobody."""
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
    """Say who makes the table that is not there yet."""
    try:
        await shard.control.rows(_CREATE_PROBE)
    except (BackendError, BackendUnavailable) as error:
        if isinstance(error, BackendError) and error.code == NO_SUCH_TABLE:
            report.ok(str(shard), "table streamfrom_members, which the first proxy makes")
            return
        report.warning(
            str(shard),
            f"no table streamfrom_members, by which several proxies find each other: {error}",
            f"run: {CREATE_TEXT}",
        )
