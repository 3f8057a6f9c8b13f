"""What `USE`, COM_INIT_DB and a login may name: keyspaces, and databases next to an unsharded one.

A test suite or a migration may create a database that the configuration does not name, and use it. The server of an
unsharded keyspace is asked whether it has a database of that name. Its tables are ordinary ones, without messages and
vschema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.errors import UnknownDatabase


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.compile.session_target import SessionTarget


async def use(session: SessionTarget, target: str) -> None:
    """Make *target* the session's current one. Raises as `SessionTarget.use`, and BackendUnavailable."""
    try:
        session.use(target)
    except UnknownDatabase:
        home = session.here()
        if not home.has_neighbours or not await has_database(home.runtimes[0], target):
            raise
        session.view, session.name = home.neighbour(target), target


async def has_database(shard: ShardRuntime, database: str) -> bool:
    """Return whether a server has a database; asked on a control connection, since the session's may be busy.

    Names are compared by the proxy, since `=` on the server ignores case, and names of databases do not.
    """
    rows = await shard.control.rows("SELECT schema_name FROM information_schema.schemata")
    return (database,) in rows
