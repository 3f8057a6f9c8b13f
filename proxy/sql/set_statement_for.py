"""MariaDB's `SET STATEMENT … FOR statement`: variables for one statement.

The statement after FOR is routed, completed on a message table and reported to the engine as if it stood alone. It is sent with
the variables in front of it. A prepared query for one server is sent as it is: Connector/J sets time-outs and limits of rows
that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import NotPreparable
from streamfrom.proxy.routing.routes import OneShard
from streamfrom.proxy.sql.compile.answerers import HAS_EXPRESSIONS
from streamfrom.proxy.sql.compile.session_target import StatementTarget
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.session_settings import split_set_statement
from streamfrom.sqlparse_ext.statements import Kind, Statement


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.session_target import SessionTarget
    from streamfrom.proxy.sql.queues.stream_statements import StreamStatements
    from streamfrom.proxy.sql.routed_statements import RoutedStatements
    from streamfrom.proxy.sql.session_context import SessionContext


# Kinds that change state of the proxy, which no server has.
_OF_THE_PROXY: Final = frozenset({Kind.USE, Kind.KILL})
# Kinds answered by an OK, which is the same in both protocols.
_WITHOUT_ROWS: Final = frozenset(
    {Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL}
)


async def run_set_statement(
    statement: Statement,
    reply: Reply,
    context: SessionContext,
    routed: RoutedStatements,
    streams: StreamStatements,
) -> bool:
    """Run a SET STATEMENT; False when its answer is an error.

    Raises:
        Unsupported: several shards would have to answer, or the proxy itself.
        NotPreparable: a prepared statement that returns rows, and of which `is_plain_query` is false.
        TableLoadError: as the statement alone.
    """
    compiler, target = context.compiler, context.compiler.target
    read, size = context.large_texts.read, len(statement.sql)
    parts = await read(size, split_set_statement, statement)
    view = target.here()
    if parts is None:
        # The statement is malformed, and the server reports it.
        return await routed.on_shard(
            view.runtimes[0], target.database, CompiledStatement(statement), reply
        )
    variables, text = parts
    inner = await read(size, target.parse, text)
    if inner.shape.kind in _OF_THE_PROXY or target.answerer(inner.shape) not in HAS_EXPRESSIONS:
        raise Unsupported(f"SET STATEMENT for {inner.shape.verb}; SET SESSION before it")
    if reply.binary and inner.shape.kind not in _WITHOUT_ROWS:
        raise NotPreparable(f"SET STATEMENT for {inner.shape.verb}")
    if inner.shape.kind is Kind.STREAM:
        return await streams.run(inner, reply)
    if compiler.sequence_of(view, inner.shape) is not None:
        raise Unsupported(
            "SET STATEMENT for an INSERT that takes values of a sequence; SET SESSION before it"
        )
    place = await read(size, target.resolve, inner)
    step, route = await read(
        size,
        compiler.routed,
        place.view,
        place.statement,
        has_own_clock=b"timestamp" in variables.lower(),
    )
    if not isinstance(route, OneShard):
        raise Unsupported("SET STATEMENT over several shards")
    whole = await read(size, target.parse, variables + b" " + step.statement.sql.lstrip())
    shard = place.view.runtime(route.shard)
    return await routed.on_shard(
        shard, place.database, CompiledStatement(whole, step.table, step.effect), reply
    )


def is_plain_query(statement: Statement, target: SessionTarget) -> bool:
    """Return whether a SET STATEMENT is a SELECT that the session's one shard can be sent as written.

    Raises what the SELECT alone raises.
    """
    parts = split_set_statement(statement)
    here = target.view
    if parts is None or here is None or here.is_sharded:
        return False
    inner = target.parse(parts[1])
    answerer = target.answerer(inner.shape)
    if inner.shape.kind is not Kind.SELECT or answerer not in HAS_EXPRESSIONS:
        return False
    return target.resolve(inner) == StatementTarget(here, target.database, inner)
