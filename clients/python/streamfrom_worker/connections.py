"""Run statements over your own connection, for any supported library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Executed(NamedTuple):
    """The effect of a statement: the id of the inserted row and the number of changed rows."""

    last_id: Any
    changed: int


def execute(connection: Any, sql: str, values: Sequence[Any]) -> Executed:
    """Run *sql* over a DB-API connection, or a `Session` or `Connection` of SQLAlchemy.

    Raises:
        TypeError: *connection* is none of these.
    """
    # Django's connection also has a `connection`, the driver's own: look for a cursor first.
    if hasattr(connection, "cursor"):
        cursor = connection.cursor()
        try:
            cursor.execute(sql, tuple(values))
            return Executed(cursor.lastrowid, cursor.rowcount)
        finally:
            cursor.close()
    if hasattr(connection, "exec_driver_sql") or hasattr(connection, "connection"):
        # A Session returns its transaction's Connection; a Connection takes the driver's own SQL.
        own = connection if hasattr(connection, "exec_driver_sql") else connection.connection()
        result = own.exec_driver_sql(sql, tuple(values))
        return Executed(result.lastrowid, result.rowcount)
    raise TypeError(
        f"cannot use {type(connection).__name__}: give a DB-API connection, or a Session or "
        "Connection of SQLAlchemy"
    )


async def execute_async(connection: Any, sql: str, values: Sequence[Any]) -> Executed:
    """Run *sql* over a connection of asyncmy or aiomysql.

    Raises:
        TypeError: *connection* is neither.
    """
    if not hasattr(connection, "cursor"):
        raise TypeError(
            f"cannot use {type(connection).__name__}: give a connection of asyncmy or aiomysql; with "
            "SQLAlchemy's asyncio, session.run_sync(lambda session: queue.enqueue(session, …))"
        )
    async with connection.cursor() as cursor:
        await cursor.execute(sql, tuple(values))
        return Executed(cursor.lastrowid, cursor.rowcount)
