"""Run each kind of statement, from the text of a client's command to the answers on its link.

`StatementRunner.run` may wait; statements that need not wait take the hot path (`proxy.sql.fast_path`). `StatementRunner`
begins with the handler of each kind.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import (
    EmptyQuery,
    LocalDataDisabled,
    SeveralStatements,
    UnknownDatabase,
)
from streamfrom.proxy.execution.diagnostics_queries import (
    ASKS_BACK,
    AnswerHere,
    DiagnosticsQueries,
    add_warnings,
    warning,
    warnings_answer,
)
from streamfrom.proxy.rights.questions import changes_rights
from streamfrom.proxy.routing.vschema_tables import not_in_vschema
from streamfrom.proxy.sql.advisory_locks import note_locks
from streamfrom.proxy.sql.compile.answerers import HAS_EXPRESSIONS
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.own_answers import OwnAnswers
from streamfrom.proxy.sql.queues.queue_statements import QueueStatements
from streamfrom.proxy.sql.queues.sequence_statements import SequenceStatements
from streamfrom.proxy.sql.queues.status_tables import StatusTables
from streamfrom.proxy.sql.queues.stream_statements import StreamStatements
from streamfrom.proxy.sql.routed_statements import RoutedStatements
from streamfrom.proxy.sql.scatter.insert_selects import with_named_columns, with_rows
from streamfrom.proxy.sql.scatter.scattered_writes import run_everywhere
from streamfrom.proxy.sql.schema_names import with_schema_names
from streamfrom.proxy.sql.set_variables import SetVariables
from streamfrom.proxy.sql.text_statements import TextStatements
from streamfrom.proxy.sql.transaction_control import TransactionControl
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Capability, Status
from streamfrom.proxy.wire.resultset import STATE_CHANGED, schema_state
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.session.information_schema import asks_database
from streamfrom.sqlparse_ext.session.session_calls import inline, lock_calls
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEXT_BYTES
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.message_effects import UNKNOWN


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.compile.session_target import SessionTarget
    from streamfrom.proxy.sql.session_context import SessionContext


# Kinds that may call USER() and similar. In a definition these functions mean the user who calls it later.
_TELL_WHO: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.SET}
)
# Kinds that may read a server's description of its databases.
_DESCRIBE: Final = _TELL_WHO | {Kind.SHOW, Kind.EXPLAIN, Kind.OTHER}


class StatementRunner:
    """The statements of one session.

    Attributes:
        answers, routed, streams, text_statements: the objects that carry out some kinds, named after their modules.
        own_kinds: the kinds of statements that no server prepares.
    """

    def __init__(self, context: SessionContext) -> None:
        self.routed = RoutedStatements(context)
        self.streams = StreamStatements(context)
        self.text_statements = TextStatements(context, self.run_one)
        self._context = context
        self._state = context.state
        self._executor = context.executor
        self._branches = context.executor.branches
        self._compiler = context.compiler
        self._target = context.compiler.target
        self._large_texts = context.large_texts
        self._sequences = SequenceStatements(context)
        queues = QueueStatements(context, self._ddl)
        self.answers = OwnAnswers(
            context,
            self.run_one,
            queues,
            self._sequences,
            StatusTables(context, self.routed),
        )
        self.transactions = transactions = TransactionControl(context, self.routed)
        # A kind without an entry is sent to the shards.
        self._handlers: dict[Kind, Callable[[Statement, Reply], Awaitable[bool]]] = {
            Kind.STREAM: self.streams.run,
            Kind.USE: self._use,
            Kind.SET: SetVariables(context, self.routed, self.streams).run,
            Kind.BEGIN: transactions.begin,
            Kind.COMMIT: transactions.commit,
            Kind.ROLLBACK: transactions.rollback,
            Kind.SAVEPOINT: transactions.savepoint,
            Kind.DDL: self._ddl,
            Kind.QUEUE: queues.run,
            Kind.LOCK: self._lock,
            Kind.PREPARE: self.text_statements.run,
            Kind.KILL: self._kill_statement,
            Kind.EMPTY: self._empty,
        }
        self.own_kinds = self._handlers.keys() - {Kind.LOCK, Kind.PREPARE}
        login = literal(f"{context.user.name}@{context.host}".encode())
        self._identity = {
            "CONNECTION_ID": b"%d" % context.connection_id,
            **dict.fromkeys(("USER", "SESSION_USER", "SYSTEM_USER"), login),
            # Drivers (mysql_async) that find themselves on this machine connect there again: it
            # must not be the server's own socket, past the proxy.
            "@@SOCKET": literal((context.config.unix_socket or "").encode()),
        }
        if not self._state.account.is_own:
            account = f"{context.user.name}@{context.user.host}"
            self._identity["CURRENT_USER"] = literal(account.encode())

    async def run(self, sql: bytes, reply: Reply) -> None:
        """Run the text of one command: one statement, or several if the client may send them. Raises any error that stops it."""
        read = self._large_texts.read
        whole = await self._large_texts.parse(self._target.parse, sql)
        texts = [whole.sql]
        if whole.shape.uses & Uses.MULTIPLE:
            if not self._state.multi_statements:
                raise SeveralStatements
            texts = await read(size_of(whole), split_statements, whole.sql, whole.mode)
        for index, text in enumerate(texts):
            reply.more = index < len(texts) - 1
            # A large text is in no cache.
            is_read = text is whole.sql and len(text) > LARGE_TEXT_BYTES
            statement = (
                whole if is_read else await self._large_texts.parse(self._target.parse, text)
            )
            await read(size_of(statement), self._compiler.check, statement)
            if not await self.run_one(statement, reply):
                return

    async def run_one(self, statement: Statement, reply: Reply) -> bool:
        """Run one statement that the user may run; False if its answer is an error."""
        # USE leaves a target whose replicas are all unhealthy.
        if not self._branches.held and statement.shape.kind is not Kind.USE:
            self._target.leave_ailing_replicas()
        handler = self._handlers.get(statement.shape.kind, self._on_rows)
        asks_locks = bool(statement.shape.uses & Uses.ADVISORY_LOCK)
        if asks_locks:
            await note_locks(self._context, statement)
        try:
            statement = await self.with_identity(statement)
            answerer = await self.answers.answerer(statement)
            if answerer is None:
                has_succeeded = await handler(statement, reply)
            else:
                has_succeeded = await self.answers.run(answerer, statement, reply)
        finally:
            if changes_rights(statement.shape):
                self._context.rights.desk.changed()
                for shard in self._context.status.shards.values():
                    shard.pool.outdate(time.monotonic())  # logins keep their old rights
        if asks_locks and has_succeeded and lock_calls(statement).releases_all:
            self._state.locks = None
        return has_succeeded

    async def with_identity(self, statement: Statement, *, locks: bool = True) -> Statement:
        """Return *statement* with the client's CONNECTION_ID() and user in it, and keyspaces' names in its lists of databases.

        locks: put in the holder of a lock as well, which may be another one next time.
        """
        if self._target.answerer(statement.shape) not in HAS_EXPRESSIONS:
            return statement
        if statement.shape.kind in _DESCRIBE:
            statement = await with_schema_names(self._context, statement)
        shape = statement.shape
        if shape.kind not in _TELL_WHO:
            return statement
        view = self._target.view
        if asks_database(shape) and view is not None and view.is_part:
            target = literal(self._target.name.encode())
            calls = {"DATABASE": target, "SCHEMA": target}
            return await self._large_texts.read(
                size_of(statement), lambda: self._target.parse(inline(statement, calls))
            )
        asks_locks = locks and shape.uses & Uses.ADVISORY_LOCK
        if not shape.uses & Uses.IDENTITY and not asks_locks:
            return statement
        values = self._identity if shape.uses & Uses.IDENTITY else {}
        # A SELECT of no table runs on the first shard.
        holders = (
            self._context.others.holders(self._target.here().runtimes[0]) if asks_locks else {}
        )
        return await self._large_texts.read(
            size_of(statement), lambda: self._target.parse(inline(statement, values, holders))
        )

    # --- rows: SELECT, INSERT, UPDATE, DELETE and other statements that a shard may answer --

    async def _on_rows(self, statement: Statement, reply: Reply) -> bool:
        read, size = self._large_texts.read, size_of(statement)
        place = await read(size, self._target.resolve, statement)
        place = await with_named_columns(self._context, place)
        with_values = await with_rows(self._context, place, reply)
        if with_values is None:
            return True
        has_selected, place, view = with_values is not place, with_values, place.view
        await self._context.rights.learn(view, place.statement.shape)
        filled = await self._sequences.filled(view, place.statement)
        step, route = await read(size, self._compiler.routed, view, filled.statement)
        step.insert_id, step.given, step.own_id = filled[1:]
        step.has_selected = has_selected
        if step.statement.shape.uses & Uses.LOCAL_INFILE and not (
            self._state.capabilities & Capability.LOCAL_FILES
        ):
            raise LocalDataDisabled(on_mariadb=view.is_mariadb)
        if not step.statement.shape.uses & ASKS_BACK:
            return await self.routed.run(view, place.database, step, route, reply)
        packet = DiagnosticsQueries(self._state, step.statement)
        try:
            return await self.routed.run(view, place.database, step, route, reply, packet)
        except AnswerHere as asked:
            capabilities = self._state.capabilities
            definitions, payloads = warnings_answer(
                step.statement, asked.diagnostics, capabilities
            )
            if asked.diagnostics is not None:
                asked.diagnostics.row_count = -1
        reply.head(definitions)
        reply.more_rows(payloads)
        reply.end_of_rows()
        return True

    async def _ddl(
        self, statement: Statement, reply: Reply, warnings: Sequence[bytes] = ()
    ) -> bool:
        """Run a definition on all shards, and answer the client; False if the answer is an error.

        warnings: the proxy's own warnings, which follow those of the servers, as rows of SHOW WARNINGS.
        """
        place = await self._large_texts.read(
            size_of(statement), self._target.resolve, statement
        )
        view = place.view
        if statement.shape.uses & Uses.TEMPORARY_TABLE and view.is_sharded:
            raise Unsupported("temporary tables in a sharded keyspace; USE one shard for them")
        if statement.shape.uses & Uses.IMPLICIT_COMMIT and self._branches.in_transaction:
            # On every shard of the transaction, not only those that run the statement.
            await self._branches.commit()
        database, leaves = place.database, self._target.drops_own_database(place)
        if leaves and await has_database(view.runtimes[0], view.database):
            # Afterwards a connection kept by the session has no database only if it was in this one.
            database = view.database
        if view.schema is None:
            await self._show_leases(view, place.statement.shape)
        result = await run_everywhere(
            self._executor, self._state, database, view.runtimes, place.statement
        )
        if leaves:
            self._target.leave()
        if statement.shape.verb == "ALTER" and statement.shape.target is not None:
            # ALTER DATABASE: a connection takes the character set of its database when it enters it.
            view.outdate()
        if view.schema is None:
            await self._defined(view, place.statement.shape)
        warnings = [*warnings, *self._without_vindex(view, place.statement.shape)]
        if warnings:
            await add_warnings(self._state, warnings)
        reply.ok(
            affected_rows=result.affected_rows,
            warnings=min(result.warnings + len(warnings), 0xFFFF),
            # A server's text counts its own warnings.
            info=b"" if warnings else result.info,
            status=Status.DB_DROPPED if leaves else 0,
            session_state=(schema_state("") if leaves else b"")
            + self._state.shown(result.session_state),
        )
        return True

    def _without_vindex(self, view: View, shape: Shape) -> list[bytes]:
        """Return a warning for each table that a definition has made and no vindex places, as rows of SHOW WARNINGS."""
        if not view.is_sharded:
            return []
        # By the vschema in force now, which includes a queue that was just made.
        keyspace = self._context.catalog.view(view.keyspace.name).keyspace
        if keyspace.vschema is None:
            return []
        made = {
            "CREATE": shape.tables[:1],
            "ALTER": shape.tables[1:],
            "RENAME": shape.tables[1::2],
        }
        return [
            warning("Warning", Unsupported.mysql_code, not_in_vschema(keyspace, table.name))
            for table in made.get(shape.verb, ())
            if table.name not in keyspace.vschema.tables
        ]

    async def _show_leases(self, view: View, shape: Shape) -> None:
        """Write the leases of the queues that a definition changes: it may empty them, or a partition of them."""
        for table in shape.tables:
            if self._context.registry.table(view.keyspace.name, table.name) is not None:
                for runtime in view.runtimes:
                    await self.routed.show_leases(runtime, table.name, UNKNOWN)

    async def _defined(self, view: View, shape: Shape) -> None:
        """Have the tables that a DDL statement changed read again, with their rows, since it may have put some into a queue."""
        registry, keyspace = self._context.registry, view.keyspace.name
        names = frozenset(table.name for table in shape.tables)
        await registry.definitions_changed(keyspace, names)
        for name in names:
            if registry.table(keyspace, name) is not None:
                for shard in view.shards:
                    registry.committed(keyspace, shard.name, name, [UNKNOWN])

    # --- the session's own statements -----------------------------------------------------

    async def _empty(self, statement: Statement, reply: Reply) -> bool:
        if not statement.sql.strip(b"; \t\n\r\f\v"):
            raise EmptyQuery
        # A comment without an end includes the text after it.
        size, behind = len(statement.sql), statement.sql + b"\n1"
        if (await self._large_texts.read(size, self._target.parse, behind)).shape.kind is (
            Kind.EMPTY
        ):
            raise SqlError("a comment has no end, near '/*'")
        # A server answers a comment alone with OK; drivers ping so.
        reply.ok()
        return True

    async def _use(self, statement: Statement, reply: Reply) -> bool:
        if not statement.shape.target:
            raise SqlError("USE takes a keyspace")
        await self.use(statement.shape.target, reply)
        return True

    async def use(self, target: str, reply: Reply) -> None:
        """Make *target* the session's current one. Raises as `use` below."""
        await use(self._target, target)
        self._state.answered_since = True
        changed = STATE_CHANGED if self._state.tracks_changes else b""
        reply.ok(session_state=schema_state(self._target.name) + changed)

    async def _lock(self, statement: Statement, reply: Reply) -> bool:
        here, held = self._target.here(), list(self._branches.held)
        if statement.shape.verb != "UNLOCK" or not (
            here.is_sharded or any(shard not in here.runtimes for shard in held)
        ):
            return await self._on_rows(statement, reply)
        # No lock is taken over several shards, so each lock is on one shard, perhaps of another keyspace.
        for shard in held:
            await self._executor.ask([shard], None, query(statement.sql), statement.shape)
        reply.ok()
        return True

    async def _kill_statement(self, statement: Statement, reply: Reply) -> bool:
        kill = statement.shape.kill
        assert kill is not None
        number = None if kill.operand is OPAQUE else statement.value(kill.operand)
        if not isinstance(number, int):
            raise Unsupported("this form of KILL; KILL a connection id of SHOW PROCESSLIST")
        await self._context.others.kill(number, query_only=kill.query_only)
        reply.ok()
        return True

    async def definitions(self, statement: Statement) -> list[bytes]:
        """Return the columns of a statement's answer, as far as the proxy makes the answer itself. Raises as the STREAM would."""
        if (answerer := await self.answers.answerer(statement)) is not None:
            return await self.answers.columns(answerer, statement)
        if statement.shape.stream is not None:
            return await self.streams.definitions(statement)
        return []


async def use(session: SessionTarget, target: str) -> None:
    """Make *target* the session's current one: a keyspace, or a database next to an unsharded one on its server.

    Raises as `SessionTarget.use`, and BackendUnavailable.
    """
    try:
        session.use(target)
    except UnknownDatabase:
        home = session.beside()
        if not home.has_neighbours or not await has_database(home.runtimes[0], target):
            raise
        session.view, session.name = home.neighbour(target), target


async def has_database(shard: ShardRuntime, database: str) -> bool:
    """Return whether a server has a database. Uses a control connection, since the session's may be busy.

    The proxy compares the names, since `=` on the server ignores case, and database names do not.
    """
    rows = await shard.control.rows("SELECT schema_name FROM information_schema.schemata")
    return (database,) in rows
