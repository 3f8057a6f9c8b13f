"""The rights of one session's account, checked before the proxy acts for the session with the shards' account."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.proxy.backends.backend import ASK_ROLE
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.rights.desk import Question, RightsDesk
from streamfrom.proxy.rights.questions import REFUSALS, Right, acknowledge, count
from streamfrom.proxy.status.status_source import Sight
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.statements import Kind, Shape, Value
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.writes.message_effects import early_moment


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_connections import SessionConnections
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement


EVERYTHING: Final = Sight()


class SessionRights:
    """The rights of one session, looked up at the *desk* of all sessions.

    uncounted: takes the tables in which the session's acks cannot count deliveries.
    """

    def __init__(
        self,
        desk: RightsDesk,
        state: SessionState,
        connections: SessionConnections,
        registry: Registry,
        uncounted: set[tuple[str, str]],
    ) -> None:
        self.desk = desk
        self._account = state.account
        self._is_own = state.account.is_own
        self._connections = connections
        self._registry = registry
        self._uncounted = uncounted
        # Tables whose rights are known.
        self._learned: set[tuple[str, str]] = set()

    async def check(self, shards: Iterable[ShardRuntime], right: Right) -> list[Question]:
        """Check that the session has *right* on *shards*, and return the questions that they answered.

        Waits and raises as any statement, and BackendError if a server refuses; the text names the shard and the missing grant.
        """
        if not self._is_own:
            return []
        keys = [
            Question(self._account, await self._roles(shard), shard, right) for shard in shards
        ]
        await asyncio.gather(
            *(
                self._connections.patiently(key.shard, partial(self.desk.check, key))
                for key in keys
            )
        )
        return keys

    async def has(self, shard: ShardRuntime, right: Right) -> bool:
        """Return whether the session has *right*. Raises as `check` if the server cannot be queried."""
        try:
            await self.check([shard], right)
        except BackendError as error:
            if error.code not in REFUSALS:
                raise
            return False
        return True

    def must_learn(self, view: View, shape: Shape) -> bool:
        """Return whether a write of messages has to wait for `learn`."""
        return (
            self._is_own
            and shape.kind is Kind.UPDATE
            and (view.keyspace.name, shape.tables[0].name) not in self._learned
        )

    async def learn(self, view: View, shape: Shape) -> None:
        """Find out whether the acks of a table may count deliveries, before the first statement that may be an ack is completed."""
        if view.schema is not None or not shape.tables or not self.must_learn(view, shape):
            return
        keyspace, name = view.keyspace.name, shape.tables[0].name
        table = self._registry.table(keyspace, name)
        if not isinstance(table, MessageTable):
            return
        if table.facts.is_lazy:
            right, shards = count(table), view.runtimes
            found = await asyncio.gather(
                *(
                    self.desk.check(Question(self._account, None, shard, right))
                    for shard in shards
                ),
                return_exceptions=True,
            )
            # A shard that cannot be queried refuses no statement, and the statement may be for another one.
            if any(isinstance(e, BackendError) and e.code in REFUSALS for e in found):
                self._uncounted.add((keyspace, name))
        self._learned.add((keyspace, name))

    async def sight(self, shards: Iterable[ShardRuntime]) -> Sight:
        """Return the part of the keyspaces of *shards* that the session sees. Raises BackendLost."""
        if not self._is_own:
            return EVERYTHING
        roles = {shard: await self._roles(shard) for shard in shards}
        return await self.desk.sight(
            [Question(self._account, each, shard, None) for shard, each in roles.items()]
        )

    def ack_for_others(
        self, step: CompiledStatement, shard: ShardRuntime
    ) -> tuple[Sequence[Value], int] | None:
        """Return the ids and ``time_acked`` of an ack that another connection may write; None for any other statement.

        That connection has neither the session's transaction nor its user: an UPDATE trigger would see another user, and
        the server would not check whether the session may acknowledge. If this is not known yet, it is looked up meanwhile.
        """
        effect = step.effect
        if effect is None or effect.ids is None or not self._connections.commits_at_once(shard):
            return None
        acked_ns = step.acked_ns
        if acked_ns is None:
            acked_ns = early_moment(step.statement, effect)
        if acked_ns is None or (self._is_own and not self._may_ack(step.table, shard)):
            return None
        return effect.ids, acked_ns

    def _may_ack(self, name: str, shard: ShardRuntime) -> bool:
        table = self._registry.table(shard.keyspace, name)
        return (
            isinstance(table, MessageTable)
            and not self._registry.hidden_writes(shard.keyspace).has_update_trigger(name)
            and self.desk.allows(self._account, shard, acknowledge(table))
        )

    async def _roles(self, shard: ShardRuntime) -> str | None:
        """Return the roles that SET ROLE has given the session on *shard*; None if it has those of a login."""
        backend = self._connections.branches.held.get(shard)
        # A connection is spent after SET ROLE, and may have other roles after CALL and EXECUTE.
        if backend is None or not (backend.is_spent or backend.may_have_role):
            return None
        (answer,) = await self._connections.pipeline(shard, backend, [ASK_ROLE])
        (role,) = parse_text_row(answer.rows[0])
        if role is None or role == b"NONE":
            return "NONE"
        # MySQL lists names as SET ROLE takes them; MariaDB has one, without quotes.
        text = role.decode()
        return quote_identifier(text) if shard.is_mariadb else text
