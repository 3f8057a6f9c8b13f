"""Table and column names as SQL, the hints of a table, and statements that read, lock and write rows by id."""

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


def read_unacked(
    table: MessageTable,
    ids: Iterable[bytes],
    *more: bytes,
    where: bytes = b"",
    columns: Iterable[str] = (),
    is_apart: bool = False,
) -> StoreQuery:
    """Return the query for the unacked ones of *ids*; its answer has their ids, *more*, and *columns*, which stay raw.

    where: more conditions, beginning with `AND`.
    """
    ident = quoted(table.id_column)
    selected = (ident, *more, *map(quoted, columns))
    return StoreQuery(
        b"SELECT %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL%b"
        % (b", ".join(selected), by_id(table), ident, b", ".join(ids), where),
        1 + len(more),
        is_apart=is_apart,
    )


def lock_unacked(
    table: MessageTable,
    ids: Iterable[bytes],
    *more: bytes,
    where: bytes = b"",
    columns: Iterable[str] = (),
) -> StoreQuery:
    """Return the query that locks those of *ids* which are unacked and not locked, as `read_unacked`."""
    where += b" FOR UPDATE SKIP LOCKED"
    return read_unacked(table, ids, *more, where=where, columns=columns)


def update(table: MessageTable, ids: Iterable[bytes], changes: bytes) -> bytes:
    """Return the statement that makes *changes* to rows."""
    return b"UPDATE %b SET %b WHERE %b IN (%b)" % (
        by_id(table),
        changes,
        quoted(table.id_column),
        b", ".join(ids),
    )


def by_id(table: MessageTable) -> bytes:
    """Return the table with the hint to find rows by their ids."""
    return hinted(table, table.id_index)


def hinted(table: MessageTable, index: str | None) -> bytes:
    """Return the table with the hint to use *index*, if there is one."""
    return quoted(table.name) + forced(index)


def forced(index: str | None) -> bytes:
    """Return the hint to use *index*, to be put behind a table; nothing without an index."""
    return b" FORCE INDEX (%b)" % quoted(index) if index else b""


def quoted(name: str) -> bytes:
    """Return a name as SQL writes it."""
    return quote_identifier(name).encode("utf-8", "surrogateescape")
