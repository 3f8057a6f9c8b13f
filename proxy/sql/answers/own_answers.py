"""The statements of a session that the proxy answers: what answers each (`answerers`), and with what columns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from streamfrom.proxy.local_statements.show_databases import chosen_databases, show_databases
from streamfrom.proxy.local_statements.show_processlist import columns, rows
from streamfrom.proxy.local_statements.show_status import own_status, with_own_status
from streamfrom.proxy.local_statements.show_vitess import show_vitess, show_vschema
from streamfrom.proxy.local_statements.vexplain import columns_of, is_run
from streamfrom.proxy.local_statements.vindex_rows import vindex_columns, vindex_rows
from streamfrom.proxy.sql.answers.vexplain_answers import explanation, queries_sent
from streamfrom.proxy.sql.compile.answerers import Answerer
from streamfrom.proxy.sql.queues.sequence_statements import COLUMNS as NEXT_COLUMNS
from streamfrom.proxy.sql.session_rights import EVERYTHING
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, Table, column_definition


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.queues.queue_statements import QueueStatements
    from streamfrom.proxy.sql.queues.sequence_statements import SequenceStatements
    from streamfrom.proxy.sql.queues.status_tables import StatusTables
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.status.status_source import Sight
    from streamfrom.sqlparse_ext.statements import Statement

    _Rows: TypeAlias = Callable[[Statement], Awaitable[Table]]
    _Columns: TypeAlias = Callable[[Statement], Sequence[ColumnDefinition]]


_CONNECTION_ID: Final = (
    ColumnDefinition("CONNECTION_ID()", type=FieldType.LONGLONG, length=20),
)


class OwnAnswers:
    """What answers the statements of one session."""

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
        # What returns columns and rows of the proxy's own, and what returns the columns and runs nothing for them.
        self._answers: dict[Answerer, tuple[_Rows, _Columns]] = {
            Answerer.VEXPLAIN: (self._vexplain, lambda each: columns_of(each.shape)),
            Answerer.CONNECTION_ID: (self._connection_id, lambda _: _CONNECTION_ID),
            Answerer.PROCESSLIST: (
                self._processes,
                lambda _: columns(on_mariadb=self._on_mariadb()),
            ),
            Answerer.QUEUES: (queues.show, lambda each: queues.columns(each.shape)),
            Answerer.SEQUENCE: (sequences.next, lambda _: NEXT_COLUMNS),
            Answerer.VINDEX: (self._vindex, lambda each: vindex_columns(each.shape)),
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
        }

    async def answerer(self, statement: Statement) -> Answerer | None:
        """Return what answers *statement*; None if shards do. Raises as `SequenceStatements.asked`."""
        found = self._target.answerer(statement.shape)
        if found is Answerer.SEQUENCE and await self._sequences.asked(statement) is None:
            return None
        return found

    async def run(self, answerer: Answerer, statement: Statement, reply: Reply) -> bool:
        """Answer *statement*; False when its answer is an error. Raises what refuses it."""
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
        if is_run(statement.shape):
            return await queries_sent(self._context, statement, self._run_one)
        return await explanation(self._context, statement)

    async def _connection_id(self, _: Statement) -> Table:
        return _CONNECTION_ID, [(b"%d" % self._context.connection_id,)]

    async def _processes(self, statement: Statement) -> Table:
        processes, on_mariadb = await self._context.others.fleet_processes(), self._on_mariadb()
        return (
            columns(on_mariadb=on_mariadb),
            rows(statement.shape, processes, on_mariadb=on_mariadb),
        )

    async def _vindex(self, statement: Statement) -> Table:
        found = self._target.vindex(statement.shape)
        assert found is not None
        return vindex_columns(statement.shape), vindex_rows(statement, *found)

    async def _listed_in_sight(self, statement: Statement) -> Table:
        shards = self._context.status.shards.values()
        return self._listed(statement, await self._context.rights.sight(shards))

    def _listed(self, statement: Statement, sight: Sight) -> Table:
        catalog, target = self._context.catalog, self._target
        keyspaces = [each for each in catalog.keyspaces if sight.sees(each.name)]
        match target.answerer(statement.shape):
            case Answerer.VSCHEMA:
                view = target.view
                selected = None if view is None else view.keyspace
                return show_vschema(statement.shape, keyspaces, selected)
            case Answerer.VITESS:
                tablets = (each for each in catalog.tablets() if sight.sees(each.keyspace))
                return show_vitess(statement, keyspaces, tablets, target.name)
            case _:
                return show_databases(statement, keyspaces)

    async def _chosen_databases(self, statement: Statement, reply: Reply) -> bool:
        chosen = chosen_databases(statement, self._context.catalog.keyspaces)
        return await self._run_one(self._target.parse(chosen), reply)

    async def _session_status(self, statement: Statement, reply: Reply) -> bool:
        view, database, own = self._target.resolve(statement)
        answer = await self._context.executor.ask(
            view.runtimes[0], database, query(own.sql), own.shape
        )
        assert answer.ok is not None
        reply.head(answer.columns)
        of_client = own_status(self._context.link.tls, self._context.state.capabilities)
        reply.more_rows(with_own_status(answer.rows, of_client))
        reply.end_of_rows(warnings=answer.ok.warnings)
        return True

    def _on_mariadb(self) -> bool:
        return self._target.here().runtimes[0].is_mariadb
