"""What a user may do on the status page: pause and resume a queue, act on its messages, requeue them, end a stream.

Each action is a statement that the user could send by a client of MySQL, in a session of the user. So the servers' grants
decide, the dispatchers hear of it, and what holds for the statement holds here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.upkeep.peek import PeekState, in_state
from streamfrom.proxy.errors import NoSuchThread
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.proxy.wire.resultset import Ok


log = structlog.get_logger()


class Action(StrEnum):
    """What is done to messages."""

    RETRY = "retry"
    ACK = "ack"
    PARK = "park"
    DELETE = "delete"


_CHANGES: Final = {
    Action.RETRY: b"UPDATE %b SET time_next = 0, epoch = 0 WHERE %b IN (%b) AND time_acked IS NULL",
    Action.ACK: b"UPDATE %b SET time_acked = NOW() WHERE %b IN (%b) AND time_acked IS NULL",
    Action.PARK: b"UPDATE %%b SET time_next = %d WHERE %%b IN (%%b) AND time_acked IS NULL"
    % PARKED_NS,
    Action.DELETE: b"DELETE FROM %b WHERE %b IN (%b)",
}
# No stream takes them, so a message that has left this state since is not meant any more.
_GUARDED: Final = frozenset({PeekState.PARKED, PeekState.BLOCKED})


class UserSession(Protocol):
    """A session of a user: `vtgate.inner_client`."""

    async def run(self, sql: bytes) -> Ok:
        """Run a statement that gives no rows. Raises BackendError."""

    def close(self) -> None:
        """Leave."""


class Enter(Protocol):
    """Opens a session; raises BackendError if there is no place for it."""

    async def __call__(self, user: str, host: str, database: str) -> UserSession:
        """Return a session of *user*, whose browser is on *host*, in a keyspace or one of its shards."""


class QueueActions:
    """The actions of one user, each of which is logged with the user's name. All raise BackendError.

    host: where the user's browser is.
    """

    def __init__(self, enter: Enter, user: str, host: str) -> None:
        self._enter = enter
        self._user = user
        self._host = host

    async def set_paused(self, keyspace: str, name: str, *, is_paused: bool) -> None:
        """Pause or resume a queue."""
        verb = "PAUSE" if is_paused else "RESUME"
        await self._run(keyspace, f"ALTER QUEUE {quote_identifier(name)} {verb}".encode())
        log.info(
            "queue paused" if is_paused else "queue resumed",
            keyspace=keyspace,
            queue=name,
            by=self._user,
        )

    async def requeue(self, keyspace: str, name: str, source: str, limit: int) -> int:
        """Make at most *limit* messages ready; *source*: PARKED or DEAD. Return their number."""
        text = f"ALTER QUEUE {quote_identifier(name)} REQUEUE {source} LIMIT {limit}"
        return await self._run(keyspace, text.encode())

    async def act(
        self,
        table: MessageTable,
        action: Action,
        ids: Mapping[str, Sequence[bytes]],
        state: PeekState | None = None,
    ) -> int:
        """Do *action* to messages; return how many it changed.

        ids: raw, by shard.
        state: leave alone what is no longer in it, where that can be said.
        """
        guard = b" AND " + in_state(state, 0) if state in _GUARDED else b""
        name, ident = quoted(table.name), quoted(table.id_column)
        count = 0
        try:
            for shard, some in ids.items():
                if some:
                    listed = b", ".join(map(table.id_literal, some))
                    change = _CHANGES[action] % (name, ident, listed)
                    count += await self._run(f"{table.keyspace}:{shard}", change + guard)
        finally:
            log.info(
                "messages changed",
                **table.named,
                action=action.value,
                count=count,
                by=self._user,
            )
        return count

    async def end_stream(self, stream: dict[str, Any] | None, connection_id: int) -> None:
        """End a stream, whose client gets error 1317 and may go on; None is one that the user does not see."""
        if stream is None:
            raise NoSuchThread(connection_id)
        await self._run("", b"KILL QUERY %d" % connection_id)
        log.info(
            "stream ended",
            keyspace=stream["keyspace"],
            queue=stream["queue"],
            connection=connection_id,
            by=self._user,
        )

    async def _run(self, target: str, sql: bytes) -> int:
        client = await self._enter(self._user, self._host, target)
        try:
            return (await client.run(sql)).affected_rows
        finally:
            client.close()
