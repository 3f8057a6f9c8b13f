"""One message, as a function gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .connections import execute, execute_async
from .names import quoted


@dataclass
class Message:
    """A row of a queue: `message["payload"]` is its column `payload`.

    delivery: 1 the first time the message is delivered, 2 the second time, and so on.
    is_acknowledged: whether your function acknowledged it itself.
    """

    queue: str
    id: Any
    delivery: int
    columns: Mapping[str, Any] = field(default_factory=dict)
    is_acknowledged: bool = False

    def __getitem__(self, column: str) -> Any:
        """Return the value of a column; KeyError if the queue has none of that name."""
        return self.columns[column]

    def acknowledge(self, connection: Any) -> bool:
        """Acknowledge it in your own transaction, so that the work and the ack commit together.

        Return False if it was acknowledged before, by another worker: roll back then. The worker does
        not acknowledge it a second time. *connection* is what `Queue.enqueue` takes.
        """
        self.is_acknowledged = True
        return execute(connection, *self._ack()).changed > 0

    async def acknowledge_async(self, connection: Any) -> bool:
        """Do as `acknowledge` does; *connection* is what `Queue.enqueue_async` takes."""
        self.is_acknowledged = True
        return (await execute_async(connection, *self._ack())).changed > 0

    def _ack(self) -> tuple[str, tuple[Any, ...]]:
        sql = f"UPDATE {quoted(self.queue)} SET time_acked = NOW() WHERE id = %s AND time_acked IS NULL"
        return sql, (self.id,)
