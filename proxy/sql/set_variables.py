"""SET, whose changes follow the session to every connection.

A server carries out the SET, and its session trackers report the changes. A change that no tracker reports pins the session
to that connection (`proxy.execution.session_state`), and with several shards is made on each of them.

The statement in MariaDB's `SET STATEMENT … FOR statement` is routed, completed on a message table and reported to the engine as
if it stood alone, and sent with the variables in front of it. A prepared query for one server is sent unchanged: Connector/J
sets time-outs and limits of rows that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.pooling.connection_handover import (
    SHOW_WARNINGS,
    take_diagnostics,
)
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import (
    BackendLost,
    NotPreparable,
)
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.session_state import footprint_of
from streamfrom.proxy.execution.session_tracking import apply_ok
from streamfrom.proxy.routing.routes import OneShard
from streamfrom.proxy.sql.compile.answerers import HAS_EXPRESSIONS
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.compile.session_target import SessionTarget, StatementTarget
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.proxy.sql.scatter.scattered_writes import run_everywhere
from streamfrom.proxy.wire.commands import query
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.session_settings import (
    split_set_statement,
    with_session_scope,
)
from streamfrom.sqlparse_ext.reading.statement_features import may_assign
from streamfrom.sqlparse_ext.statements import (
    Kind,
    SetKind,
    SetScope,
    Statement,
    Uses,
)


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.queues.stream_statements import StreamStatements
    from streamfrom.proxy.sql.routed_statements import RoutedStatements
    from streamfrom.proxy.sql.session_context import SessionContext


# SET PASSWORD and SET DEFAULT ROLE change the account on one server.
_OF_THE_ACCOUNT: Final = frozenset({"password", "default"})
# This SET changes nothing, and makes the tracker report the current value.
_REPORT_COLLATION: Final = query(
    b"SET @@session.character_set_connection = @@session.character_set_connection,"
    b" @@session.collation_connection = @@session.collation_connection"
)


class SetVariables:
    """The SETs of one session."""

    def __init__(
        self, context: SessionContext, routed: RoutedStatements, streams: StreamStatements
    ) -> None:
        self._state = context.state
        self._executor = context.executor
        self._connections = context.connections
        self._context = context
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._branches = context.executor.branches
        self._routed = routed
        self._streams = streams

    async def run(self, statement: Statement, reply: Reply) -> bool:
        """Carry out a SET, and answer the client; False if the answer is an error. Raises any error that stops it."""
        read, size = self._large_texts.read, size_of(statement)
        names = (await read(size, footprint_of, statement.shape)).set_names
        if names & _OF_THE_ACCOUNT and self._target.here().is_sharded:
            raise Unsupported(
                "SET PASSWORD or SET DEFAULT ROLE over several shards; ALTER USER changes all of them"
            )
        done = await self._run(statement, names, reply)
        if done and "timestamp" in names:
            for item in statement.shape.set:
                if item.name == "timestamp" and item.kind is SetKind.SYSTEM:
                    value = str(statement.text(item.value) or "").upper()
                    self._state.has_own_clock = value not in ("DEFAULT", "0")
        if done and statement.shape.uses & Uses.GLOBAL_SCOPE:
            self._target.here().outdate()
        return done

    async def _run(self, statement: Statement, names: frozenset[str], reply: Reply) -> bool:
        shape = statement.shape
        if has_no_effect(statement):
            reply.ok()
            return True
        if _TRANSACTION_MODE in names and any(
            item.kind is SetKind.SYSTEM and item.name == _TRANSACTION_MODE for item in shape.set
        ):
            raise Unsupported(
                f"SET {_TRANSACTION_MODE}; write it in [server] of the configuration"
            )
        if names == {"statement"} and len(shape.set) == 1:
            return await self._run_for_one(statement, reply)
        read, size = self._large_texts.read, size_of(statement)
        view, database, statement = await read(size, self._target.resolve, statement)
        if "session_track_system_variables" in names:
            # From here on the server reports only the variables that the client wants to track.
            self._state.tracked = None
        if "session_track_state_change" in names:
            self._state.tracks_changes = True
        scoped = await read(size, with_session_scope, statement)
        if scoped is not statement.sql:
            statement = await read(size, self._target.parse, scoped)
        found = await read(size, footprint_of, statement.shape)
        if view.is_sharded and shape.uses & Uses.SUBQUERY and b"FROM" in shape.template.upper():
            raise Unsupported("a subquery in SET in a sharded keyspace; SELECT … INTO @x")
        if view.is_sharded and (shape.uses & Uses.GLOBAL_SCOPE or found.sets_untracked):
            if may_assign(shape):
                # Its value may differ from shard to shard.
                raise Unsupported(
                    "SET of a user variable together with variables that every shard must get; one SET"
                    " for each"
                )
            await run_everywhere(
                self._executor, self._state, database, view.runtimes, statement
            )
            reply.ok()
            return True
        is_xa = self._state.transaction is not None and self._state.transaction.is_xa
        if self._switches_autocommit_on(statement) and (
            # It commits on every shard of the transaction, not just where it runs.
            len(self._branches.open) > 1
            # Servers would keep refusing writes until a COMMIT or ROLLBACK comes.
            or (self._branches.reads_only and not is_xa)
        ):
            await self._branches.commit()
        # Any shard will do: the changes that it reports follow the session.
        shards = view.runtimes
        if shape.uses & Uses.ADVISORY_LOCK:
            # All sessions that use the keyspace use the same shard.
            shards = shards[:1]
        elif database is None:
            shards = self._target.any_of(view, None, shape)
        if found.sets_collation:
            return await self._set_collation(shards, statement, reply)
        return await self._routed.on_shard(
            shards, database, CompiledStatement(statement), reply
        )

    async def _run_for_one(self, statement: Statement, reply: Reply) -> bool:
        """Run a SET STATEMENT; False if its answer is an error.

        Raises as the statement alone; Unsupported if several shards would have to answer, or the proxy itself; NotPreparable for
        a prepared one that returns rows and is not `is_plain_query`.
        """
        compiler, target = self._context.compiler, self._target
        read, size = self._large_texts.read, size_of(statement)
        parts = await read(size, split_set_statement, statement)
        view = target.here()
        if parts is None:
            # The statement is malformed, and the server reports it.
            return await self._routed.on_shard(
                view.runtimes, target.database, CompiledStatement(statement), reply
            )
        variables, text = parts
        inner = await read(size, target.parse, text)
        if (
            inner.shape.kind in _OF_THE_PROXY
            or target.answerer(inner.shape) not in HAS_EXPRESSIONS
            or compiler.sequence_of(view, inner.shape) is not None
        ):
            raise Unsupported(
                f"SET STATEMENT for this {inner.shape.verb}; SET SESSION before it"
            )
        if reply.binary and inner.shape.kind not in _WITHOUT_ROWS:
            raise NotPreparable(f"SET STATEMENT for {inner.shape.verb}")
        if inner.shape.kind is Kind.STREAM:
            return await self._streams.run(inner, reply)
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
        whole_step = CompiledStatement(whole, step.table, step.effect)
        return await self._routed.run(place.view, place.database, whole_step, route, reply)

    async def _set_collation(
        self, shards: Sequence[ShardRuntime], statement: Statement, reply: Reply
    ) -> bool:
        shape, state = statement.shape, self._state
        # Drivers send SET NAMES first, and a shard that is down must not hold up a login.
        shard, backend, (told, shown, reported) = await self._connections.ask_any(
            shards, lambda shard: self._ask(shard, statement, is_prepared=reply.binary)
        )
        if shown.error is not None or reported.error is not None:
            # If the statement was killed between the three, this connection's variables are no longer known.
            backend.close()
            self._connections.connection_lost(shard, backend)
            raise BackendLost(shard.keyspace, shard.name)
        report = reported.ok
        assert report is not None
        before = () if told.ok is None else told.ok.trackers
        # MySQL clears the warnings of the SET when it answers the report, which may have warnings of its own.
        is_known = told.ok is not None and not (told.ok.warnings or report.warnings)
        if not is_known:
            backend.has_residue = True
        trackers = (*before, *report.trackers)
        report = report._replace(warnings=0)
        apply_ok(state, self._branches, shard, backend, shape, report, trackers)
        if not is_known:
            backend.row_count = -1 if told.ok is None else 0
            if state.answered_at is backend:
                take_diagnostics(backend, state)
            assert state.diagnostics is not None
            state.diagnostics.columns, state.diagnostics.rows = shown.columns, shown.rows
        if told.ok is None:
            assert told.error is not None
            raise told.error.exception()
        reply.ok(warnings=told.ok.warnings, session_state=state.shown(told.ok.session_state))
        return True

    async def _ask(
        self, shard: ShardRuntime, statement: Statement, *, is_prepared: bool
    ) -> tuple[ShardRuntime, Backend, list[BufferedAnswer]]:
        connections, sql = self._connections, statement.sql
        backend = await connections.acquire(shard, self._target.database, statement.shape)
        packet: bytes | Execution = query(sql)
        if is_prepared:
            # MySQL gave the parser's warnings when the statement was prepared.
            reading = self._state.settings.reading
            packet = Execution(StatementKey(sql, backend.database, reading), b"", 0)
        data = await connections.bytes_for(shard, backend, packet)
        packets = [data, SHOW_WARNINGS, _REPORT_COLLATION]
        try:
            with connections.running(shard, backend):
                return shard, backend, await backend.answers(packets)
        except BaseException:
            connections.release(shard, backend)
            raise

    def _switches_autocommit_on(self, statement: Statement) -> bool:
        return not self._state.settings.autocommit and any(
            item.kind is SetKind.SYSTEM
            and item.name == "autocommit"
            and (statement.text(item.value) or "").upper() in {"1", "ON", "TRUE", "DEFAULT"}
            for item in statement.shape.set
        )


# Kinds that change state of the proxy, which no server has.
_OF_THE_PROXY: Final = frozenset({Kind.USE, Kind.KILL, Kind.PREPARE})
# Kinds answered by an OK, which is the same in both protocols.
_WITHOUT_ROWS: Final = frozenset(
    {Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL}
)


def is_plain_query(statement: Statement, target: SessionTarget) -> bool:
    """Return whether a SET STATEMENT is a SELECT that the session's one shard can run as written. Raises as the SELECT."""
    parts = split_set_statement(statement)
    here = target.view
    if parts is None or here is None or here.is_sharded:
        return False
    inner = target.parse(parts[1])
    answerer = target.answerer(inner.shape)
    if inner.shape.kind is not Kind.SELECT or answerer not in HAS_EXPRESSIONS:
        return False
    return target.resolve(inner) == StatementTarget(here, target.database, inner)


# Vitess's own, which its clients set before a STREAM.
_WITHOUT_EFFECT: Final = frozenset({"workload", "query_timeout"})
_TRANSACTION_MODE: Final = "transaction_mode"


def has_no_effect(statement: Statement) -> bool:
    """True for a SET of only variables that only Vitess has, and that have no effect here."""
    items = statement.shape.set
    return bool(items) and all(
        item.kind is SetKind.SYSTEM
        and item.scope is SetScope.SESSION
        and item.name in _WITHOUT_EFFECT
        for item in items
    )
