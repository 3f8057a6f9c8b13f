"""The GRANT statements for one job with one queue, with only the columns that it needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable, RawColumn


class Purpose(StrEnum):
    """The job of an account."""

    PRODUCER = "producer"  # inserts messages
    # streams and acknowledges, reschedules, extends leases, and records its errors
    CONSUMER = "consumer"
    READER = "reader"  # reads the table
    # creates, changes, pauses and drops the queue, and acts on its messages
    OPERATOR = "operator"


class Grantee(NamedTuple):
    """An account that receives grants, as its server names it."""

    name: str
    host: str

    def __str__(self) -> str:
        # Backticks need no escapes in any sql_mode of the session that runs the statements.
        return f"{quote_identifier(self.name)}@{quote_identifier(self.host)}"


# Written by a worker in the UPDATE that reschedules, in any table that has this column.
_ERROR: Final = "last_error"
_OF_THE_CONSUMER: Final = frozenset({"time_acked", _ERROR})
_OPERATES: Final = "SELECT, UPDATE, DELETE, CREATE, ALTER, DROP"


def grants(
    purpose: Purpose,
    table: MessageTable,
    columns: Sequence[RawColumn],
    database: str,
    grantee: Grantee,
) -> Iterator[str]:
    """Yield the grants for *purpose*.

    columns: the columns of *table* as the server describes them.
    """
    match purpose:
        case Purpose.PRODUCER:
            hers = _OF_THE_CONSUMER if table.first_layout else {*_OF_THE_CONSUMER, "epoch"}
            given = [
                column.name
                for column in columns
                if column.name.lower() not in hers and "GENERATED" not in column.extra.upper()
            ]
            yield _grant(f"INSERT {_listed(given)}", database, table.name, grantee)
        case Purpose.CONSUMER:
            written = {"time_next", "time_acked", _ERROR}
            if table.facts.is_lazy:
                # An ack counts the first send, which the row does not show yet.
                written.add("epoch")
            read = {*map(str.lower, table.streamed), table.id_column.lower(), *written}
            reads = f"SELECT {_listed(_named(table, read))}"
            writes = f"UPDATE {_listed(_named(table, written))}"
            # SHOW VIEW is the right to see the definition, with the settings, and no other.
            yield _grant(f"{reads}, {writes}, SHOW VIEW", database, table.name, grantee)
        case Purpose.READER:
            yield _grant("SELECT", database, table.name, grantee)
        case Purpose.OPERATOR:
            yield from operator_grants(
                table.name, table.properties.dead_letter, database, grantee
            )


def operator_grants(
    queue: str, dead_letter: str | None, database: str, grantee: Grantee
) -> Iterator[str]:
    """Yield the grants for an operator, who may also create the queue.

    dead_letter: the table for its dead letters; None without one.
    """
    # Requeuing dead letters inserts them again.
    privileges = _OPERATES if dead_letter is None else f"{_OPERATES}, INSERT"
    yield _grant(privileges, database, queue, grantee)
    if dead_letter is not None:
        yield _grant("SELECT, DELETE, CREATE, ALTER, DROP", database, dead_letter, grantee)


def _named(table: MessageTable, names: Collection[str]) -> list[str]:
    """Return the *names* (lower case) that the table has, spelled and ordered as in the table."""
    return [column for column in table.columns if column.lower() in names]


def _listed(columns: Sequence[str]) -> str:
    return f"({', '.join(map(quote_identifier, columns))})"


def _grant(privileges: str, database: str, table: str, grantee: Grantee) -> str:
    place = f"{quote_identifier(database)}.{quote_identifier(table)}"
    return f"GRANT {privileges} ON {place} TO {grantee};"
