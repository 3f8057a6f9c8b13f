"""The commands of the binary protocol: COM_STMT_PREPARE, EXECUTE, FETCH, RESET and CLOSE.

An execution is carried out in one of four ways:

* A statement for one shard is sent there as COM_STMT_EXECUTE, routed by the bound values.
* A statement that the proxy carries out (USE, BEGIN, SET, DDL, STREAM, SHOW DATABASES) runs like its text, with the
  values put in. Its rows are converted to the binary protocol.
* A statement for several shards also runs as text: a write, or a query whose rows are merged.
* So does a write whose text contains the time (`time_acked = NOW()`). The answer to a write is an OK, which is the same in
  both protocols.

USE, BEGIN and similar statements can be prepared with any server behind the proxy, as on MariaDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.session_variables import UNLIMITED
from streamfrom.proxy.errors import (
    BackendError,
    BadArguments,
    CutTypes,
    EmptyQuery,
    MalformedPacket,
    NoOpenCursor,
    SeveralStatements,
    WireError,
)
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.cursors import CursorReply, OpenCursor
from streamfrom.proxy.execution.diagnostics_queries import ASKS_BACK
from streamfrom.proxy.execution.prepared_execution import CursorExecution, Execution
from streamfrom.proxy.execution.transaction import Keep
from streamfrom.proxy.routing.routes import (
    AnyShard,
    Combine,
    Merge,
    OneShard,
    WriteParts,
)
from streamfrom.proxy.sql.compile.answerers import PREPARED_BY_SHARDS, RETOLD
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
from streamfrom.proxy.sql.scatter.insert_selects import reads_first, with_named_columns
from streamfrom.proxy.sql.set_variables import has_no_effect, is_plain_query
from streamfrom.proxy.wire.binary_parameters import with_types
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.prepare_response import PARAMETER, PrepareReader
from streamfrom.proxy.wire.response_reader import AnswerKind
from streamfrom.proxy.wire.resultset import column_definition
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import as_text


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.session_target import StatementTarget
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.sql.statement_runner import StatementRunner
    from streamfrom.proxy.wire.commands import StmtExecute
    from streamfrom.sqlparse_ext.errors import StreamfromError


# Kinds whose syntax a server checks at the PREPARE.
_CHECKED: Final = frozenset({Kind.SET, Kind.DDL})
# Kinds whose rows a server keeps for a cursor on request.
_OPEN_CURSORS: Final = frozenset({Kind.SELECT, Kind.SHOW})
# Kinds whose answer is one result: libmariadb loses its place in the answer if it requested a cursor and gets rows.
_FETCHED: Final = _OPEN_CURSORS | {Kind.EXPLAIN, Kind.STREAM}
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
        """Prepare a statement, and answer with its parameters and columns. Raises any error that every execution would raise."""
        self._table.begin()
        read = self._large_texts.read
        statement = await self._large_texts.parse(self._target.parse, sql)
        shape, size = statement.shape, size_of(statement)
        if shape.kind is Kind.EMPTY and not sql.strip(b"; \t\n\r\f\v"):
            raise EmptyQuery
        if shape.uses & Uses.MULTIPLE:
            texts = await read(size, split_statements, statement.sql, statement.mode)
            if len(texts) > 1:
                raise SeveralStatements
            statement = await self._large_texts.parse(self._target.parse, texts[0])
        await read(size, self._compiler.check, statement)
        answerer = await self._statements.answers.answerer(statement)
        if answerer not in PREPARED_BY_SHARDS or (
            shape.kind in self._statements.own_kinds
            and not await read(size, is_plain_query, statement, self._target)
        ):
            await self._prepare_own(statement, reply)
        else:
            # The client's user does not change while the statement exists.
            await self._prepare_on_shard(
                await self._statements.with_identity(statement, locks=False), reply
            )

    async def _prepare_own(self, statement: Statement, reply: Reply) -> None:
        warnings = 0
        if statement.shape.kind in _CHECKED and not has_no_effect(statement):
            place = await self._large_texts.read(
                size_of(statement), self._target.resolve, statement
            )
            try:
                warnings = (await self._ask(PreparedStatement(place.statement, place))).warnings
            except BackendError as error:
                # The server runs it only as text, and gets it as text.
                if error.code != _NOT_PREPARABLE:
                    raise
        prepared = PreparedStatement(statement, None)
        columns = await self._statements.definitions(statement)
        self._table.add(prepared)
        parameter = column_definition(PARAMETER, self._state.capabilities)
        await reply.prepared(prepared.id, [parameter] * prepared.count, columns, warnings)

    async def _prepare_on_shard(self, statement: Statement, reply: Reply) -> None:
        read, size = self._large_texts.read, size_of(statement)
        place = await read(size, self._target.resolve, statement)
        place = await with_named_columns(self._context, place)
        await self._context.rights.learn(place.view, place.statement.shape)
        prepared = await read(size, self._planned, place)
        answer = await self._ask(prepared)
        prepared.counted(len(answer.parameters))
        self._table.add(prepared)
        await reply.prepared(prepared.id, answer.parameters, answer.columns, answer.warnings)

    def _planned(self, place: StatementTarget) -> PreparedStatement:
        """Return the prepared statement. Raises any error that every execution would raise."""
        prepared = PreparedStatement(place.statement, place)
        prepared.settle(self._compiler, self._registry)
        # A statement that no value makes valid is refused now, as on servers, and not at its first execution.
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
        if prepared.statement is None:
            sql = self._compiler.asked(place.view, prepared.original)
        else:
            sql = prepared.statement.sql
        # A table that the transaction has just created, or a temporary one, exists only on its
        # connection, which comes first.
        shards = self._target.shards_to_prepare(place.view, prepared.original.shape)
        return await self._executor.prepare_on(shards, place.database, sql)

    # --- COM_STMT_EXECUTE -----------------------------------------------------------------

    async def execute(self, command: StmtExecute, reply: Reply) -> None:
        """Execute a statement, and answer the client. Raises any error that stops it."""
        prepared = self._table.find(command.statement_id, _EXECUTE)
        # As in the manual: executing a statement again closes its open cursor.
        self.close_cursor(prepared)
        reply.binary = True
        opens = command.flags & _CURSOR_READ_ONLY and prepared.original.shape.kind in _FETCHED
        run = self._open_cursor if opens else self._run
        try:
            if isinstance(prepared.fault, WireError):
                raise BadArguments(_SEND_LONG_DATA)
            if prepared.fault is not None:
                raise prepared.fault
            await run(prepared, command, reply)
        except WireError as error:
            view = self._target.view if prepared.place is None else prepared.place.view
            on_mariadb = view is not None and view.is_mariadb
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
        size = max(size_of(prepared.original), len(command.body))
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
            # The values may allow a merge, for example those of LIMIT ?.
            await self._run_as_text(prepared, command, reply)
            return
        # Each shard gets its own text, so the prepared statement cannot be used.
        if isinstance(route, WriteParts | Merge | Combine):
            await self._run_as_text(prepared, command, reply)
            return
        step = await read(size, self._compiler.compile_bound, view, bound)
        body = with_types(command.body, prepared.count, prepared.types)
        if isinstance(reply, CursorReply) and bound.shape.kind in _OPEN_CURSORS:
            shards: Sequence[ShardRuntime] = ()
            if isinstance(route, AnyShard):
                able = self._target.any_of(view, database, bound.shape)
                shards = self._executor.connections.choices(able)[:1]
            elif isinstance(route, OneShard):
                shards = (view.runtime(route.shard),)
            elif self._state.own_select_limit == UNLIMITED:
                shards = [*map(view.runtime, route.shards)]
            if shards:
                await self._open_on_shards(shards, prepared, bound.sql, body, reply)
                return
        key = prepared.key(self._state.settings)
        packet = Execution(key, body, prepared.count, prepared.long_data)
        await self._routed.run(view, database, step, route, reply, packet)

    async def _run_as_text(
        self, prepared: PreparedStatement, command: StmtExecute, reply: Reply
    ) -> None:
        read = self._large_texts.read
        size = max(size_of(prepared.original), len(command.body))
        bound = await read(
            size, prepared.bind, prepared.original, command.body, self._state.settings
        )
        if prepared.count and bound.arguments is None:
            raise Unsupported(
                "parameters inside a comment in this prepared statement; write them outside"
            )
        if bound.shape.kind is Kind.STREAM:
            stream = bound.shape.stream
            if isinstance(reply, CursorReply) and stream and stream.limit is OPAQUE:
                raise Unsupported(
                    "a cursor over a STREAM without an end; add LIMIT, or open none"
                )
            # As text, a LIMIT below 0 would be a syntax error at a place that the client never wrote.
            await self._statements.run_one(bound, reply)
            return
        text = await read(size, lambda: self._target.parse(as_text(bound)))
        await read(size, self._compiler.check, text)  # a value may be a keyspace's name
        await self._statements.run_one(text, reply)

    # --- cursors --------------------------------------------------------------------------

    async def _open_cursor(
        self, prepared: PreparedStatement, command: StmtExecute, reply: Reply
    ) -> None:
        """Execute a statement, and let the client fetch the rows. Raises as `_run`, and BackendError."""

        def stop(error: StreamfromError) -> None:
            reply.stopped = error
            self._executor.interrupt()

        prepared.cursor = cursor = OpenCursor(reply.link, self._context.memory, stop)
        try:
            await self._run(prepared, command, CursorReply(cursor, self._state))
            ok = cursor.ended(reply.stopped)
        except BaseException:
            self.close_cursor(prepared)
            raise
        if cursor.answer.columns:
            reply.opened(cursor.answer.columns, warnings=ok.warnings)
        else:  # SELECT … INTO
            self.close_cursor(prepared)
            reply.ok(affected_rows=ok.affected_rows, warnings=ok.warnings)

    async def _open_on_shards(
        self,
        shards: Sequence[ShardRuntime],
        prepared: PreparedStatement,
        sql: bytes,
        body: bytes,
        reply: CursorReply,
    ) -> None:
        """Have each shard open a cursor, which keeps a connection until all its rows are fetched."""
        assert prepared.place is not None
        _, database, _ = prepared.place
        on_shards, warnings = reply.cursor.on_shards, 0
        diagnostics = LastDiagnostics() if len(shards) > 1 else None
        for index, shard in enumerate(shards):
            execution = CursorExecution(sql, body, prepared.long_data)
            on_shards.append((shard, execution))
            scanner = await self._executor.relay(
                Attempt(shard, database, execution, prepared.original.shape, reply),
                columns=index == 0,
                final=index == len(shards) - 1,
                diagnostics=diagnostics,
                warnings=warnings,
            )
            if not scanner.status & _CURSOR_EXISTS:
                # The statement was refused, or the server sends the rows at once.
                self._close_on(*on_shards.pop())
            if scanner.ok is None:
                return
            warnings += scanner.ok.warnings
        if diagnostics is not None and diagnostics.rows:
            self._state.answered_at, self._state.diagnostics = None, diagnostics

    async def fetch(self, statement_id: int, rows: int, reply: Reply) -> None:
        """Send *rows* more rows of an open cursor. Raises NoOpenCursor, also if the cursor's connection is gone."""
        prepared = self._table.find(statement_id, _FETCH)
        cursor = prepared.cursor
        if cursor is None:
            raise NoOpenCursor(prepared.id)
        is_over = True
        try:
            is_over = await self._fetch(prepared, cursor, rows, reply)
        finally:
            if is_over:
                self.close_cursor(prepared)

    async def _fetch(
        self, prepared: PreparedStatement, cursor: OpenCursor, rows: int, reply: Reply
    ) -> bool:
        """Send rows, as `fetch`; True when no more will come."""
        place, shape, on_shards = prepared.place, prepared.original.shape, cursor.on_shards
        while on_shards and rows:
            assert place is not None
            shard, execution = on_shards[0]
            is_last = len(on_shards) == 1 and not cursor.rows
            packet = execution.fetch(prepared.id, rows)
            attempt = Attempt(shard, place.database, packet, shape, reply)
            scanner = await self._executor.relay(attempt, answer=AnswerKind.ROWS, final=is_last)
            is_read = scanner.error is not None or bool(scanner.status & _LAST_ROW_SENT)
            if is_last or scanner.error is not None:
                return is_read
            rows -= scanner.rows
            if is_read:
                self._close_on(*on_shards.popleft())
        kept = cursor.take(rows)
        await reply.many_rows(kept)
        # As on servers: a client that gets as many rows as it requested has to fetch again.
        is_over = len(kept) < rows
        reply.end_of_rows(status=_LAST_ROW_SENT if is_over else _CURSOR_EXISTS)
        return is_over

    def close_cursor(self, prepared: PreparedStatement) -> None:
        """Close the cursor of a statement, if it has one."""
        cursor, prepared.cursor = prepared.cursor, None
        if cursor is not None:
            cursor.drop()
            for shard, execution in cursor.on_shards:
                self._close_on(shard, execution)

    def _close_on(self, shard: ShardRuntime, execution: CursorExecution) -> None:
        execution.close()
        if not self._table.has_cursor(shard):
            self._executor.branches.let_go(shard, Keep.CURSORS)

    # --- commands without a server ----------------------------------------------------------

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
        """Keep a piece of a parameter. The next execution reports any error."""
        prepared = self._table.get(statement_id)
        if prepared is not None:
            prepared.add_long_data(parameter, data, self._long_data_bytes_max)


# The names of the commands in MySQL's errors.
_EXECUTE: Final = "mysqld_stmt_execute"
_FETCH: Final = "mysqld_stmt_fetch"
_RESET: Final = "mysqld_stmt_reset"
_SEND_LONG_DATA: Final = "mysqld_stmt_send_long_data"
