"""What each kind of statement does: the text of a client's command to answers on its link.

`Statements.try_direct` is the hot path: a statement that one shard answers, with a connection
at hand, is sent in the same turn of the loop that its packet arrived in. Everything else goes
through `run`, which may wait; `_HANDLERS` is the table of who does what there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.errors import TableLoadError, TableNotFound
from engine.message_table import MessageTable
from engine.store import columns_query
from proxy.catalog import Direct
from proxy.config import Role
from proxy.errors import (
    BackendUnavailable,
    CommandDenied,
    DatabaseAccessDenied,
    EmptyQuery,
    NoDatabaseSelected,
    NoSuchThread,
)
from proxy.executor import is_repeatable, was_refused_undone
from proxy.reply import Reply
from proxy.routing import (
    Concatenate,
    Everywhere,
    OneShard,
    WriteParts,
    qualifiers,
)
from proxy.scatter import run_everywhere, write_parts
from proxy.session_state import Transaction
from proxy.streaming import Stream
from proxy.virtual import answer, is_virtual
from proxy.wire.commands import query
from proxy.wire.framing import frame
from proxy.wire.response import Answer
from sqlparse_ext.errors import StreamfromError, Unsupported
from sqlparse_ext.identifiers import requalify
from sqlparse_ext.messages import complete, effect
from sqlparse_ext.split import split_statements
from sqlparse_ext.statements import KillBy, KillScope, Kind, SetKind, Statement, Uses


if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.registry import Registry
    from proxy.catalog import Catalog, View
    from proxy.config import User
    from proxy.executor import Executor
    from proxy.net import Link
    from proxy.relay import Relay
    from proxy.session_state import SessionState
    from proxy.shard import ShardRuntime
    from proxy.transaction import Branches, PendingEffects
    from sqlparse_ext.cache import StatementCache
    from sqlparse_ext.messages import Effect
    from sqlparse_ext.statements import Shape


# What a user of role "readonly" may run; everything else is denied.
_READ_ONLY_KINDS: Final = frozenset(
    {
        Kind.SELECT,
        Kind.SHOW,
        Kind.EXPLAIN,
        Kind.SET,
        Kind.USE,
        Kind.BEGIN,
        Kind.COMMIT,
        Kind.ROLLBACK,
        Kind.SAVEPOINT,
        Kind.KILL,
        Kind.EMPTY,
    }
)
_DIRECT_KINDS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.SHOW, Kind.EXPLAIN}
)
_ON_ROWS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.LOAD}
)
_DIRECT_SHAPES_MAX: Final = 8192
_INDIRECT_USES: Final = Uses.MULTIPLE | Uses.LAST_INSERT_ID
# Vitess's session variables: its users set them before a STREAM, and they mean nothing here.
_VITESS_VARIABLES: Final = frozenset({"workload", "transaction_mode", "query_timeout"})


class Kill(Protocol):
    """Ends another connection, or only what it is running."""

    def __call__(self, connection_id: int, *, query_only: bool) -> None:
        """Raise NoSuchThread or NotOwner where that is not possible."""


class Step:
    """A statement that is ready to run: completed, requalified, its effect known."""

    __slots__ = ("effect", "statement", "table")

    def __init__(self, statement: Statement, table: str, change: Effect | None) -> None:
        self.statement = statement
        self.table = table
        self.effect = change


class Statements:
    """The statements of one session.

    Attributes:
        view: the session's current target, None before any `USE`.
        stream: the STREAM that is open, if any.
    """

    def __init__(
        self,
        *,
        user: User,
        host: str,
        link: Link,
        state: SessionState,
        executor: Executor,
        effects: PendingEffects,
        catalog: Catalog,
        registry: Registry,
        cache: StatementCache,
        clock: Clock,
        kill: Kill,
    ) -> None:
        self.view: View | None = None
        self.stream: Stream | None = None
        self._user = user
        self._host = host
        self._link = link
        self._state = state
        self._executor = executor
        self._branches: Branches = executor.branches
        self._effects = effects
        self._catalog = catalog
        self._registry = registry
        self._cache = cache
        self._clock = clock
        self._kill = kill
        self._reads_only = user.role is Role.READONLY

    def use(self, target: str) -> None:
        """Make *target* the session's current one.

        Raises:
            UnknownDatabase, DatabaseAccessDenied, Unsupported, EngineError.
        """
        view = self._catalog.view(target)
        allowed = self._user.keyspaces
        if allowed is not None and view.keyspace.name not in allowed:
            raise DatabaseAccessDenied(self._user.name, self._host, target)
        self.view = view

    # --- the hot path ---------------------------------------------------------------------

    def try_direct(
        self, sql: bytes, reply: Reply, on_done: Callable[[Relay, ShardRuntime, Step], None]
    ) -> bool:
        """Send the statement now if it is plain and everything for it is at hand.

        Return False otherwise; `run` then does it, and raises what is wrong with it.
        """
        view = self.view
        if view is None or self._reads_only:
            return False
        try:
            statement = self._cache.get(sql, self._state.mode)
            direct = self._direct(view, statement.shape)
            if direct is None:
                return False
            if direct.touches_messages:
                step = self._prepare(view, statement)
                plan = view.planner.plan(step.statement.shape)
            else:
                step = Step(statement, "", None)
                plan = direct.plan
            route = plan.always or plan.route(step.statement)
        except StreamfromError:
            return False
        if type(route) is not OneShard:
            return False
        shard = view.runtime(route.shard)
        return self._executor.send_now(
            shard,
            view.database,
            query(step.statement.sql),
            reply,
            lambda relay: on_done(relay, shard, step),
        )

    def finish_direct(
        self, relay: Relay, shard: ShardRuntime, step: Step, reply: Reply
    ) -> bool:
        """End what `try_direct` began; False when it should be tried again by `run`.

        Raises:
            BackendLost, SessionLost: the answer broke off.
        """
        scanner = relay.scanner
        shape = step.statement.shape
        if relay.failure is None and scanner.error is None:
            self._executor.settle(shard, shape, relay)
            if step.effect is not None:
                self._note_effect(shard, step, step.effect)
            self._link.write(relay.held)
            return True
        may_repeat = not self._branches.in_transaction and not scanner.forwarded
        self._executor.settle(shard, shape, relay)
        if relay.failure is not None:
            if may_repeat and is_repeatable(shape):
                return False
            reply.sequence = scanner.next_sequence
            raise relay.failure
        if may_repeat and was_refused_undone(scanner):
            return False
        self._link.write(relay.held)
        return True

    def _direct(self, view: View, shape: Shape) -> Direct | None:
        if view.generation != self._registry.generation:
            # Tables came or went: what is a message table may have changed.
            view.direct.clear()
            view.generation = self._registry.generation
        try:
            return view.direct[shape]
        except KeyError:
            if len(view.direct) >= _DIRECT_SHAPES_MAX:
                view.direct.clear()
            direct = view.direct[shape] = self._work_out_direct(view, shape)
            return direct

    def _work_out_direct(self, view: View, shape: Shape) -> Direct | None:
        if (
            shape.kind not in _DIRECT_KINDS
            or shape.uses & _INDIRECT_USES
            or qualifiers(shape)
            or is_virtual(shape)
        ):
            return None
        tables = (self._registry.table(view.keyspace.name, t.name) for t in shape.tables)
        return Direct(view.planner.plan(shape), touches_messages=any(tables))

    # --- what every statement goes through ------------------------------------------------

    async def run(self, sql: bytes, reply: Reply) -> None:
        """Run the text of one command: one statement, or several if the client may send them.

        Raises whatever stops it; the answers before that are out.
        """
        statement = self._cache.get(sql, self._state.mode)
        if statement.shape.uses & Uses.MULTIPLE and self._state.multi_statements:
            texts = split_statements(sql, self._state.mode)
        else:
            texts = [sql]
        for index, text in enumerate(texts):
            reply.more = index < len(texts) - 1
            statement = self._cache.get(text, self._state.mode)
            if not await self._run_one(statement, reply):
                return

    async def _run_one(self, statement: Statement, reply: Reply) -> bool:
        """Run one statement; False when it answered with an error."""
        shape = statement.shape
        if self._reads_only and (
            shape.kind not in _READ_ONLY_KINDS
            or shape.uses & (Uses.INTO | Uses.LOCKING_READ | Uses.GLOBAL_SCOPE)
        ):
            table = shape.tables[0].name if shape.tables else ""
            raise CommandDenied(shape.verb, self._user.name, self._host, table)
        handler = _HANDLERS.get(shape.kind, Statements._on_rows)
        return await handler(self, statement, reply)

    def _prepare(self, view: View, statement: Statement) -> Step:
        """Complete a statement on a message table and find out what it will do to it.

        Raises:
            TableLoadError: it names a message table that failed to load.
        """
        shape = statement.shape
        keyspace = view.keyspace.name
        if shape.kind not in _ON_ROWS:
            return Step(statement, "", None)
        target: MessageTable | None = None
        for table in shape.tables:
            found = self._registry.table(keyspace, table.name)
            if found is None:
                continue
            if not isinstance(found, MessageTable):
                raise TableLoadError(found.table, found.reason)
            if target is None and table is shape.tables[0]:
                target = found
        if target is None or shape.kind is Kind.SELECT:
            return Step(statement, "", None)
        facts = target.facts
        completed = complete(statement, facts, self._clock.time_ns())
        if completed is not None:
            statement = self._cache.get(completed, self._state.mode)
        return Step(statement, target.name, effect(statement, facts))

    def _view_for(self, statement: Statement) -> tuple[View, Statement]:
        """Return where a statement's tables live, and its text with real database names."""
        names = qualifiers(statement.shape)
        if not names:
            if self.view is not None:
                return self.view, statement
            return self._catalog.anywhere(self._user.keyspaces), statement
        views = {}
        for name in names:
            try:
                views[name] = self._catalog.view(name)
            except StreamfromError:
                if self._user.keyspaces is not None or self.view is None:
                    raise
                # A database of the server that is no keyspace; the server says what it is.
                if self.view.is_sharded:
                    raise
                return self.view, statement
        allowed = self._user.keyspaces
        for name, view in views.items():
            if allowed is not None and view.keyspace.name not in allowed:
                raise DatabaseAccessDenied(self._user.name, self._host, name)
        first = next(iter(views.values()))
        if any(view is not first for view in views.values()):
            raise Unsupported("tables of several keyspaces or targets in one statement")
        mapping = {name: view.database for name, view in views.items() if view.database != name}
        if mapping:
            sql = requalify(statement.sql, mapping, self._state.mode)
            statement = self._cache.get(sql, self._state.mode)
        return first, statement

    @property
    def _database(self) -> str | None:
        """The real database that unqualified names mean on a backend connection."""
        return None if self.view is None else self.view.database

    def _note_effect(self, shard: ShardRuntime, step: Step, change: Effect) -> None:
        self._effects.add(shard, step.table, change)
        if not self._branches.in_transaction:
            self._effects.committed()

    # --- rows: SELECT, INSERT, UPDATE, DELETE and whatever else a shard may answer ----------

    async def _on_rows(self, statement: Statement, reply: Reply) -> bool:
        view, statement = self._view_for(statement)
        step = self._prepare(view, statement)
        plan = view.planner.plan(step.statement.shape)
        route = plan.route(step.statement)
        match route:
            case OneShard(shard):
                return await self._on_shard(view.runtime(shard), step, reply)
            case Concatenate(shards):
                return await self._concatenate([view.runtime(s) for s in shards], step, reply)
            case WriteParts(parts):
                own = step.statement.sql
                pieces = [(view.runtime(shard), sql or own) for shard, sql in parts]
                result = await write_parts(
                    self._executor, self._state, self._database, pieces, step.statement.shape
                )
                if step.effect is not None:
                    for runtime, _ in pieces:
                        self._note_effect(runtime, step, step.effect)
                reply.ok(
                    affected_rows=result.affected_rows,
                    last_insert_id=result.last_insert_id,
                    warnings=result.warnings,
                    info=result.info,
                )
                return True
            case Everywhere():
                raise Unsupported(f"{step.statement.shape.verb} in a sharded keyspace")

    async def _on_shard(self, shard: ShardRuntime, step: Step, reply: Reply) -> bool:
        scanner = await self._executor.relay_on(
            shard, self._database, query(step.statement.sql), step.statement.shape, reply
        )
        if scanner.error is not None:
            return False
        if step.effect is not None:
            self._note_effect(shard, step, step.effect)
        return True

    async def _concatenate(self, shards: list[ShardRuntime], step: Step, reply: Reply) -> bool:
        shape = step.statement.shape
        packet = query(step.statement.sql)
        for index, shard in enumerate(shards):
            scanner = await self._executor.relay_on(
                shard,
                self._database,
                packet,
                shape,
                reply,
                columns=index == 0,
                final=index == len(shards) - 1,
            )
            if scanner.error is not None:
                return False
        return True

    async def _ddl(self, statement: Statement, reply: Reply) -> bool:
        view, statement = self._view_for(statement)
        if self._branches.in_transaction:
            # DDL commits implicitly, on every shard of the transaction and not just its own.
            await self._branches.commit()
        if statement.shape.uses & Uses.TEMPORARY_TABLE and view.is_sharded:
            raise Unsupported("temporary tables in a sharded keyspace; USE one shard for them")
        shards = list(view.runtimes)
        result = await run_everywhere(self._executor, self._database, shards, statement)
        await self._registry.reload(view.keyspace.name)
        reply.ok(affected_rows=result.affected_rows, warnings=result.warnings, info=result.info)
        return True

    # --- the session's own statements -----------------------------------------------------

    async def _empty(self, statement: Statement, reply: Reply) -> bool:
        raise EmptyQuery

    async def _use(self, statement: Statement, reply: Reply) -> bool:
        self.use(statement.shape.target or "")
        reply.ok()
        return True

    async def _set(self, statement: Statement, reply: Reply) -> bool:
        shape = statement.shape
        if shape.set and all(
            item.kind is SetKind.SYSTEM and item.name in _VITESS_VARIABLES for item in shape.set
        ):
            reply.ok()
            return True
        view = self.view or self._catalog.anywhere(self._user.keyspaces)
        shards = list(view.runtimes)
        if view.is_sharded and shape.uses & Uses.USER_VARIABLE:
            # Every shard may be asked for the variable later.
            await run_everywhere(self._executor, self._database, shards, statement)
            reply.ok()
            return True
        held = [shard for shard in shards if shard in self._branches.held]
        return await self._on_shard((held or shards)[0], Step(statement, "", None), reply)

    async def _begin(self, statement: Statement, reply: Reply) -> bool:
        view = self.view or self._catalog.anywhere(self._user.keyspaces)
        if len(self._branches.open) > 1 or view.is_sharded:
            await self._branches.commit()
        self._state.transaction = None
        if not view.is_sharded:
            ok = await self._on_shard(view.runtimes[0], Step(statement, "", None), reply)
            if ok:
                self._state.transaction = Transaction(statement.sql)
            return ok
        if "CONSISTENT SNAPSHOT" in statement.shape.options:
            raise Unsupported("START TRANSACTION WITH CONSISTENT SNAPSHOT over several shards")
        self._state.transaction = Transaction(statement.sql)
        reply.ok()
        return True

    async def _commit(self, statement: Statement, reply: Reply) -> bool:
        return await self._end_transaction(statement, reply, self._branches.commit)

    async def _rollback(self, statement: Statement, reply: Reply) -> bool:
        return await self._end_transaction(statement, reply, self._branches.rollback)

    async def _end_transaction(
        self, statement: Statement, reply: Reply, end: Callable[[], Awaitable[None]]
    ) -> bool:
        branches = self._branches.open
        transaction = self._state.transaction
        if len(branches) == 1 and (transaction is None or not transaction.broken):
            # One server, its own transaction: AND CHAIN, RELEASE and all.
            shard, _ = branches[0]
            return await self._on_shard(shard, Step(statement, "", None), reply)
        if statement.shape.options & {"CHAIN", "RELEASE"}:
            raise Unsupported(
                f"{statement.shape.verb} AND CHAIN or RELEASE over several shards"
            )
        await end()
        reply.ok()
        return True

    async def _savepoint(self, statement: Statement, reply: Reply) -> bool:
        view = self.view or self._catalog.anywhere(self._user.keyspaces)
        if not view.is_sharded:
            return await self._on_rows(statement, reply)
        await self._branches.savepoint(statement.sql)
        reply.ok()
        return True

    async def _kill_statement(self, statement: Statement, reply: Reply) -> bool:
        kill = statement.shape.kill
        if kill is None or kill.by is not KillBy.ID:
            raise Unsupported("this form of KILL; give a connection id")
        number = self._number(statement, kill.operand)
        if number is None:
            raise NoSuchThread(0)
        self._kill(number, query_only=kill.scope is KillScope.QUERY)
        reply.ok()
        return True

    @staticmethod
    def _number(statement: Statement, operand: Any) -> int | None:
        values = statement.values((operand,))
        value = None if values is None else values[0]
        return value if isinstance(value, int) else None

    async def _show(self, statement: Statement, reply: Reply) -> bool:
        if not is_virtual(statement.shape):
            return await self._on_rows(statement, reply)
        column, values = answer(statement.shape, self._catalog.visible(self._user.keyspaces))
        reply.rows((column,), [(value.encode(),) for value in values])
        return True

    async def field_list(self, payload: bytes, reply: Reply) -> None:
        """Answer COM_FIELD_LIST: the columns of a table, from the first shard."""
        if self.view is None:
            raise NoDatabaseSelected
        shard = self.view.runtimes[0]
        statement = self._cache.get(b"SHOW COLUMNS", self._state.mode)
        await self._executor.relay_on(
            shard, self._database, frame(payload, 0), statement.shape, reply, answer=Answer.ROWS
        )

    # --- STREAM ---------------------------------------------------------------------------

    async def _stream(self, statement: Statement, reply: Reply) -> bool:
        shape = statement.shape.stream
        assert shape is not None
        if shape.table.schema is not None:
            view = self._catalog.view(shape.table.schema)
            allowed = self._user.keyspaces
            if allowed is not None and view.keyspace.name not in allowed:
                raise DatabaseAccessDenied(self._user.name, self._host, view.name)
        elif self.view is not None:
            view = self.view
        else:
            view = self._only_view(shape.table.name)
        keyspace = view.keyspace.name
        table = self._registry.table(keyspace, shape.table.name)
        if table is None:
            raise TableNotFound(keyspace, shape.table.name)
        if not isinstance(table, MessageTable):
            raise TableLoadError(table.table, table.reason)
        columns = table.project(shape.columns)
        definitions = await self._definitions(view, table, columns, statement.shape)
        reply.head(definitions)
        stream = Stream(
            self._link,
            shards=frozenset(shard.name for shard in view.shards) if view.is_narrowed else None,
            columns=columns,
            sequence=reply.sequence,
        )
        self.stream = stream
        try:
            self._registry.attach(stream, keyspace, table.name)
            error = await stream.ended
        finally:
            self.stream = None
            self._registry.detach(stream, stream.close())
            reply.sequence = stream.sequence
        raise error

    def _only_view(self, table: str) -> View:
        """Return the keyspace that alone has message table *table*: STREAM without a database."""
        allowed = self._user.keyspaces
        found = [
            keyspace.name
            for keyspace in self._catalog.visible(allowed)
            if self._registry.table(keyspace.name, table) is not None
        ]
        if len(found) != 1:
            raise NoDatabaseSelected
        return self._catalog.view(found[0])

    async def _definitions(
        self, view: View, table: MessageTable, columns: tuple[str, ...], shape: Shape
    ) -> list[bytes]:
        """Return the column definitions of a stream, from any shard that answers."""
        failure: BackendUnavailable | None = None
        for shard in view.runtimes:
            try:
                backend = await self._executor.take(shard, view.database, shape)
            except BackendUnavailable as error:
                failure = error
                continue
            packets = [query(columns_query(table, columns))]
            if not backend.in_transaction:
                # Without autocommit even this opens a transaction, and an endless one would
                # stand in the way of every ALTER and of the server's own purge.
                packets.append(query(b"ROLLBACK"))
            try:
                answer, *_ = await backend.pipeline(packets)
            finally:
                self._executor.give_back(shard, backend)
            return answer.columns
        assert failure is not None
        raise failure


_Handler = Callable[[Statements, Statement, Reply], Awaitable[bool]]

_HANDLERS: Final[dict[Kind, _Handler]] = {
    Kind.STREAM: Statements._stream,
    Kind.USE: Statements._use,
    Kind.SET: Statements._set,
    Kind.SHOW: Statements._show,
    Kind.BEGIN: Statements._begin,
    Kind.COMMIT: Statements._commit,
    Kind.ROLLBACK: Statements._rollback,
    Kind.SAVEPOINT: Statements._savepoint,
    Kind.DDL: Statements._ddl,
    Kind.KILL: Statements._kill_statement,
    Kind.EMPTY: Statements._empty,
}
