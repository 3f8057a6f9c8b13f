"""Names of tables and columns as SQL writes them, and the hints that go with a table's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.messaging.table.message_table import MessageTable


def columns_query(table: MessageTable, columns: Sequence[str]) -> bytes:
    """Return a statement whose answer is the column definitions of a stream, and no row."""
    names = b", ".join(quoted(column) for column in columns)
    return b"SELECT %b FROM %b WHERE 1 = 0" % (names, quoted(table.name))


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
