"""Statements that check on a server whether an account may do something with a table. Pure.

The statements of a question match no row, so that the server checks the grants and does nothing: no trigger fires, no row
is locked. They name only the columns that the act needs, because a user may have grants on single columns. `WHERE FALSE` needs
no SELECT, and `sql_safe_updates` allows it.

| act | what a user does | needs |
|---|---|---|
| TAKE | STREAM | SELECT on its columns and the id, UPDATE on time_next and time_acked |
| ACK | an ack that the dispatcher writes | SELECT on the id and time_acked, UPDATE on time_next and time_acked |
| COUNT | an ack that counts the first send, on a table with lazy leases | SELECT on epoch and time_next, UPDATE on epoch |
| CHANGE | a write that needs leases and early acks written first | UPDATE on time_next |
| REMOVE | the same for DELETE and REPLACE | DELETE |
| BROWSE | the messages on the status page | SELECT on the columns shown |
| DRAW | values of a sequence | SELECT on its row, UPDATE on next_id |
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.upkeep.peek import shown_columns
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, quoted


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.sqlparse_ext.statements import Shape


# Access denied to a database, to an account, to a table, to a column; an unknown database. All other errors, such as that
# of a read-only server, do not concern the account.
REFUSALS: Final = frozenset({1044, 1045, 1049, 1142, 1143})

_DEFINES: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME", "SET"})
_BEFORE_OBJECT: Final = frozenset({"OR", "REPLACE", "DEFAULT"})
_ACCOUNTS: Final = frozenset({"USER", "ROLE"})

_STATUS: Final = ("priority", "epoch", "time_next", "time_acked")


class Act(Enum):
    """The acts that need a right."""

    TAKE = "STREAM"
    ACK = "an acknowledgement"
    COUNT = "to count the sends"
    CHANGE = "a change of messages"
    REMOVE = "a removal of messages"
    BROWSE = "browsing"
    DRAW = "a value of a sequence"


class Right(NamedTuple):
    """The right to an act on a table."""

    act: Act
    table: str
    selected: tuple[str, ...] = ()  # the columns that the act reads

    @property
    def updated(self) -> tuple[str, ...]:
        """The columns that the act sets."""
        return _UPDATED[self.act]

    @property
    def grants(self) -> str:
        """The privileges as in GRANT, without the table."""
        parts = []
        if self.selected:
            parts.append(f"SELECT ({', '.join(map(quote_identifier, self.selected))})")
        if self.updated:
            parts.append(f"UPDATE ({', '.join(map(quote_identifier, self.updated))})")
        if self.act is Act.REMOVE:
            parts.append("DELETE")
        return ", ".join(parts)

    def statements(self) -> list[bytes]:
        """Return the statements that succeed if the account has the right."""
        table = quoted(self.table)
        found = []
        if self.selected:
            found.append(
                b"SELECT %b FROM %b LIMIT 0" % (b", ".join(map(quoted, self.selected)), table)
            )
        if self.updated:
            values = b", ".join(b"%b = NULL" % quoted(column) for column in self.updated)
            found.append(b"UPDATE %b SET %b WHERE FALSE" % (table, values))
        if self.act is Act.REMOVE:
            found.append(b"DELETE FROM %b WHERE FALSE" % table)
        return found


_UPDATED: Final = {
    Act.TAKE: ("time_next", "time_acked"),
    Act.ACK: ("time_next", "time_acked"),
    Act.COUNT: ("epoch",),
    Act.CHANGE: ("time_next",),
    Act.REMOVE: (),
    Act.BROWSE: (),
    Act.DRAW: ("next_id",),
}


def take(table: MessageTable, columns: Iterable[str]) -> Right:
    """Return the right to a STREAM of *columns*."""
    return Right(Act.TAKE, table.name, _distinct([table.id_column, *columns]))


def acknowledge(table: MessageTable) -> Right:
    """Return the right to acknowledge messages."""
    return Right(Act.ACK, table.name, (table.id_column, "time_acked"))


def count(table: MessageTable) -> Right:
    """Return the right to count, with an ack, the first send, which no lease has counted."""
    return Right(Act.COUNT, table.name, ("epoch", "time_next"))


def change(table: str, *, removes: bool) -> Right:
    """Return the right to a write that changes messages, or *removes* them."""
    return Right(Act.REMOVE if removes else Act.CHANGE, table)


def browse(table: MessageTable) -> Right:
    """Return the right to see messages on the status page."""
    return Right(
        Act.BROWSE,
        table.name,
        _distinct([table.id_column, *_status(table), *shown_columns(table)]),
    )


def draw(sequence: str) -> Right:
    """Return the right to values of a sequence."""
    return Right(Act.DRAW, sequence, ("id", "next_id", "cache"))


def changes_rights(shape: Shape) -> bool:
    """Return whether a statement of this *shape* may change accounts' privileges."""
    if shape.verb in {"GRANT", "REVOKE"}:
        return True
    if shape.verb == "FLUSH":
        return "PRIVILEGES" in shape.words
    if shape.verb not in _DEFINES:
        return False
    return next((word for word in shape.words if word not in _BEFORE_OBJECT), "") in _ACCOUNTS


def _status(table: MessageTable) -> list[str]:
    return [column for column in _STATUS if column != "priority" or table.has_priority]


def _distinct(columns: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for column in columns:
        found.setdefault(column.lower(), column)
    return tuple(found.values())
