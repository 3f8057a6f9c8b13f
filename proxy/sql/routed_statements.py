"""Run one statement on the shards of its route.

`RoutedStatements.run` is the long way of every statement that shards answer, as text or prepared. The answer of one shard is
relayed; several shards run the statement in turn, have their rows merged, or get the parts of a write. The transaction
notes the effect on messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.session_variables import UNLIMITED
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.prepared_execution import Execution, Packet
from streamfrom.proxy.execution.session_tracking import generated
from streamfrom.proxy.rights.questions import change
from streamfrom.proxy.routing.routes import (
    AnyShard,
    Combine,
    Concatenate,
    Merge,
    OneShard,
    WriteParts,
)
from streamfrom.proxy.sql.ack_desk import AckDesk, Offer
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.scatter.scattered_writes import write_parts
from streamfrom.proxy.sql.scatter.two_stage import TwoStageSelect
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.message_effects import STANDS_ALONE, Effect, EffectKind
from streamfrom.sqlparse_ext.writes.write_parts import with_limit


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.routing.routes import Route
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement, GivenIds
    from streamfrom.proxy.sql.scatter.scattered_writes import AfterOthers, Part
    from streamfrom.proxy.sql.session_context import SessionContext


_HAS_ROWS: Final = frozenset({Kind.SELECT, Kind.SHOW})


class RoutedStatements:
    """The statements of one session that its shards answer."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._state = context.state
        self._executor = context.executor
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._branches = context.executor.branches
        self._acks = AckDesk(context.registry, context.rights, context.executor, context.state)

    async def run(
        self,
        view: View,
        database: str | None,
        step: CompiledStatement,
        route: Route,
        reply: Reply,
        packet: Packet | None = None,
    ) -> bool:
        """Run a statement on *route*; False if its answer is an error.

        packet: sent instead of the text to a shard whose answer is relayed.
        """
        match route:
            case OneShard(shard) if step.given is not None:
                # Its insert id depends on which of its rows were inserted.
                route = WriteParts(((shard, None),))
                return await self._write(view, database, step, route, reply)
            case AnyShard():
                shards = self._target.any_of(view, database, step.statement.shape)
                return await self.on_shard(shards, database, step, reply, packet)
            case OneShard(shard):
                alone = (view.runtime(shard),)
                return await self.on_shard(alone, database, step, reply, packet)
            case Concatenate(shards):
                if (
                    step.statement.shape.uses & Uses.IMPLICIT_COMMIT
                    and self._branches.in_transaction
                ):
                    # On every shard of the transaction, and not one by one as they come to it.
                    await self._branches.commit()
                runtimes = [view.runtime(shard) for shard in shards]
                return await self._concatenate(runtimes, database, step, reply, packet)
            case Merge() | Combine():
                if not self._state.settings.autocommit:
                    # It opens one transaction on all of them.
                    self._branches.entered()
                several = TwoStageSelect(self._context, database, view.runtime)
                return await several.run(step.statement, route, reply)
            case WriteParts():
                return await self._write(view, database, step, route, reply)

    async def _write(
        self,
        view: View,
        database: str | None,
        step: CompiledStatement,
        route: WriteParts,
        reply: Reply,
    ) -> bool:
        """Run a write in parts."""
        shape, limit = step.statement.shape, route.rows_max
        shards = [view.runtime(shard) for shard in route.shards]
        sent: list[Part] = []
        effects: list[Effect | None] = []
        for _, own in route.parts:
            sql = own or step.statement.sql
            sent.append(
                self._sent(database, sql, shape, reply)
                if limit is None
                else self._within(limit, sql)
            )
            effect = step.effect
            if effect is not None and effect.ids is not None:
                size = max(len(sql), size_of(step.statement))
                effect = await self._large_texts.read(
                    size, self._effect_of_part, view, effect, sql
                )
            effects.append(effect)
        before = await self._insert_id_before(step.given, shards[0], database)
        for shard, effect in zip(shards, effects, strict=True):
            await self.show_leases(shard, step.table, effect)
        result = await write_parts(
            self._executor,
            self._state,
            database,
            list(zip(shards, sent, strict=True)),
            shape,
            self._context.config.merge_memory_bytes,
        )
        for shard, effect, rows in zip(shards, effects, result.affected, strict=True):
            if effect is not None:
                self._branches.happened(shard, step.table, effect, rows=rows)
        if len(shards) == 1:
            # For a single row a server sends no text, unless the row was selected.
            result = replace(result, is_insert=step.has_selected)
        insert_id = step.insert_id
        if insert_id:
            generated(self._state, insert_id)
        elif result.affected_rows:
            insert_id = step.own_id
        if step.given is not None:
            insert_id = await step.given.told(
                self._state,
                shards,
                result.affected_rows,
                result.last_insert_id,
                before,
            )
            told = (ok._replace(last_insert_id=insert_id) for ok in result.answers)
            result = replace(result, answers=tuple(told))
        if step.effect is not None and not result.affected_rows:
            fault = self._executor.fault_of(shards[0], step.table, step.effect)
            if fault is not None:
                raise fault
        await result.tell(reply, route.places, insert_id)
        return True

    def _sent(
        self, database: str | None, sql: bytes, shape: Shape, reply: Reply
    ) -> bytes | Packet:
        """Return the packet that runs *sql*; rows of RETURNING come in the protocol of the client's command."""
        if not (reply.binary and shape.uses & Uses.RETURNING):
            return query(sql)
        key = StatementKey(sql, database, self._state.settings.reading)
        return Execution(key, b"", 0, is_kept=False)

    def _within(self, limit: int, sql: bytes) -> AfterOthers:
        """Return the function that makes the part *sql* of a DELETE; all parts together delete *limit* rows at most."""
        part = self._target.parse(sql)
        return lambda deleted: query(with_limit(part, limit - deleted))

    def _effect_of_part(self, view: View, effect: Effect, sql: bytes) -> Effect:
        """Return the effect of the part *sql* of a write with *effect*: it names only the rows of that shard."""
        part = self._compiler.compile(view, self._target.parse(sql))
        return part.effect or effect

    async def show_leases(self, shard: ShardRuntime, table: str, effect: Effect | None) -> None:
        """Write the leases and early acks of the rows that a statement with *effect* is about to change.

        Writes nothing for a session that may not change them, because its statement will be refused too.
        """
        if effect is None or effect.kind in STANDS_ALONE:
            return
        registry, name = self._context.registry, shard.name
        if effect.needs_leases or registry.here.awaits_acks(shard.keyspace, name, table):
            right = change(table, removes=effect.kind is EffectKind.REMOVE)
            if await self._context.rights.has(shard, right):
                ids = None if effect.ids is None else tuple(map(literal, effect.ids))
                dispatcher = registry.dispatcher(shard.keyspace, name)
                await dispatcher.show_leases(shard.keyspace, name, table, ids)

    async def on_shard(
        self,
        shards: Sequence[ShardRuntime],
        database: str | None,
        step: CompiledStatement,
        reply: Reply,
        packet: Packet | None = None,
    ) -> bool:
        """Run a statement on one of *shards*, which give the same answer; False if the answer is an error."""
        shard, *_ = self._executor.connections.choices(shards)
        if await self._acks.offer_elsewhere(step, shard, reply) is Offer.TAKEN:
            return True
        await self.show_leases(shard, step.table, step.effect)
        shape = step.statement.shape
        sent = packet or self._sent(database, step.statement.sql, shape, reply)
        if reply.binary and shape.kind in _HAS_ROWS and not isinstance(packet, Execution):
            # The statement is sent as text, so its rows are text rows.
            answer = await self._executor.ask(shards, database, sent, shape)
            assert answer.ok is not None
            reply.head(answer.columns)
            reply.more_rows(answer.rows)
            reply.end_of_rows(warnings=answer.ok.warnings)
            return True
        attempt = Attempt(shard, database, sent, shape, reply, any_of=tuple(shards))
        attempt.step = step
        return (await self._executor.relay(attempt)).error is None

    async def _insert_id_before(
        self, given: GivenIds | None, shard: ShardRuntime, database: str | None
    ) -> int:
        """Return the session's LAST_INSERT_ID(), for an INSERT that restores it."""
        if given is None or not given.names_updated or self._state.insert_id_at is None:
            return self._state.last_insert_id
        asked = self._target.parse(b"SELECT LAST_INSERT_ID() LIMIT 1")
        answer = await self._executor.ask([shard], database, query(asked.sql), asked.shape)
        (value,) = parse_text_row(answer.rows[0])
        return int(value or 0)

    async def _concatenate(
        self,
        shards: list[ShardRuntime],
        database: str | None,
        step: CompiledStatement,
        reply: Reply,
        packet: Packet | None,
    ) -> bool:
        self._branches.check_span(shards)
        sent = packet or query(step.statement.sql)
        diagnostics, warnings = LastDiagnostics(), 0
        left = self._state.own_select_limit
        for index, shard in enumerate(shards):
            with self._state.select_limit(left):
                scanner = await self._executor.relay(
                    Attempt(shard, database, sent, step.statement.shape, reply),
                    columns=index == 0,
                    final=index == len(shards) - 1,
                    diagnostics=diagnostics,
                    warnings=warnings,
                )
            if scanner.error is not None:
                return False
            assert scanner.ok is not None
            warnings += scanner.ok.warnings
            if left != UNLIMITED:
                left = str(int(left) - scanner.rows)
        if diagnostics.rows:
            self._state.answered_at, self._state.diagnostics = None, diagnostics
        return True
