"""ALTER QUEUE … REQUEUE: make parked messages or dead letters ready again, in batches, on the session's own connections.

Each batch is a transaction of one shard, so nothing is locked for long, and its messages reach the streams at once. A row that the server
refuses stays where it is and becomes a warning. Messages requeued before an error, a KILL QUERY or a disconnect stay requeued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.upkeep.dead_letter_table import (
    REVIVED_AT_ONCE,
    Requeued,
    dead_letters,
    restore,
    revive,
)
from streamfrom.engine.messaging.upkeep.peek import can_peek
from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.lock_session import carry_out
from streamfrom.proxy.errors import BackendError, BadQueue
from streamfrom.proxy.execution.diagnostics_queries import warning
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreQuery
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.sqlparse_ext.reading.queues import Requeue

log = structlog.get_logger()

T = TypeVar("T")

_ROW_REFUSED: Final = 1105
# Batches per second of a slow REQUEUE; the rate is kept within one batch.
_BATCHES_A_SECOND: Final = 5
_REFUSALS_TOLD_MAX: Final = 64


def batch_size(requeue: Requeue, count: int) -> int:
    """Return the size of the next transaction, after *count* requeued messages."""
    size = REVIVED_AT_ONCE
    if requeue.limit is not None:
        size = min(size, requeue.limit - count)
    if requeue.rate is not None:
        size = min(size, int(requeue.rate / _BATCHES_A_SECOND))
    return max(1, size)


class RequeueStatements:
    """The REQUEUEs of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._state = context.state
        self._executor = context.executor
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._user = context.user.name

    async def run(
        self, view: View, table: MessageTable, requeue: Requeue, reply: Reply
    ) -> None:
        """Requeue the messages of *table* and answer with their number.

        Raises BadQueue if there is no table of dead letters, it is of several queues, or no index finds the parked messages;
        BackendUnavailable or BackendError if a shard refused; messages requeued before stay requeued.
        """
        if requeue.source == "PARKED" and not can_peek(table):
            raise BadQueue(
                f"no index of '{table.name}' finds parked messages: see streamfrom check"
            )
        if self._executor.branches.in_transaction:
            await self._executor.branches.commit()
        count, refused = 0, list[tuple[bytes, str]]()
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        try:
            for shard in view.runtimes:
                take = await self._taker(shard, view, table, requeue)
                batch: Requeued[Any] | None = None
                while count != requeue.limit and (batch is None or batch.place is not None):
                    place = None if batch is None else batch.place
                    conversation = take(place, batch_size(requeue, count))
                    batch = await self._batch(shard, view, table, conversation)
                    count += batch.rows
                    refused += batch.refused
                    if requeue.rate is not None and batch.rows:
                        pause_s = begun_s + count / requeue.rate - loop.time()
                        await self._large_texts.pause(max(0.0, pause_s))
        finally:
            log.info(
                "messages requeued",
                keyspace=table.keyspace,
                queue=table.name,
                count=count,
                source=requeue.source.lower(),
                by=self._user,
            )
        warnings = [
            warning("Warning", _ROW_REFUSED, f"{ident.decode(errors='replace')} stays: {why}")
            for ident, why in refused[:_REFUSALS_TOLD_MAX]
        ]
        diagnostics = LastDiagnostics()
        diagnostics.rows = warnings
        self._state.answered_at, self._state.diagnostics = None, diagnostics
        reply.ok(affected_rows=count, warnings=len(warnings))

    async def _taker(
        self, shard: ShardRuntime, view: View, table: MessageTable, requeue: Requeue
    ) -> Callable[[Any, int], Conversation[Requeued[Any]]]:
        """Return the function that requeues a number of messages from a place on, or from the start for None."""
        if requeue.source == "PARKED":
            return lambda place, size: revive(
                table, place, self._compiler.clock.time_ns(), size
            )
        name = table.properties.dead_letter
        if name is None:
            raise BadQueue(f"queue '{table.name}' has no dead letters: it has no dead_letter")
        dead = await self._converse(shard, view, dead_letters(table))
        if table.id_column not in dead.columns:
            raise BadQueue(
                f"'{name}' of shard {shard} has no column '{table.id_column}', by which messages come back"
                if dead.columns
                else f"shard {shard} has no table '{name}'"
            )
        if len(dead.queues) > 1:
            raise BadQueue(
                f"'{name}' takes the dead letters of several queues ({', '.join(dead.queues)}) and its rows do not"
                " say whose they are: move them by INSERT … SELECT and DELETE"
            )
        return lambda place, size: restore(table, dead, place, size)

    async def _batch(
        self,
        shard: ShardRuntime,
        view: View,
        table: MessageTable,
        conversation: Conversation[Requeued[Any]],
    ) -> Requeued[Any]:
        """Run one transaction on the session's connection to a shard."""
        branches = self._executor.branches
        branches.entered()
        try:
            found = await self._converse(shard, view, conversation)
            if found.rows:
                effect = Effect(EffectKind.RESCHEDULE, None)
                branches.happened(shard, table.name, effect, rows=found.rows)
        except BaseException:
            await branches.rollback()
            raise
        await branches.commit()
        return found

    async def _converse(
        self, shard: ShardRuntime, view: View, conversation: Conversation[T]
    ) -> T:
        async def ask(asked: StoreQuery) -> StoreAnswer:
            shape = self._target.parse(asked.sql).shape
            answer = await self._executor.ask([shard], view.database, query(asked.sql), shape)
            rows = [(tuple(parse_text_row(row)), b"") for row in answer.rows]
            return StoreAnswer(rows, 0 if answer.ok is None else answer.ok.affected_rows)

        try:
            return await carry_out(conversation, ask)
        except ServerRefused as refused:
            raise BackendError(refused.code, "HY000", refused.message) from refused
