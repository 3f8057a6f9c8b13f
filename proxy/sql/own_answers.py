"""Answer the statements that the proxy answers itself: the handler of each `Answerer`, and its columns.

VEXPLAIN compiles and routes a statement as if it ran.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from streamfrom.proxy.local_statements.show_keyspaces import (
    chosen_databases,
    show_databases,
    show_vitess,
    show_vschema,
)
from streamfrom.proxy.local_statements.show_processlist import (
    columns,
    own_status,
    rows,
    with_own_status,
)
from streamfrom.proxy.local_statements.vexplain import (
    COLUMNS,
    check_form,
    explain_filled,
    explain_plan,
    explain_stream,
)
from streamfrom.proxy.rights.questions import take
from streamfrom.proxy.sql.compile.answerers import Answerer, tables_column
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.queues.sequence_statements import COLUMNS as NEXT_COLUMNS
from streamfrom.proxy.sql.scatter.insert_selects import with_named_columns
from streamfrom.proxy.sql.session_rights import EVERYTHING
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    Table,
    column_definition,
    parse_column_definition,
)
from streamfrom.sqlparse_ext.reading.parser import explained_text


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
    from streamfrom.proxy.sql.queues.queue_statements import QueueStatements
    from streamfrom.proxy.sql.queues.sequence_statements import SequenceStatements
    from streamfrom.proxy.sql.queues.status_tables import StatusTables
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.status.status_source import Sight
    from streamfrom.sqlparse_ext.statements import Statement

    _Rows: TypeAlias = Callable[[Statement], Awaitable[Table]]
    _Columns: TypeAlias = Callable[[Statement], Sequence[ColumnDefinition]]


class OwnAnswers:
    """The handlers of the statements that one session's proxy answers."""

    def __init__(
        self,
        context: SessionContext,
        run_one: Callable[[Statement, Reply], Awaitable[bool]],
        queues: QueueStatements,
        sequences: SequenceStatements,
        status_tables: StatusTables,
    ) -> None:
        self._context = context
        self._target = context.compiler.target
        self._run_one = run_one
        self._sequences = sequences
        self._status_tables = status_tables
        listed = self._listed_in_sight, lambda each: self._listed(each, EVERYTHING)[0]
        # By answerer: a function that returns the proxy's own columns and rows, and one that returns the columns and runs nothing.
        self._answers: dict[Answerer, tuple[_Rows, _Columns]] = {
            Answerer.VEXPLAIN: (self._vexplain, lambda _: COLUMNS),
            Answerer.PROCESSLIST: (
                self._processes,
                lambda _: columns(on_mariadb=self._on_mariadb()),
            ),
            Answerer.QUEUES: (queues.show, lambda each: queues.columns(each.shape)),
            Answerer.SEQUENCE: (sequences.next, lambda _: NEXT_COLUMNS),
            Answerer.VITESS: listed,
            Answerer.VSCHEMA: listed,
            Answerer.DATABASES: listed,
            Answerer.CHOSEN_DATABASES: listed,
        }
        # A server makes these rows.
        self._relayed: dict[Answerer, Callable[[Statement, Reply], Awaitable[bool]]] = {
            Answerer.CHOSEN_DATABASES: self._chosen_databases,
            Answerer.STATUS_TABLES: status_tables.run,
            Answerer.SESSION_STATUS: self._session_status,
            Answerer.TABLES: self._tables,
        }

    async def answerer(self, statement: Statement) -> Answerer | None:
        """Return the answerer of *statement*; None for shards. Raises as `SequenceStatements.asked`."""
        found = self._target.answerer(statement.shape)
        if found is Answerer.SEQUENCE and await self._sequences.asked(statement) is None:
            return None
        return found

    async def run(self, answerer: Answerer, statement: Statement, reply: Reply) -> bool:
        """Answer *statement*; False if its answer is an error. Raises the reason if it is refused."""
        if (relay := self._relayed.get(answerer)) is not None:
            return await relay(statement, reply)
        rows, _ = self._answers[answerer]
        reply.rows(*await rows(statement))
        return True

    async def columns(self, answerer: Answerer, statement: Statement) -> list[bytes]:
        """Return the columns of the answer to *statement*, as packets. Raises as `run`."""
        if answerer is Answerer.STATUS_TABLES:
            return await self._status_tables.definitions(statement)
        _, columns_of_answer = self._answers[answerer]
        capabilities = self._context.state.capabilities
        return [column_definition(each, capabilities) for each in columns_of_answer(statement)]

    async def _vexplain(self, statement: Statement) -> Table:
        return await explanation(self._context, statement)

    async def _processes(self, statement: Statement) -> Table:
        processes, on_mariadb = await self._context.others.fleet_processes(), self._on_mariadb()
        return (
            columns(on_mariadb=on_mariadb),
            rows(statement.shape, processes, on_mariadb=on_mariadb),
        )

    async def _sight(self) -> Sight:
        return await self._context.rights.sight(self._context.status.shards.values())

    def _keyspaces(self, sight: Sight) -> list[Keyspace]:
        return [each for each in self._context.catalog.keyspaces if sight.sees(each.name)]

    async def _listed_in_sight(self, statement: Statement) -> Table:
        return self._listed(statement, await self._sight())

    def _listed(self, statement: Statement, sight: Sight) -> Table:
        target, keyspaces = self._target, self._keyspaces(sight)
        match target.answerer(statement.shape):
            case Answerer.VSCHEMA:
                view = target.view
                selected = None if view is None else view.keyspace
                return show_vschema(statement.shape, keyspaces, selected)
            case Answerer.VITESS:
                tablets = self._context.catalog.tablets()
                seen = (each for each in tablets if sight.sees(each.keyspace))
                return show_vitess(statement, keyspaces, seen)
            case _:
                return show_databases(statement, keyspaces)

    async def _chosen_databases(self, statement: Statement, reply: Reply) -> bool:
        chosen = chosen_databases(statement, self._keyspaces(await self._sight()))
        return await self._run_one(self._target.parse(chosen), reply)

    async def _session_status(self, statement: Statement, reply: Reply) -> bool:
        view, database, own = await self._context.large_texts.read(
            size_of(statement), self._target.resolve, statement
        )
        answer = await self._context.executor.ask(
            self._target.any_of(view, database, own.shape), database, query(own.sql), own.shape
        )
        assert answer.ok is not None
        reply.head(answer.columns)
        of_client = own_status(self._context.link.tls, self._context.state.capabilities)
        reply.more_rows(with_own_status(answer.rows, of_client))
        reply.end_of_rows(warnings=answer.ok.warnings)
        return True

    async def _tables(self, statement: Statement, reply: Reply) -> bool:
        view, database, own = await self._context.large_texts.read(
            size_of(statement), self._target.resolve, statement
        )
        capabilities = self._context.state.capabilities
        shards, packet = self._target.any_of(view, database, own.shape), query(own.sql)
        answer = await self._context.executor.ask(shards, database, packet, own.shape)
        assert answer.ok is not None
        first = parse_column_definition(answer.columns[0])
        shown = statement.shape.target or self._target.name
        if shown == database:  # a prepared statement has the names of real databases
            shown = view.name
        name = first.name.replace(tables_column(database), tables_column(shown), 1)
        renamed = column_definition(replace(first, name=name), capabilities)
        reply.head([renamed, *answer.columns[1:]])
        reply.more_rows(answer.rows)
        reply.end_of_rows(warnings=answer.ok.warnings)
        return True

    def _on_mariadb(self) -> bool:
        return self._target.here().is_mariadb


# --- VEXPLAIN ----------------------------------------------------------------------------------


async def explanation(context: SessionContext, statement: Statement) -> Table:
    """Return the answer to a *statement* that `is_vexplain`. Raises the errors that the inner statement raises before it is sent."""
    compiler, target = context.compiler, context.compiler.target
    read, size = context.large_texts.read, size_of(statement)
    inner = await read(size, _explained, compiler, statement)
    if inner.shape.stream is not None:
        view, table = target.stream_source(inner.shape.stream.table)
        columns = table.project(inner.shape.stream.columns)
        await context.rights.check(view.runtimes, take(table, columns))
        return COLUMNS, [(explain_stream(view.keyspace, view.shards, table.name),)]
    place = await with_named_columns(context, await read(size, target.resolve, inner))
    view = place.view
    auto = compiler.sequence_of(view, place.statement.shape)
    if auto is not None:
        gaps = await read(size, compiler.gaps, view, place.statement, auto.column)
        if len(gaps):
            plan = explain_filled(place.statement, view.keyspace, auto.sequence, len(gaps))
            return COLUMNS, [(plan,)]
    step, route = await read(size, compiler.routed, view, place.statement)
    return COLUMNS, [(explain_plan(step.statement, view.keyspace, view.shards, route),)]


def _explained(compiler: StatementCompiler, statement: Statement) -> Statement:
    check_form(statement.shape)
    text = explained_text(statement)
    assert text is not None
    inner = compiler.target.parse(text)
    compiler.check(inner)
    return inner
