"""What `USE`, COM_INIT_DB and a login may name: keyspaces, and databases beside an unsharded one.

A suite or a migration makes a database and uses it, without a word of it in the configuration. The
server of an unsharded keyspace is asked whether it has one of that name. Its tables are ordinary
ones: no messages, no vschema. Users who were given keyspaces do not see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.errors import UnknownDatabase


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.statement_compiler import StatementCompiler


async def use(compiler: StatementCompiler, target: str) -> None:
    """Make *target* the session's current one.

    Raises:
        UnknownDatabase: neither a keyspace nor a database of the server is called so.
        BackendUnavailable: the server could not be asked.
        NoDatabaseSelected, DatabaseAccessDenied, Unsupported, EngineError: as `StatementCompiler.use`.
    """
    try:
        compiler.use(target)
    except UnknownDatabase:
        home = compiler.neighbourhood()
        if home is None or not await has_database(home.runtimes[0], target):
            raise
        compiler.view, compiler.target = home.neighbour(target), target


async def has_database(shard: ShardRuntime, database: str) -> bool:
    """Ask a server for a database, by a connection of the proxy's own: the session's may be busy.

    Names are compared here: `=` there ignores case, and databases do not.
    """
    rows = await shard.control.rows("SELECT schema_name FROM information_schema.schemata")
    return (database,) in rows
