"""Messages out of your own transaction."""

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
    """A queue to which you send: `Queue("email").enqueue(connection, payload={…})`."""

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
        """Insert a message; it is delivered once your transaction commits. Return its id.

        Args:
            connection: a DB-API connection (PyMySQL, mysqlclient, Django's `connection`), or a
                `Session` or `Connection` of SQLAlchemy.
            delay: seconds until the message is ready.
            at: the moment at which it is ready, with a time zone.
            priority: less is sooner; the table's default otherwise.
            columns: the values; a dict or list is written as JSON.

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
        """Do as `enqueue` does, over a connection of asyncmy or aiomysql.

        Raises:
            ValueError: as `enqueue`.
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
        """Return the INSERT and its values, for a connection that `enqueue` does not know."""
        # The place and the value of each column, by its name.
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
