"""The commands of the binary protocol: COM_STMT_PREPARE, EXECUTE, FETCH, RESET and CLOSE.

An execution is carried out in one of four ways:

* A statement for one shard is sent there as COM_STMT_EXECUTE, routed by the values bound.
* A statement that the proxy carries out (USE, BEGIN, SET, DDL, STREAM, SHOW DATABASES) runs as its text would, with the
  values put in. Its rows are converted to the binary protocol.
* A statement for several shards runs as text, too: a write, or a query whose rows are merged.
* So does a write whose text holds the time (`time_acked = NOW()`). The answer to a write is an OK, which is the same in
  both protocols.

USE, BEGIN and the like can be prepared with every server behind the proxy, as on MariaDB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import (
    BackendError,
    BadArguments,
    CutTypes,
    EmptyQuery,
    MalformedPacket,
    NoOpenCursor,
    WireError,
)
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.diagnostics_queries import ASKS_BACK
from streamfrom.proxy.execution.prepared_execution import CursorExecution, Execution
from streamfrom.proxy.routing.routes import Combine, Merge, OneShard, WriteParts
from streamfrom.proxy.sql.compile.answerers import PREPARED_BY_SHARDS, RETOLD
from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
from streamfrom.proxy.sql.scatter.insert_selects import reads_first, with_named_columns
from streamfrom.proxy.sql.set_variables import is_plain_query, sets_vitess_variables
from streamfrom.proxy.wire.binary_parameters import with_types
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.prepare_response import PARAMETER, PrepareReader
from streamfrom.proxy.wire.response_reader import AnswerKind
from streamfrom.proxy.wire.resultset import column_definition
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.statements import Kind, Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import as_text


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.session_target import StatementTarget
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.sql.statement_runner import StatementRunner
    from streamfrom.proxy.wire.commands import StmtExecute


# Kinds whose syntax a server checks at the PREPARE.
_CHECKED: Final = frozenset({Kind.SET, Kind.DDL})
# Kinds whose rows a server keeps for a cursor, if one is asked for.
_OPEN_CURSORS: Final = frozenset({Kind.SELECT, Kind.SHOW, Kind.EXPLAIN})
_NOT_PREPARABLE: Final = 1295
_CURSOR_READ_ONLY: Final = 1
_CURSOR_EXISTS: Final = int(Status.CURSOR_EXISTS)
_LAST_ROW_SENT: Final = int(Status.LAST_ROW_SENT)


class PreparedCommands:
    """The commands for the prepared statements of one session."""

    def __init__(
        self, context: SessionContext, statements: StatementRunner, table: PreparedStatements
    ) -> None:
        self._context = context
        self._state = context.state
        self._executor = context.executor
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._registry = context.registry
        self._statements = statements
        self._routed = statements.routed
        self._table = table
        self._long_data_bytes_max = context.config.max_allowed_packet_bytes

    # --- COM_STMT_PREPARE -----------------------------------------------------------------

    async def prepare(self, sql: bytes, reply: Reply) -> None:
        """Prepare a statement, and answer with its parameters and columns. Raises what every execution would raise."""
        self._table.begin()
        read, size = self._large_texts.read, len(sql)
        statement = await read(size, self._target.parse, sql)
        shape = statement.shape
        if shape.kind is Kind.EMPTY and not sql.strip(b"; \t\n\r\f\v"):
            raise EmptyQuery
        if shape.uses & Uses.MULTIPLE:
            texts = await read(size, split_statements, statement.sql, statement.mode)
            if len(texts) > 1:
                raise await read(size, self._compiler.one_at_a_time, statement)
            statement = await read(size, self._target.parse, texts[0])
        await read(size, self._compiler.check, statement)
        answerer = await self._statements.answers.answerer(statement)
        if answerer not in PREPARED_BY_SHARDS or (
            shape.kind in self._statements.own_kinds
            and not is_plain_query(statement, self._target)
        ):
            await self._prepare_own(statement, reply)
        else:
            # The client's user stays the same for as long as the statement exists.
            await self._prepare_on_shard(
                await self._statements.with_identity(statement, locks=False), reply
            )

    async def _prepare_own(self, statement: Statement, reply: Reply) -> None:
        warnings = 0
        if statement.shape.kind in _CHECKED and not sets_vitess_variables(statement):
            place = self._target.resolve(statement)
            try:
                warnings = (await self._ask(PreparedStatement(place.statement, place))).warnings
            except BackendError as error:
                # The server runs it as text only, and is sent it as text.
                if error.code != _NOT_PREPARABLE:
                    raise
        prepared = PreparedStatement(statement, None)
        columns = await self._statements.definitions(statement)
        self._table.add(prepared)
        parameter = column_definition(PARAMETER, self._state.capabilities)
        await reply.prepared(prepared.id, [parameter] * prepared.count, columns, warnings)

    async def _prepare_on_shard(self, statement: Statement, reply: Reply) -> None:
        read, size = self._large_texts.read, len(statement.sql)
        place = await read(size, self._target.resolve, statement)
        place = await with_named_columns(self._context, place)
        await self._context.rights.learn(place.view, place.statement.shape)
        prepared = await read(size, self._planned, place)
        answer = await self._ask(prepared)
        prepared.counted(len(answer.parameters))
        self._table.add(prepared)
        await reply.prepared(prepared.id, answer.parameters, answer.columns, answer.warnings)

    def _planned(self, place: StatementTarget) -> PreparedStatement:
        """Return the prepared statement. Raises what every execution would raise."""
        prepared = PreparedStatement(place.statement, place)
        prepared.settle(self._compiler, self._registry)
        # A statement that no value makes possible is refused now, as servers do, and not at its first execution.
        sample = prepared.original.bind((1,) * prepared.count, lambda _: b"1")
        text = self._target.parse(as_text(sample))
        if reads_first(self._compiler, place.view, text):
            return prepared
        filled = self._compiler.sample(place.view, text)
        place.view.planner.plan(filled.shape)
        return prepared

    async def _ask(self, prepared: PreparedStatement) -> PrepareReader:
        """Prepare a statement on a shard; return its answer, with the columns and the parameters."""
        place = prepared.place
        assert place is not None
        runtimes = place.view.runtimes
        held = self._executor.branches.held
        # A table that the transaction has just made, or a temporary one, is known on its
        # connection alone.
        shard = next((shard for shard in runtimes if shard in held), runtimes[0])
        if prepared.statement is None:
            sql = self._compiler.asked(place.view, prepared.original)
        else:
            sql = prepared.statement.sql
        return await self._executor.prepare_on(shard, place.database, sql)

    # --- COM_STMT_EXECUTE -----------------------------------------------------------------

    async def execute(self, command: StmtExecute, reply: Reply) -> None:
        """Execute a statement, and answer the client. Raises whatever stops it."""
        prepared = self._table.find(command.statement_id, _EXECUTE)
        # As the manual says: executing a statement again closes its open cursor.
        self.close_cursor(prepared)
        reply.binary = True
        reply.asks_cursor = bool(command.flags & _CURSOR_READ_ONLY)
        try:
            if isinstance(prepared.fault, WireError):
                raise BadArguments(_SEND_LONG_DATA)
            if prepared.fault is not None:
                raise prepared.fault
            await self._run(prepared, command, reply)
            prepared.has_empty_cursor = reply.has_cursor
        except WireError as error:
            view = self._target.view if prepared.place is None else prepared.place.view
            on_mariadb = view is not None and view.runtimes[0].is_mariadb
            if on_mariadb and not isinstance(error, CutTypes):
                raise BadArguments(_EXECUTE) from None
            raise MalformedPacket(on_mariadb=on_mariadb) from None
        finally:
            prepared.drop_long_data()

    async def _run(
        self, prepared: PreparedStatement, command: StmtExecute, reply: Reply
    ) -> None:
        prepared.take_types(command.body)
        if not self._executor.branches.held:
            self._target.leave_ailing_replicas()
        if prepared.place is None:
            await self._run_as_text(prepared, command, reply)
            return
        read = self._large_texts.read
        size = max(len(prepared.original.sql), len(command.body))
        await read(size, prepared.settle, self._compiler, self._registry)
        shape = prepared.original.shape
        if (
            prepared.statement is None
            or shape.uses & (ASKS_BACK | Uses.ADVISORY_LOCK)
            or self._target.answerer(shape) in RETOLD
        ):
            await self._run_as_text(prepared, command, reply)
            return
        bound = await read(
            size, prepared.bind, prepared.statement, command.body, self._state.settings
        )
        if prepared.takes_back(bound):
            await self._run_as_text(prepared, command, reply)
            return
        prepared.place = prepared.place._replace(view=self._target.current(prepared.place.view))
        view, database, _ = prepared.place
        try:
            route = await read(size, lambda: view.planner.plan(bound.shape).route(bound))
        except Unsupported:
            # The values may make a merge possible, as those of LIMIT ? do.
            await self._run_as_text(prepared, command, reply)
            return
        # Each shard gets a text of its own, so the prepared statement cannot be used.
        if isinstance(route, WriteParts | Merge | Combine):
            await self._run_as_text(prepared, command, reply)
            return
        step = await read(size, self._compiler.compile_bound, view, bound)
        body = with_types(command.body, prepared.count, prepared.types)
        opens_cursor = reply.asks_cursor and bound.shape.kind in _OPEN_CURSORS
        if opens_cursor and isinstance(route, OneShard):
            shard = view.runtime(route.shard)
            execution = CursorExecution(bound.sql, body, prepared.count, prepared.long_data)
            await self._open_cursor(prepared, shard, execution, reply)
            return
        key = prepared.key(self._state.settings)
        packet = Execution(key, body, prepared.count, prepared.long_data)
        await self._routed.run(view, database, step, route, reply, packet)

    async def _run_as_text(
        self, prepared: PreparedStatement, command: StmtExecute, reply: Reply
    ) -> None:
        read = self._large_texts.read
        size = max(len(prepared.original.sql), len(command.body))
        bound = await read(
            size, prepared.bind, prepared.original, command.body, self._state.settings
        )
        if prepared.count and bound.arguments is None:
            raise Unsupported(
                "parameters inside a comment in this prepared statement; write them outside"
            )
        if bound.shape.kind is Kind.STREAM:
            # As text, a LIMIT below 0 would be a syntax error at a place that the client never wrote.
            await self._statements.run_one(bound, reply)
            return
        text = await read(size, lambda: self._target.parse(as_text(bound)))
        self._compiler.check(text)  # a value may be a keyspace's name
        await self._statements.run_one(text, reply)

    # --- cursors --------------------------------------------------------------------------

    async def _open_cursor(
        self,
        prepared: PreparedStatement,
        shard: ShardRuntime,
        execution: CursorExecution,
        reply: Reply,
    ) -> None:
        assert prepared.place is not None
        shape, database = prepared.original.shape, prepared.place.database
        try:
            attempt = Attempt(shard, database, execution, shape, reply)
            scanner = await self._executor.relay(attempt)
        except BaseException:
            execution.close()
            raise
        if scanner.status & _CURSOR_EXISTS:
            prepared.cursor, prepared.cursor_shard = execution, shard
        else:
            # The statement was refused, or the server sends the rows at once.
            execution.close()

    async def fetch(self, statement_id: int, rows: int, reply: Reply) -> None:
        """Send *rows* more rows of an open cursor. Raises NoOpenCursor, also if the cursor's connection is gone."""
        prepared = self._table.find(statement_id, _FETCH)
        if prepared.has_empty_cursor:
            self.close_cursor(prepared)
            reply.end_of_rows(status=_LAST_ROW_SENT)
            return
        cursor, shard, place = prepared.cursor, prepared.cursor_shard, prepared.place
        if cursor is None or shard is None or place is None:
            raise NoOpenCursor(prepared.id)
        packet = cursor.fetch(prepared.id, rows)
        shape = prepared.original.shape
        try:
            attempt = Attempt(shard, place.database, packet, shape, reply)
            scanner = await self._executor.relay(attempt, answer=AnswerKind.ROWS)
        except BaseException:
            self.close_cursor(prepared)
            raise
        if scanner.error is not None or scanner.status & _LAST_ROW_SENT:
            self.close_cursor(prepared)

    def close_cursor(self, prepared: PreparedStatement) -> None:
        """Close the cursor of a statement, if it has one."""
        cursor, shard = prepared.cursor, prepared.cursor_shard
        prepared.cursor = prepared.cursor_shard = None
        prepared.has_empty_cursor = False
        if cursor is None or shard is None:
            return
        cursor.close()
        if not self._table.has_cursor(shard):
            self._executor.branches.closed_cursors(shard)

    # --- what needs no server ---------------------------------------------------------------

    def close(self, statement_id: int) -> None:
        """Remove a statement. COM_STMT_CLOSE has no answer, not even for an unknown id."""
        prepared = self._table.get(statement_id)
        if prepared is not None:
            self.close_cursor(prepared)
            self._table.remove(prepared)

    def reset(self, statement_id: int) -> None:
        """Drop long data and the cursor of a statement. Raises UnknownStatement."""
        prepared = self._table.find(statement_id, _RESET)
        self.close_cursor(prepared)
        prepared.drop_long_data()

    def send_long_data(self, statement_id: int, parameter: int, data: memoryview) -> None:
        """Keep a piece of a parameter. An error is reported by the next execution."""
        prepared = self._table.get(statement_id)
        if prepared is not None:
            prepared.add_long_data(parameter, data, self._long_data_bytes_max)


# The names of the commands in MySQL's errors.
_EXECUTE: Final = "mysqld_stmt_execute"
_FETCH: Final = "mysqld_stmt_fetch"
_RESET: Final = "mysqld_stmt_reset"
_SEND_LONG_DATA: Final = "mysqld_stmt_send_long_data"
