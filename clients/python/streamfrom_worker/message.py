"""One message, as passed to a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .connections import execute, execute_async
from .names import quoted


@dataclass
class Message:
    """A row of a queue: `message["payload"]` is its column `payload`.

    delivery: 1 for the first delivery of the message, 2 for the second, and so on.
    is_acknowledged: whether your function has acknowledged the message itself.
    """

    queue: str
    id: Any
    delivery: int
    columns: Mapping[str, Any] = field(default_factory=dict)
    is_acknowledged: bool = False

    def __getitem__(self, column: str) -> Any:
        """Return the value of a column, or raise KeyError if the message does not have it."""
        return self.columns[column]

    def acknowledge(self, connection: Any) -> bool:
        """Acknowledge the message in your own transaction, so that the work and the ack commit together.

        Return False if another worker has acknowledged it already: roll back in that case. The worker
        does not acknowledge it again. *connection* is any that `Queue.enqueue` accepts.
        """
        self.is_acknowledged = True
        return execute(connection, *self._ack()).changed > 0

    async def acknowledge_async(self, connection: Any) -> bool:
        """Like `acknowledge`; *connection* is any that `Queue.enqueue_async` accepts."""
        self.is_acknowledged = True
        return (await execute_async(connection, *self._ack())).changed > 0

    def _ack(self) -> tuple[str, tuple[Any, ...]]:
        sql = f"UPDATE {quoted(self.queue)} SET time_acked = NOW() WHERE id = %s AND time_acked IS NULL"
        return sql, (self.id,)
