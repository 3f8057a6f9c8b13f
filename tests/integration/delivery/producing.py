"""Messages that the tests of delivery insert."""

from typing import Any


def insert(connection: Any, ident: Any, table: str = "my_message", **columns: Any) -> None:
    names = ", ".join(["id", *columns])
    marks = ", ".join(["%s"] * (1 + len(columns)))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", (ident, *columns.values())
        )


def insert_all(connection: Any, idents: Any, table: str = "my_message") -> None:
    with connection.cursor() as cursor:
        values = ", ".join(f"({ident})" for ident in idents)
        cursor.execute(f"INSERT INTO {table} (id) VALUES {values}")
