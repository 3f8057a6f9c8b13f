"""INSERTs that need a query first: for the columns if they have no list, or for the rows of an INSERT … SELECT.

Vindexes and sequences find their values by the columns' names. The proxy reads these names for each statement: remembered names could
be older than an ALTER TABLE, and would put a row on a wrong shard. Dumps have no column lists.

The rows of an INSERT … SELECT are read first if no shard can run it alone: a row belongs to another shard than its source, is made from rows
of several shards, or takes a value of a sequence. The rows are read as by any SELECT. In a transaction with
repeatable reads they are locked, as a server locks them; otherwise not, as at READ COMMITTED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.stage import values_row
from streamfrom.proxy.routing.routes import Combine, Merge
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.scatter.two_stage import (
    INSERT_BYTES_MAX,
    INSERT_ROWS_MAX,
    TakenRows,
    TwoStageSelect,
)
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import TableRows
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.writes.insert_gaps import (
    bounded,
    insert_select,
    is_insert_select,
    leaves_out_columns,
    with_columns,
)


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.compile.session_target import StatementTarget
    from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.sqlparse_ext.writes.insert_gaps import InsertSelect


_INVISIBLE = "INVISIBLE"


async def with_named_columns(
    context: SessionContext, place: StatementTarget
) -> StatementTarget:
    """Return *place*, with a column list in its statement if it needs one.

    Raises BackendUnavailable if no server could be queried, BackendError if there is no such table.
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
    names = await context.connections.ask_any(
        view.runtimes, lambda shard: _columns(shard, table)
    )
    named = await context.large_texts.read(
        size_of(place.statement),
        lambda: compiler.target.parse(with_columns(place.statement, names)),
    )
    return place._replace(statement=named)


async def _columns(shard: ShardRuntime, table: str) -> list[str]:
    """Return the columns that an INSERT without a list fills: all but the invisible ones."""
    found = await shard.control.records(f"SHOW COLUMNS FROM {quote_identifier(table)}")
    return [row["Field"] for row in found if _INVISIBLE not in str(row["Extra"]).upper()]


_LOCK: Final = b" LOCK IN SHARE MODE"
# A lock at the end of a query does not lock the rows read within these.
_NOT_LOCKED: Final = Uses.SETOP | Uses.CTE | Uses.SUBQUERY
_NO_REPEATED_READS: Final = frozenset({"READ-COMMITTED", "READ-UNCOMMITTED"})
# In these a text is read and written as the same bytes, and none of its characters is read as '?'.
_CHARSETS: Final = frozenset({None, "", "utf8mb4"})


def reads_first(compiler: StatementCompiler, view: View, statement: Statement) -> bool:
    """Return whether *statement* is an INSERT … SELECT whose rows must be read before they are inserted."""
    shape = statement.shape
    if not is_insert_select(shape):
        return False
    assert shape.insert is not None
    auto = compiler.sequence_of(view, shape)
    names = shape.insert.columns or view.columns_of(shape.tables[0].name)
    if auto is not None and names and auto.column not in names:
        return True
    try:
        view.planner.plan(shape).route(statement)
    except Unsupported:
        return True
    return False


async def with_rows(
    context: SessionContext, place: StatementTarget, reply: Reply
) -> StatementTarget | None:
    """Return *place* with the INSERT of the rows that its statement selects; return any other statement unchanged.

    Return None, after answering the client, if no rows were selected.

    Raises as any SELECT, and Unsupported for too many rows, or texts of rows that do not show their values exactly.
    """
    view, compiler, target = place.view, context.compiler, context.compiler.target
    if not reads_first(compiler, view, place.statement):
        return place
    settings = context.state.settings.values
    if (
        not {settings.get(f"character_set_{what}") for what in ("client", "results")}
        <= _CHARSETS
    ):
        raise Unsupported(
            "INSERT … SELECT over several shards in such a character set; SET NAMES utf8mb4"
        )
    # Before the query is taken out, moments for time columns become nanoseconds in it.
    whole = compiler.compile(view, place.statement).statement
    parts = insert_select(whole)
    text = parts.query
    asked = target.parse(text)
    lock = _lock(context, asked)
    locked = target.parse(text + lock) if lock else asked
    route = view.planner.plan(locked.shape).route(locked)
    bytes_max = min(context.config.merge_memory_bytes, INSERT_BYTES_MAX)
    taken = TakenRows(bytes_max, "INSERT … SELECT")
    several = TwoStageSelect(context, place.database, view.runtime)
    with context.state.select_limit():
        await several.take(locked, bounded(asked, INSERT_ROWS_MAX + 1, lock), route, taken)
    if not taken.rows:
        await _answer_none(context, place, parts, taken, reply)
        return None
    columns = [parse_column_definition(each) for each in taken.columns]
    escapes = SqlMode.NO_BACKSLASH_ESCAPES not in whole.mode
    is_summed = (isinstance(route, Merge) and route.in_groups) or (
        isinstance(route, Combine) and isinstance(route.parts, TableRows)
    )
    rows = [parse_text_row(row, len(columns)) for row in taken.rows]
    values = b", ".join(
        values_row(
            columns,
            row,
            backslash_escapes=escapes,
            is_summed=is_summed,
        )
        for row in rows
    )
    return place._replace(statement=target.parse(parts.giving(b"VALUES " + values)))


async def _answer_none(
    context: SessionContext,
    place: StatementTarget,
    parts: InsertSelect,
    taken: TakenRows,
    reply: Reply,
) -> None:
    """Answer a statement that selected no rows."""
    if not place.statement.shape.uses & Uses.RETURNING:
        reply.ok(info=b"Records: 0  Duplicates: 0  Warnings: 0")
        return
    # A server knows the columns that the rows would have: it inserts none either.
    nulls = b", ".join([b"NULL"] * len(taken.columns))
    sql = parts.giving(b"SELECT %b FROM DUAL WHERE FALSE" % nulls)
    none = context.compiler.target.parse(sql)
    answer = await context.executor.ask(
        place.view.runtimes, place.database, query(none.sql), none.shape
    )
    await reply.returned(answer.columns, ())


def _lock(context: SessionContext, asked: Statement) -> bytes:
    """Return the locking clause that keeps the query's rows unchanged until the transaction ends."""
    settings = context.state.settings
    isolation = settings.values.get("transaction_isolation") or settings.values.get(
        "tx_isolation"
    )
    in_transaction = context.executor.branches.in_transaction or not settings.autocommit
    if not in_transaction or isolation in _NO_REPEATED_READS:
        return b""
    if asked.shape.uses & Uses.LOCKING_READ:
        return b""
    if asked.shape.uses & _NOT_LOCKED:
        raise Unsupported(
            "INSERT … SELECT with UNION, WITH or a subquery over several shards in a transaction"
            " that repeats its reads; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
        )
    return _LOCK
