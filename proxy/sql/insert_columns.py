"""The columns of INSERTs without a column list, such as `INSERT INTO t VALUES (1, 'a')`.

Vindexes and sequences find their values by the columns' names. So a server is asked for the names, and the statement is
sent with them. The server is asked for each statement: remembered names could be older than an ALTER TABLE, and would
put a row on a wrong shard. Dumps have no column lists, and thousands of rows in a statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.writes.insert_gaps import leaves_out_columns, with_columns


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.compile.session_target import StatementTarget
    from streamfrom.proxy.sql.session_context import SessionContext


_INVISIBLE = "INVISIBLE"


async def with_named_columns(
    context: SessionContext, place: StatementTarget
) -> StatementTarget:
    """Return *place*; its statement has a column list where it needs one.

    Raises BackendUnavailable if no server could be asked, BackendError if there is no such table.
    """
    view, shape, compiler = place.view, place.statement.shape, context.compiler
    if not leaves_out_columns(shape):
        return place
    table = shape.tables[0].name
    vschema = view.keyspace.vschema
    routing = None if vschema is None else vschema.tables.get(table)
    is_dealt_out = view.is_sharded and routing is not None and routing.column_vindexes
    takes_values = compiler.sequence_of(view, shape) is not None
    if not (is_dealt_out or takes_values) or view.columns_of(table):
        return place
    # Any shard will do; one that is not available is avoided, since it would be waited for.
    shard = min(view.runtimes, key=lambda shard: shard.trouble is not None)
    names = await context.connections.patiently(shard, lambda: _columns(shard, table))
    named = await context.large_texts.read(
        len(place.statement.sql),
        lambda: compiler.target.parse(with_columns(place.statement, names)),
    )
    return place._replace(statement=named)


async def _columns(shard: ShardRuntime, table: str) -> list[str]:
    """Return the columns that an INSERT without a list fills: all but the invisible ones."""
    found = await shard.control.records(f"SHOW COLUMNS FROM {quote_identifier(table)}")
    return [row["Field"] for row in found if _INVISIBLE not in str(row["Extra"]).upper()]
