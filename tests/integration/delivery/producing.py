"""Messages that the tests of delivery insert, and rows that they lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fixtures.database_servers import DatabaseServer, root
from tests.fixtures.streams import run


def insert(connection: Any, ident: Any, table: str = "my_message", **columns: Any) -> None:
    names = ", ".join(["id", *columns])
    marks = ", ".join(["%s"] * (1 + len(columns)))
    with connection.cursor() as cursor:
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        cursor.execute(sql, (ident, *columns.values()))


def insert_all(connection: Any, idents: Any, table: str = "my_message") -> None:
    with connection.cursor() as cursor:
        values = ", ".join(f"({ident})" for ident in idents)
        cursor.execute(f"INSERT INTO {table} (id) VALUES {values}")


@contextmanager
def locked(server: DatabaseServer, database: str, sql: str) -> Iterator[None]:
    """Hold what *sql* locks, past the proxy."""
    with root(server, database=database, autocommit=False) as holder:
        run(holder, sql)
        yield
