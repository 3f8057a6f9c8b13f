"""The hot path: send a statement that one shard answers in the turn of the loop in which it came.

The hot path makes no task, no future and no copy of the answer. Every other statement, and a second try after a
failover, goes to `statement_runner.StatementRunner.run`, the long way.

This code runs for every statement, 10,000 times a second. A property, `in` on a flag or a keyword argument costs 500 to
1,500 of the proxy's 129,000 instructions for a point SELECT, and eight of them were 6 % of its rate. So do as much work
as possible once per shape, session or connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.pooling.multiplexing import LatencyClass
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.diagnostics_queries import ASKS_BACK
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.routing.routes import AnyShard, OneShard
from streamfrom.proxy.sql.ack_desk import AckDesk, Offer
from streamfrom.proxy.sql.compile.catalog import FastRoute, View
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.proxy.status.status_rows import names_schema
from streamfrom.proxy.wire.binary_parameters import with_types
from streamfrom.proxy.wire.commands import query
from streamfrom.sqlparse_ext.cache import LongTemplate
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.selects.plain_reads import is_plain_read
from streamfrom.sqlparse_ext.statements import Kind, Statement, Uses
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEMPLATE_BYTES, LARGE_TEXT_BYTES
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.prepared_statements import PreparedStatements
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.sql.transaction_control import TransactionControl


_KINDS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.SHOW}
)
_ENDS: Final = frozenset({Kind.COMMIT, Kind.ROLLBACK})
_INDIRECT_USES: Final = (
    Uses.MULTIPLE
    | Uses.LAST_INSERT_ID
    | Uses.SETS_LAST_INSERT_ID
    | Uses.IDENTITY
    | Uses.ADVISORY_LOCK
    | ASKS_BACK
)
_SHAPES_MAX: Final = 8192
# The bytes of COM_STMT_EXECUTE before its parameters: code, id, flags, iteration count.
_EXECUTE_BYTES: Final = 10
# A longer text for several shards has hundreds of rows and will probably be split. Routing it here, and again on
# the long way, would cost more than the hot path saves.
_SHARDED_BYTES_MAX: Final = 16 << 10


class FastPath:
    """The hot path of one session."""

    def __init__(
        self,
        context: SessionContext,
        table: PreparedStatements,
        transactions: TransactionControl,
    ) -> None:
        self._compiler = context.compiler
        self._target = context.compiler.target
        self._executor = context.executor
        self._registry = context.registry
        self._rights = context.rights
        self._state = context.state
        self._acks = AckDesk(context.registry, context.rights, context.executor, context.state)
        self._table = table
        self._transactions = transactions

    def send(
        self, sql: bytes, reply: Reply, on_over: Callable[[Attempt | Exception | None], None]
    ) -> bool:
        """Send the statement if one shard answers it; *on_over* gets the argument of `Executor.finish`, or None once answered.

        Return False otherwise: the long way runs the statement, or reports its error.
        """
        target = self._target
        view = target.view
        if (
            # Without a target, a statement may qualify its tables; an unhealthy replica is left first.
            view is None
            or view.is_replica
            or (
                len(sql) > _SHARDED_BYTES_MAX
                and (view.is_sharded or len(sql) > LARGE_TEXT_BYTES)
            )
        ):
            return False
        try:
            statement = target.parse(sql, LARGE_TEMPLATE_BYTES)
            direct = self._known(view, statement)
            if direct is None:
                return self._begin_or_end(statement, reply, on_over)
            shard = direct.shard
            step = None
            if direct.any_of:
                shard = self._executor.connections.choices(direct.any_of)[0]
            if shard is None:
                plan = direct.plan
                if direct.touches_messages:
                    if len(statement.shape.template) > LARGE_TEMPLATE_BYTES:
                        return False  # it is completed in a thread
                    if self._rights.must_learn(view, statement.shape):
                        return False
                    step = self._plain_step(direct, statement) or self._compiler.compile(
                        view, statement
                    )
                    if step.effect is not None and step.effect.needs_leases:
                        return False  # leases may have to be written first
                    if step.statement is not statement:
                        statement = step.statement
                        plan = view.planner.plan(statement.shape)
                route = plan.route(statement)
                if type(route) is not OneShard:
                    return False
                shard = view.runtime(route.shard)
        except (StreamfromError, LongTemplate):
            # The long way meets the same error, and is the only place that reports it.
            return False
        if step is not None and step.acked_ns is not None:
            return self._send_ack(view, direct, step, shard, reply, on_over)
        packet, shape, latency = query(statement.sql), statement.shape, direct.latency
        attempt = Attempt(
            shard, view.database, packet, shape, reply, on_over, latency, direct.any_of
        )
        return self._offer_or_send(step, attempt)

    def _begin_or_end(
        self,
        statement: Statement,
        reply: Reply,
        on_over: Callable[[Attempt | Exception | None], None],
    ) -> bool:
        """Begin a transaction, or send the COMMIT or ROLLBACK of one on one shard; as `send`."""
        shape = statement.shape
        if shape.uses or "completion_type" in self._state.settings.values:
            return False
        if shape.kind is Kind.BEGIN and self._transactions.begin_now(statement):
            reply.ok()
            on_over(None)
            return True
        if shape.kind not in _ENDS or shape.options:
            return False
        alone = self._executor.branches.alone
        if alone is None:
            return False
        shard, backend = alone
        packet = query(statement.sql)
        return self._executor.send_now(
            Attempt(shard, backend.database, packet, shape, reply, on_over)
        )

    def _offer_or_send(self, step: CompiledStatement | None, attempt: Attempt) -> bool:
        if step is not None:
            attempt.step = step
            offer = self._acks.offer(step, attempt)
            if offer is not Offer.SEND:
                return offer is Offer.TAKEN
        return self._executor.send_now(attempt)

    def _send_ack(
        self,
        view: View,
        direct: FastRoute,
        step: CompiledStatement,
        shard: ShardRuntime,
        reply: Reply,
        on_over: Callable[[Attempt | Exception | None], None],
    ) -> bool:
        """Offer a plain ack, or complete it and send it alone; as `send`."""
        assert direct.ack is not None
        attempt = Attempt(shard, view.database, b"", direct.ack.shape, reply, on_over)
        attempt.step = step

        def complete() -> bytes:
            return query(self._compiler.ack_text(view, step.statement))

        offer = self._acks.offer(step, attempt, complete)
        if offer is not Offer.SEND:
            return offer is Offer.TAKEN
        text = direct.ack.text(step.statement, step.acked_ns or 0)
        try:
            attempt.packet = complete() if text is None else query(text)
        except StreamfromError:
            return False
        return self._executor.send_now(attempt)

    def execute(
        self,
        payload: bytes,
        reply: Reply,
        on_over: Callable[[Attempt | Exception | None], None],
    ) -> bool:
        """Send a COM_STMT_EXECUTE under the same conditions, and with the same result, as `send`.

        The values are read only if a vindex or a message table needs them.
        """
        prepared = self._table.get(int.from_bytes(payload[1:5], "little"))
        if (
            prepared is None
            or prepared.place is None
            or prepared.long_data
            or prepared.fault is not None
            or prepared.cursor is not None
            or len(payload) < _EXECUTE_BYTES
            or payload[5]  # a cursor
        ):
            return False
        view, database, _ = prepared.place
        if view.is_replica:
            return False
        body = payload[_EXECUTE_BYTES:]
        try:
            prepared.settle(self._compiler, self._registry)
            statement = prepared.statement
            if statement is None:
                return False
            direct = self._known(view, statement)
            if direct is None:
                return False
            prepared.take_types(body)
            shard = direct.shard
            step = None
            if direct.any_of:
                shard = self._executor.connections.choices(direct.any_of)[0]
            if shard is None:
                if len(payload) > LARGE_TEXT_BYTES or size_of(statement) > LARGE_TEXT_BYTES:
                    return False
                statement = prepared.bind(statement, body, self._state.settings)
                if prepared.takes_back(statement):
                    return False
                route = direct.plan.route(statement)
                if type(route) is not OneShard:
                    return False
                shard = view.runtime(route.shard)
                if direct.touches_messages:
                    step = self._compiler.compile_bound(view, statement)
                    if step.effect is not None and step.effect.needs_leases:
                        return False
                    statement = step.statement
        except StreamfromError:
            return False
        body = with_types(body, prepared.count, prepared.types)
        packet = Execution(prepared.key(self._state.settings), body, prepared.count)
        shape, latency = statement.shape, direct.latency
        attempt = Attempt(
            shard, database, packet, shape, reply, on_over, latency, direct.any_of
        )
        return self._offer_or_send(step, attempt)

    def _plain_step(self, direct: FastRoute, statement: Statement) -> CompiledStatement | None:
        """Return the compiled statement, if its effect is known without completing the text; None for other statements."""
        if direct.insert is not None:
            effect = direct.insert.of(statement)
            if effect is None:
                return None
            facts = direct.insert.facts
            return CompiledStatement(statement, facts.name, effect, acks_early=facts.acks_early)
        if direct.ack is None or self._state.has_own_clock:
            return None
        ack = direct.ack.of(statement, self._compiler.clock.time_ns())
        if ack is None:
            return None
        ids, acked_ns = ack
        facts = direct.ack.facts
        effect = Effect(EffectKind.ACK, ids)
        return CompiledStatement(
            statement, facts.name, effect, acked_ns, acks_early=facts.acks_early
        )

    def _known(self, view: View, statement: Statement) -> FastRoute | None:
        if view.generation != self._registry.generation:
            # Tables were created or dropped: a name may now be, or no longer be, a message table's.
            view.direct.clear()
            view.generation = self._registry.generation
        shape = statement.shape
        try:
            return view.direct[shape]
        except KeyError:
            if len(shape.template) > LARGE_TEMPLATE_BYTES and not view.planner.knows(shape):
                return None  # the long way plans it, in a thread
            if len(view.direct) >= _SHAPES_MAX:
                view.direct.clear()
            direct = view.direct[shape] = self._work_out(view, statement)
            return direct

    def _work_out(self, view: View, statement: Statement) -> FastRoute | None:
        shape = statement.shape
        if (
            shape.kind not in _KINDS
            or shape.uses & _INDIRECT_USES
            or not self._compiler.is_sent_as_written(view, shape)
            or names_schema(shape)
        ):
            return None
        touches = self._target.touches_messages(view, shape)
        plan = view.planner.plan(shape)
        # The text for a message table depends on the values and the time, so it is compiled for each execution.
        always = None if touches else plan.always
        shard = view.runtime(always.shard) if isinstance(always, OneShard) else None
        able = (
            self._target.any_of(view, view.database, shape) if type(always) is AnyShard else ()
        )
        latency = LatencyClass() if is_plain_read(shape) and not touches else None
        ack = self._compiler.plain_ack(view, statement) if touches else None
        insert = self._compiler.plain_insert(view, shape) if touches else None
        return FastRoute(
            plan,
            touches_messages=touches,
            ack=ack,
            insert=insert,
            shard=shard,
            any_of=able if len(able) > 1 else (),
            latency=latency,
        )
