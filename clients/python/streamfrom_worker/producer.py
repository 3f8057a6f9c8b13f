"""Send messages in your own transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .connections import execute, execute_async
from .names import quoted, quoted_column


@dataclass(frozen=True)
class Queue:
    """A queue to send to: `Queue("email").enqueue(connection, payload={…})`."""

    name: str

    def enqueue(
        self,
        connection: Any,
        *,
        delay: float | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        **columns: Any,
    ) -> Any:
        """Insert a message and return its id. The message is delivered once your transaction commits.

        Args:
            connection: a DB-API connection (PyMySQL, mysqlclient, Django's `connection`), or a
                `Session` or `Connection` of SQLAlchemy.
            delay: seconds until the message is ready.
            at: when the message is ready, as a datetime with a time zone.
            priority: lower values are delivered first; default: the table's.
            columns: the values of other columns; a dict or list is written as JSON.

        Raises:
            ValueError: both `delay` and `at`, a negative delay, or `at` without a time zone.
        """
        sql, values = self.statement(delay=delay, at=at, priority=priority, columns=columns)
        return execute(connection, sql, values).last_id

    async def enqueue_async(
        self,
        connection: Any,
        *,
        delay: float | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        **columns: Any,
    ) -> Any:
        """Like `enqueue`, over a connection of asyncmy or aiomysql.

        Raises:
            ValueError: as for `enqueue`.
        """
        sql, values = self.statement(delay=delay, at=at, priority=priority, columns=columns)
        return (await execute_async(connection, sql, values)).last_id

    def statement(
        self,
        *,
        delay: float | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        columns: Mapping[str, Any],
    ) -> tuple[str, Sequence[Any]]:
        """Return the INSERT and its values, for a connection that `enqueue` does not support."""
        # The placeholder and the value of each column, by name.
        cells: dict[str, tuple[str, Any]] = {
            quoted_column(name): (
                "%s",
                json.dumps(value) if isinstance(value, dict | list) else value,
            )
            for name, value in columns.items()
        }
        if priority is not None:
            cells["priority"] = "%s", priority
        if delay is not None and at is not None:
            raise ValueError("give delay or at, not both")
        if delay is not None:
            if delay < 0:
                raise ValueError(f"delay must be at least 0 seconds, not {delay}")
            cells["time_next"] = "NOW() + INTERVAL %s MICROSECOND", round(delay * 1e6)
        if at is not None:
            if at.tzinfo is None:
                raise ValueError("at needs a time zone: datetime.now(timezone.utc)")
            cells["time_next"] = "%s", round(at.timestamp() * 1e6) * 1000
        places = ", ".join(place for place, _ in cells.values())
        sql = f"INSERT INTO {quoted(self.name)} ({', '.join(cells)}) VALUES ({places})"
        return sql, [value for _, value in cells.values()]
