"""Acks that may be committed together with those of other clients: which acks may be, and what each client is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.proxy.backends.group_commit import IDS_MAX, GroupCommit
from streamfrom.proxy.backends.shard_store import engine_of
from streamfrom.proxy.errors import AckUnknown, QueryInterrupted
from streamfrom.proxy.sql.early_ack_answer import answer_early
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.group_commit import Ack
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.attempt import Attempt
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.session_rights import SessionRights
    from streamfrom.proxy.sql.statement_compiler import CompiledStatement
    from streamfrom.sqlparse_ext.statements import Value


class GroupAck:
    """One client's `proxy.backends.group_commit.Ack`, and `proxy.execution.session_connections.Gathered`.

    attempt: what is sent where the ack is sent by itself.
    complete: returns its packet then, where that is not made yet; else None.
    """

    __slots__ = (
        "_attempt",
        "_backend",
        "_complete",
        "_executor",
        "_state",
        "acked_ns",
        "ids",
        "is_left",
        "is_sent",
        "is_stopped",
        "values",
    )

    def __init__(
        self,
        attempt: Attempt,
        values: Sequence[Value],
        acked_ns: int,
        executor: Executor,
        state: SessionState,
        complete: Callable[[], bytes] | None,
    ) -> None:
        self.values = values
        self.ids = tuple(dict.fromkeys(map(literal, values)))
        self.acked_ns = acked_ns
        self.is_left = self.is_sent = self.is_stopped = False
        self._attempt = attempt
        self._complete = complete
        self._executor = executor
        self._state = state
        self._backend: Backend | None = None

    def runs_on(self, backend: Backend | None) -> None:
        """Have KILL end what runs on *backend*; None while nothing runs."""
        if self._backend is not None:
            self._executor.ended(self._backend)
        elif backend is not None and not self.is_left:
            self._executor.started(self._attempt.shard, backend)
        self._backend = backend

    def acknowledged(self) -> None:
        """Tell the client that all its messages are acknowledged."""
        self._executor.gathered = None
        answer_early(self._attempt.reply, self._state, len(self.ids))
        self._attempt.on_over(None)

    def send_alone(self) -> None:
        """Send the ack by itself, unless it was stopped."""
        if self.is_stopped:
            self.interrupted()
            return
        self._executor.gathered = None
        if self._complete is not None:
            try:
                self._attempt.packet = self._complete()
            except StreamfromError as error:
                self._attempt.on_over(error)  # its table is another one by now
                return
        is_sent = self._executor.send_now(self._attempt)
        assert is_sent, "a session that runs nothing else has not changed meanwhile"

    def fail(self, error: Exception) -> None:
        """Tell the client the error."""
        self._executor.gathered = None
        self._attempt.on_over(error)

    def lost(self, reason: str) -> None:
        """Tell the client that the connection broke and the ack may have taken effect."""
        self.fail(AckUnknown(reason))

    def interrupted(self) -> None:
        """Tell the client that its ack was stopped and has changed nothing."""
        self.fail(self._attempt.reply.stopped or QueryInterrupted())


def joins_group(
    step: CompiledStatement,
    attempt: Attempt,
    registry: Registry,
    rights: SessionRights,
    executor: Executor,
    state: SessionState,
    complete: Callable[[], bytes] | None = None,
) -> bool:
    """Have an ack committed together with others of this moment; False if it is to be sent by itself.

    complete: returns the attempt's packet, where that is made only for an ack that is sent by itself after all.

    On a table whose messages are delivered in the order of their keys, the lease of the key's next message is written with
    it.

    An ack is sent by itself, too, where its session has set variables, which the common connection does not have.
    """
    shard = attempt.shard
    if (
        step.effect is None
        or step.effect.kind is not EffectKind.ACK
        or not state.settings.is_plain
        or state.variables is not None
        or state.attributes
    ):
        return False
    table = registry.table(shard.keyspace, step.table)
    if not isinstance(table, MessageTable) or table.id_index is None:
        return False
    if table.properties.in_order is not None:
        gathered = _gathered(step, attempt, rights, executor, state, complete)
        if gathered is not None and registry.acknowledge(
            shard.keyspace, shard.name, table.name, gathered
        ):
            executor.gathered = gathered
            return True
    key = table.name, state.account
    group = shard.group_commits.get(key)
    if group is None:
        group = shard.group_commits[key] = _group(shard, *key, registry)
    if (
        not group.has_others()
        or (gathered := _gathered(step, attempt, rights, executor, state, complete)) is None
    ):
        return False
    executor.gathered = gathered
    group.join(table, gathered)
    return True


def _gathered(
    step: CompiledStatement,
    attempt: Attempt,
    rights: SessionRights,
    executor: Executor,
    state: SessionState,
    complete: Callable[[], bytes] | None,
) -> GroupAck | None:
    """Return the ack for the group; None where the statement may not be written with others."""
    ack = rights.ack_for_others(step, attempt.shard)
    if ack is None or len(ack[0]) > IDS_MAX:
        return None
    return GroupAck(attempt, *ack, executor, state, complete)


def _group(
    shard: ShardRuntime, table: str, account: Account, registry: Registry
) -> GroupCommit:
    def committed(acks: Sequence[Ack]) -> None:
        values = tuple(value for ack in acks for value in ack.values)
        rows = sum(len(ack.ids) for ack in acks)
        effect = Effect(EffectKind.ACK, values, rows=rows)
        registry.committed(shard.keyspace, shard.name, table, [effect])

    return GroupCommit(shard.pool, engine_of(shard, account), shard.database, committed)
