"""The schema `streamfrom`: `queues`, `streams`, `shards`, `members` and `set_aside`, as tables that any SELECT reads.

A server evaluates the statement: it is sent with the rows before it, as common table expressions over one JSON
text. So WHERE, ORDER BY, GROUP BY, joins among these tables and every function mean what they mean there.
SHOW QUEUE STATUS, and a SELECT of columns of one table and nothing more, need no server: they are read when none answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableNotFound
from streamfrom.proxy.errors import NoDescriptor, PoolTimeout, ServerFull
from streamfrom.proxy.local_statements.show_keyspaces import like_pattern, pattern_text
from streamfrom.proxy.merge.stage import json_table
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.proxy.status.status_rows import (
    QUEUE_STATUS,
    SCHEMA,
    TABLES,
    SqlType,
    is_own_schema,
)
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, Table, column_definition
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from streamfrom.sqlparse_ext.reading.database_names import database_names, renamed
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import literal, quoted
from streamfrom.sqlparse_ext.text.lexer import locate, splice
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.routed_statements import RoutedStatements
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.status.status_rows import StatusRow, StatusValue


_FROM: Final = frozenset({"FROM", "IN"})
_FIELDS: Final = {
    SqlType.NAME: FieldType.VAR_STRING,
    SqlType.TEXT: FieldType.VAR_STRING,
    SqlType.COUNT: FieldType.LONGLONG,
    SqlType.DOUBLE: FieldType.DOUBLE,
}


class StatusTables:
    """Answers one session's statements on these tables."""

    def __init__(self, context: SessionContext, routed: RoutedStatements) -> None:
        self._context = context
        self._target = context.compiler.target
        self._routed = routed

    async def run(self, statement: Statement, reply: Reply) -> bool:
        """Answer *statement*, which reads these tables; False if its answer is an error.

        Raises TableNotFound, Unsupported if it reads other tables as well, SqlError for another form of SHOW.
        """
        if (table := await self._table(statement)) is not None:
            reply.rows(*table)
            return True
        query = self._target.parse(await self.text(statement))
        shards = self._shards()
        try:
            return await self._routed.on_shard(shards, None, CompiledStatement(query), reply)
        except (ServerFull, PoolTimeout, NoDescriptor):
            if self._context.state.account.is_own:
                raise  # the text may call functions that only the shards' account may call
            # An operator who looks for the cause still needs an answer: use the proxy's own connections.
            shard, *_ = self._context.connections.choices(shards)
            columns, rows = await shard.control.table(query.sql.decode())
            reply.rows(columns, rows)
            return True

    async def definitions(self, statement: Statement) -> list[bytes]:
        """Return the columns of the answer to *statement*, as a server describes them. Raises as `run`."""
        if (table := await self._table(statement)) is not None:
            capabilities = self._context.state.capabilities
            return [column_definition(each, capabilities) for each in table[0]]
        sql = await self.text(statement)
        return (await self._context.executor.prepare_on(self._shards(), None, sql)).columns

    def _shards(self) -> tuple[ShardRuntime, ...]:
        """Return the shards that can evaluate, those of the session's target first."""
        return self._context.catalog.every_shard(self._target.here())

    async def text(self, statement: Statement) -> bytes:
        """Return the text for the server. Raises as `run`."""
        shape = statement.shape
        if shape.kind is Kind.SHOW:
            return _show_tables(statement)
        spelled = self._names(shape)
        named = (each.name for each in database_names(shape).places)
        edits = renamed(shape, dict.fromkeys(filter(is_own_schema, named)))
        sql = splice(statement.sql, statement.mode, edits)
        if shape.verb != "WITH":
            return await self._with_rows(spelled) + sql
        tokens = statement_tokens(self._target.parse(sql).shape.template)
        place = next(index for index, token in enumerate(tokens) if token.key == "WITH")
        if tokens[place + 1].key == "RECURSIVE":
            place += 1
        (end,) = locate(sql, statement.mode, (tokens[place].end,))
        rows = await self._with_rows(spelled)
        return sql[:end] + rows.removeprefix(b"WITH").rstrip() + b"," + sql[end:]

    async def _table(self, statement: Statement) -> Table | None:
        """Return the answer to a statement that needs no server, None for any other. Raises as `run`."""
        shape = statement.shape
        if shape.kind is not Kind.SHOW:
            (name, *more), columns = self._names(shape), columns_alone(shape.template)
            if more or columns is None:
                return None
            known = {column.name: at for at, column in enumerate(TABLES[name.lower()])}
            chosen = [(each, known.get(each.lower())) for each in columns or known]
            places = [(each, at) for each, at in chosen if at is not None]
            if len(places) < len(chosen):
                return None  # a server words the error
            return _shown(
                name.lower(), places, (await self._rows({name.lower()}))[name.lower()]
            )
        if shape.words[:2] != QUEUE_STATUS:
            return None
        is_asked = self._queue_status(statement)
        rows = [row for row in (await self._rows({"queues"}))["queues"] if is_asked(row)]
        return _shown("queues", [(c.name, at) for at, c in enumerate(TABLES["queues"])], rows)

    async def _rows(self, names: set[str]) -> dict[str, list[StatusRow]]:
        context = self._context
        sight = await context.rights.sight(context.status.shards.values() if names else ())
        return await context.status.rows(names, context.others.viewer(sight))

    async def _with_rows(self, spelled: Iterable[str]) -> bytes:
        """Return common table expressions of the tables, under the names that the statement has for them."""
        names = {name: name.lower() for name in sorted(spelled)}
        rows = await self._rows(set(names.values()))
        expressions = [
            b"%b AS (SELECT * FROM %b)" % (quoted(name), _rows_of(table, rows[table]))
            for name, table in names.items()
        ]
        return b"WITH " + b", ".join(expressions) + b" " if expressions else b""

    def _names(self, shape: Shape) -> set[str]:
        """Return the tables that a SELECT reads, as it spells them. Raises as `run`."""
        here = self._target.schema
        if shape.uses & Uses.UNPARSED:
            raise Unsupported(
                f"tables of {SCHEMA} in a statement that is not understood; write it more plainly"
            )
        for table in shape.tables:
            if not is_own_schema(table.schema or here):
                raise Unsupported(
                    f"tables of {SCHEMA} together with others in one statement; select from them alone"
                )
            if table.name.lower() not in TABLES:
                raise TableNotFound(SCHEMA, table.name)
        return {table.name for table in shape.tables}

    def _queue_status(self, statement: Statement) -> Callable[[StatusRow], bool]:
        """Return which rows of `queues` a SHOW QUEUE STATUS requests."""
        tokens = statement_tokens(statement.shape.template)[3:]
        view, keyspace = self._target.view, None
        if tokens and tokens[0].key in _FROM:
            if statement.shape.target is None:
                raise SqlError("FROM takes a keyspace")
            keyspace = self._target.lookup(statement.shape.target).keyspace.name
            tokens = tokens[2:]
        elif view is not None and view.schema is None:
            keyspace = view.keyspace.name
        if tokens and (len(tokens) != 2 or tokens[0].key != "LIKE" or tokens[1].slot is None):
            raise SqlError("SHOW QUEUE STATUS takes FROM and LIKE")
        matches = like_pattern(pattern_text(statement) if tokens else "%").fullmatch
        return lambda row: keyspace in {None, row[0]} and matches(str(row[1])) is not None


def columns_alone(template: bytes) -> list[str] | None:
    """Return the columns of a `SELECT a, b FROM t`, none for `*`; None for a SELECT that has more to it."""
    tokens = statement_tokens(template)
    keys = [token.key for token in tokens]
    at = keys.index("FROM") if keys[0] == "SELECT" and "FROM" in keys else 0
    listed, source = tokens[1:at:2], keys[at + 2 :]
    is_list = listed and not at % 2 and {*keys[2:at:2]} <= {","}
    if not is_list or source[:1] not in ([], ["."]) or len(source) > 2:
        return None
    if keys[1:at] == ["*"]:
        return []
    return (
        [unquote(each, template) for each in listed] if all(t.is_name for t in listed) else None
    )


def _shown(table: str, places: Sequence[tuple[str, int]], rows: Iterable[StatusRow]) -> Table:
    """Return columns of *rows* as an answer. places: the name of each there, and its number in the table."""
    types = [column.type for column in TABLES[table]]
    return [ColumnDefinition(name, type=_FIELDS[types[at]]) for name, at in places], [
        tuple(_text(row[at]) for _, at in places) for row in rows
    ]


def _text(value: StatusValue) -> bytes | None:
    if value is None:
        return None
    # As servers write a DOUBLE.
    return (f"{value:.15g}" if isinstance(value, float) else str(value)).encode()


def _show_tables(statement: Statement) -> bytes:
    names = b" UNION ALL ".join(
        b"SELECT %b AS Tables_in_streamfrom" % literal(name.encode()) for name in TABLES
    )
    full = b", 'SYSTEM VIEW' AS Table_type" if statement.shape.words[0] == "FULL" else b""
    like = b""
    if statement.shape.words[-1:] == ("LIKE",) and statement.literals:
        like = b" WHERE Tables_in_streamfrom LIKE " + literal(pattern_text(statement).encode())
    return b"SELECT Tables_in_streamfrom%b FROM (%b) AS t%b" % (full, names, like)


def _rows_of(table: str, rows: Sequence[StatusRow]) -> bytes:
    columns = [(column.name, column.type) for column in TABLES[table]]
    return json_table(columns, (json.dumps(row).encode() for row in rows), table)
