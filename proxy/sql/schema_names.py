"""The names of keyspaces in the servers' lists of databases: information_schema, mysql, performance_schema, SHOW … WHERE Db."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.status.status_rows import SCHEMA as STATUS_SCHEMA
from streamfrom.sqlparse_ext.session.information_schema import (
    asks_by_parameter,
    describes,
    describing,
    shows_only_others,
    with_names,
)
from streamfrom.sqlparse_ext.session.session_calls import inline
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.sqlparse_ext.statements import Statement


# Roughly the size that one derived table adds to a text.
_DERIVED_BYTES: Final = 1 << 10


async def with_schema_names(context: SessionContext, statement: Statement) -> Statement:
    """Return *statement*; if servers have other names for databases, let it read the keyspaces' names.

    It reads nothing from the proxies' own database; clients use the status tables instead.
    A prepared statement whose parameters may be names is rewritten for each execution, with their values.

    Raises Unsupported for one database by two names and for databases of several servers, or BackendUnavailable.
    """
    target, shape = context.compiler.target, statement.shape
    database, read, size = target.database, context.large_texts.read, size_of(statement)
    if not await read(size, describes, shape, database):
        return statement
    if statement.arguments is None and await read(size, asks_by_parameter, shape, database):
        return statement
    view, names = await read(size, target.shown_names, statement)
    if not names and await read(size, shows_only_others, statement, STATUS_SCHEMA):
        return statement
    columns = {}
    described = describing(shape, database)
    for table in described:
        key = (table.schema or database or "").lower(), table.name
        columns[key] = await _columns(context, view.runtimes, *key)

    def written() -> Statement:
        found, own = statement, target.view
        if names and own and own.schema is None and own.server == view.server:
            shown = literal(names.get(own.database, own.database).encode())
            calls = {"DATABASE": shown, "SCHEMA": shown}
            found = target.parse(inline(statement, calls))
        edits = with_names(
            found.shape,
            database,
            names,
            lambda *key: columns.get(key, ()),
            hidden=STATUS_SCHEMA,
            on_mariadb=view.is_mariadb,
        )
        return target.edited(found, edits) if edits else found

    return await read(size + _DERIVED_BYTES * len(described), written)


async def _columns(
    context: SessionContext, shards: Sequence[ShardRuntime], schema: str, table: str
) -> tuple[str, ...]:
    first = shards[0]
    known = first.system_columns.setdefault(first.version, {})
    if (schema, table) not in known:
        asked = f"SHOW COLUMNS FROM {quote_identifier(schema)}.{quote_identifier(table)}"
        try:
            found = await context.connections.ask_any(
                shards, lambda shard: shard.control.records(asked)
            )
        except BackendError:
            return ()  # there is no such table, which the server will report
        known[schema, table] = tuple(row["Field"] for row in found)
    return known[schema, table]
