"""Names of tables and columns as SQL writes them, the hints that go with a table's, and how rows are locked by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable


def columns_query(table: MessageTable, columns: Sequence[str]) -> bytes:
    """Return a statement whose answer is the column definitions of a stream, and no row."""
    names = b", ".join(quoted(column) for column in columns)
    return b"SELECT %b FROM %b WHERE 1 = 0" % (names, quoted(table.name))


def lock_unacked(table: MessageTable, ids: Iterable[bytes], *more: bytes) -> StoreQuery:
    """Return the query that locks those of *ids* which are unacked and not locked; its answer has their ids, and *more*."""
    ident = quoted(table.id_column)
    return StoreQuery(
        b"SELECT %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL FOR UPDATE SKIP LOCKED"
        % (b", ".join((ident, *more)), by_id(table), ident, b", ".join(ids)),
        1 + len(more),
    )


def by_id(table: MessageTable) -> bytes:
    """Return the table with the hint to find rows by their ids."""
    return hinted(table, table.id_index)


def hinted(table: MessageTable, index: str | None) -> bytes:
    """Return the table with the hint to use *index*, if there is one."""
    return quoted(table.name) + forced(index)


def forced(index: str | None) -> bytes:
    """Return the hint to use *index*, as it stands behind a table; nothing without an index."""
    return b" FORCE INDEX (%b)" % quoted(index) if index else b""


def quoted(name: str) -> bytes:
    """Return a name as SQL writes it."""
    return quote_identifier(name).encode("utf-8", "surrogateescape")
