"""Choose the way an ack goes.

An ack takes the first way that fits:

| way        | acks                                                      | the client is answered  | written by                             |
|------------|-----------------------------------------------------------|-------------------------|----------------------------------------|
| EARLY      | `vt_ack = early`; dispatched here; all messages in flight | at once                 | `acks.early_acks`, within 10 ms        |
| ELSEWHERE  | `vt_ack = early`; another member dispatches               | once it has taken it    | that member, as EARLY                  |
| TOGETHER   | others of the table come in the same moment;              | with that transaction   | `proxy.backends.group_commit`          |
|            | at most IDS_MAX ids                                       |                         |                                        |
| ALONE      | all others                                                | by the server           | the statement itself                   |

`fast_path` offers acks on the hot path to `AckDesk.offer`, which takes them EARLY or TOGETHER. `routed_statements` offers those on
the long way to `AckDesk.offer_elsewhere`. So an ack on the long way, for example one of more than 32 KB of text, goes
ELSEWHERE or ALONE.

All ways but ALONE need an ack that does nothing else, names its messages, and may be written by another connection
(`SessionRights.ack_for_others`): it is committed at once, and the session's account may acknowledge. TOGETHER also needs a
session without variables of its own. If it finds a row that is acked, gone or locked, that ack goes ALONE, so that each client gets the
answer it would have got alone. With `vt_ack = early`, ALONE waits until answered acks are written (`registry.here.awaits_acks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.group_commit import IDS_MAX, Ack, GroupCommit
from streamfrom.proxy.backends.shard_store import acks_owner
from streamfrom.proxy.errors import QueryInterrupted
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.message_effects import STANDS_ALONE, Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.attempt import Attempt
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.execution.session_connections import SessionConnections
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
    from streamfrom.proxy.sql.session_rights import SessionRights
    from streamfrom.sqlparse_ext.statements import Value


@dataclass(slots=True, eq=False)
class GatheredAck:
    """An ack that is written with others: `proxy.backends.group_commit.Ack`."""

    _attempt: Attempt  # sent if the ack is sent alone
    values: Sequence[Value]
    acked_ns: int
    _executor: Executor
    _state: SessionState
    _complete: Callable[[], bytes] | None  # returns its packet, if that is not made yet
    ids: tuple[bytes, ...] = field(init=False)
    is_left: bool = False
    is_stopped: bool = False
    _connections: SessionConnections = field(init=False)
    _backend: Backend | None = None

    def __post_init__(self) -> None:
        self.ids = tuple(dict.fromkeys(map(literal, self.values)))
        self._connections = self._executor.connections

    def runs_on(self, backend: Backend | None) -> None:
        """Let KILL stop the work on *backend*; None while nothing runs."""
        if self._backend is not None:
            self._connections.active.pop(self._backend, None)
        elif backend is not None and not self.is_left:
            self._connections.active[backend] = self._attempt.shard
        self._backend = backend

    def acknowledged(self) -> None:
        """Answer the client that all its messages are acknowledged."""
        self._connections.gathered = None
        answer(self._attempt.reply, self._state, len(self.ids))
        self._attempt.on_over(None)

    def send_alone(self) -> None:
        """Send the ack alone, unless it was stopped."""
        if self.is_stopped:
            self.interrupted()
            return
        self._connections.gathered = None
        if self._complete is not None:
            try:
                self._attempt.packet = self._complete()
            except StreamfromError as error:
                self._attempt.on_over(error)  # its table has been replaced meanwhile
                return
        is_sent = self._executor.send_now(self._attempt)
        assert is_sent, "a session that runs nothing else has not changed meanwhile"

    def fail(self, error: Exception) -> None:
        """Answer the client with the error."""
        self._connections.gathered = None
        self._attempt.on_over(error)

    def interrupted(self) -> None:
        """Answer the client that its ack was stopped and changed nothing."""
        self.fail(self._attempt.reply.stopped or QueryInterrupted())


class Offer(Enum):
    """The desk's decision on a statement offered to it."""

    TAKEN = auto()  # the desk answers the client
    SEND = auto()  # it is sent unchanged
    LONG_WAY = auto()  # it has to wait for answered acks that are not written yet


class AckDesk:
    """The acks of one session."""

    __slots__ = ("_connections", "_executor", "_registry", "_rights", "_state")

    def __init__(
        self, registry: Registry, rights: SessionRights, executor: Executor, state: SessionState
    ) -> None:
        self._registry = registry
        self._rights = rights
        self._connections = executor.connections
        self._executor = executor
        self._state = state

    def offer(
        self,
        step: CompiledStatement,
        attempt: Attempt,
        complete: Callable[[], bytes] | None = None,
    ) -> Offer:
        """Take a statement on a message table if it is an ack that goes another way than ALONE.

        complete: returns the attempt's packet, made only if the ack is sent alone after all.
        """
        effect = step.effect
        if effect is None:
            return Offer.SEND
        shard = attempt.shard
        if step.acks_early:
            if effect.kind is EffectKind.ACK and self._goes_early(step, attempt):
                return Offer.TAKEN
            if effect.kind not in STANDS_ALONE and self._registry.here.awaits_acks(
                shard.keyspace, shard.name, step.table
            ):
                return Offer.LONG_WAY
        state = self._state
        if (
            effect.kind is not EffectKind.ACK
            # The shared connection has none of these.
            or not state.settings.is_plain
            or state.variables is not None
        ):
            return Offer.SEND
        table = self._registry.table(shard.keyspace, step.table)
        if not isinstance(table, MessageTable) or table.id_index is None:
            return Offer.SEND
        is_taken = self._goes_together(table, step, attempt, complete)
        return Offer.TAKEN if is_taken else Offer.SEND

    async def offer_elsewhere(
        self, step: CompiledStatement, shard: ShardRuntime, reply: Reply
    ) -> Offer:
        """Send an ack that `offer` left ELSEWHERE, if possible."""
        if step.acks_early and (ack := self._rights.ack_for_others(step, shard)) is not None:
            values, acked_ns = ack
            ids = tuple(map(literal, values))
            rows = await self._registry.streams.ack_early_elsewhere(
                shard.keyspace, shard.name, step.table, ids, acked_ns
            )
            if rows is not None:
                answer(reply, self._state, rows)
                return Offer.TAKEN
        return Offer.LONG_WAY

    def _goes_early(self, step: CompiledStatement, attempt: Attempt) -> bool:
        shard = attempt.shard
        ack = self._rights.ack_for_others(step, shard)
        if ack is None:
            return False
        values, acked_ns = ack
        ids = tuple(map(literal, values))
        rows = self._registry.here.ack_early(
            shard.keyspace, shard.name, step.table, ids, acked_ns
        )
        if rows is None:
            return False
        answer(attempt.reply, self._state, rows)
        # In a later turn, like any answer: a command that the client has sent ahead must not begin within this one.
        asyncio.get_running_loop().call_soon(attempt.on_over, None)
        return True

    def _goes_together(
        self,
        table: MessageTable,
        step: CompiledStatement,
        attempt: Attempt,
        complete: Callable[[], bytes] | None,
    ) -> bool:
        key, shard = (table.name, self._state.account), attempt.shard
        group = shard.group_commits.get(key)
        if group is None:
            group = shard.group_commits[key] = _group(shard, *key, self._registry)
        if not group.has_others() or (ack := self._gathered(step, attempt, complete)) is None:
            return False
        self._connections.gathered = ack
        group.join(table, ack)
        return True

    def _gathered(
        self, step: CompiledStatement, attempt: Attempt, complete: Callable[[], bytes] | None
    ) -> GatheredAck | None:
        """Return the ack for writing with others; None if that is not allowed."""
        ack = self._rights.ack_for_others(step, attempt.shard)
        if ack is None or len(ack[0]) > IDS_MAX:
            return None
        return GatheredAck(attempt, *ack, self._executor, self._state, complete)


def answer(reply: Reply, state: SessionState, rows: int) -> None:
    """Answer the client that *rows* messages are acknowledged, as the server would."""
    diagnostics = LastDiagnostics()
    diagnostics.row_count = rows
    state.answered_at, state.diagnostics = None, diagnostics
    reply.updated(rows)


def _group(
    shard: ShardRuntime, table: str, account: Account, registry: Registry
) -> GroupCommit:
    def committed(acks: Sequence[Ack]) -> None:
        values = tuple(value for ack in acks for value in ack.values)
        rows = sum(len(ack.ids) for ack in acks)
        effect = Effect(EffectKind.ACK, values, rows=rows)
        registry.committed(shard.keyspace, shard.name, table, [effect])

    return GroupCommit(shard.pool, acks_owner(shard, account), shard.database, committed)
