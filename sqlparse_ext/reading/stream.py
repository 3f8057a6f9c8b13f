"""Reads our own statement.

STREAM [/*vt+ … */] * | column [, …] FROM [ks.]table [WHERE key = value | key IN (value, …)] [LIMIT n [WAIT s]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.conditions import read_operand
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Operand, StreamShape


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape
    from streamfrom.sqlparse_ext.text.tokens import Cursor


_SORT = "messages come by priority and then as they are due, so sort what has come"
_JOIN = "SELECT the rest by the ids that have come"
_ALL = "each stream gets what is ready, so acknowledge or reschedule what you do not want"
_KEY = (
    "WHERE takes the key of the table and nothing else: column = value, or column IN (value, …);"
    " each stream gets what is ready, so acknowledge or reschedule what you do not want,"
    " or narrow it to a shard: `keyspace:-80`.t"
)
_READ = "a SELECT reads the table as any other"
# What people write behind the table, and what they can do instead.
_INSTEAD: Final = {
    "ORDER": _SORT,
    "OFFSET": _ALL,
    "WHERE": _KEY,
    "AND": _KEY,
    "OR": _KEY,
    **dict.fromkeys(
        ("JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN"), _JOIN
    ),
    **dict.fromkeys(("GROUP", "HAVING", "UNION", "FOR"), _READ),
}


class StreamSyntaxError(Exception):
    """A STREAM that is none; *position* is where in the template it goes wrong.

    The template has no literals, so the caller, which has the text, makes the error for the client.

    Attributes:
        instead: what the client can do in place of it; "" where the grammar says it all.
    """

    def __init__(self, position: int, instead: str = "") -> None:
        super().__init__(f"not a STREAM at {position}")
        self.position = position
        self.instead = instead


def read_stream(shape: Shape, cursor: Cursor) -> None:
    """Read STREAM behind its verb.

    Raises:
        StreamSyntaxError: anything that the grammar does not have.
    """
    shape.kind = Kind.STREAM
    columns = None if cursor.accept("*") else _columns(cursor)
    if not cursor.accept("FROM"):
        raise _error(cursor)
    place = cursor.at
    table = cursor.table()
    if table is None:
        cursor.at = place
        raise _error(cursor)
    limit: Operand = OPAQUE
    wait: Operand = OPAQUE
    key, key_values = _where(cursor) if cursor.accept("WHERE") else (None, ())
    if cursor.accept("LIMIT"):
        limit = _operand(cursor)
        if cursor.accept("WAIT"):
            wait = _operand(cursor)
    if cursor.key == ",":
        raise _error(cursor, _JOIN if limit is OPAQUE else _ALL)
    if cursor.key:
        is_in_where = key is not None and limit is OPAQUE
        raise _error(cursor, _INSTEAD.get(cursor.key, _KEY if is_in_where else ""))
    shape.stream = StreamShape(columns, table, limit, wait, key, key_values)
    shape.tables = (table,)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    columns = []
    while True:
        # `STREAM FROM t` names no column; a column called from must be quoted.
        if cursor.key == "FROM" or (column := cursor.name()) is None:
            raise _error(cursor)
        columns.append(column)
        if not cursor.accept(","):
            return tuple(columns)


def _where(cursor: Cursor) -> tuple[str, tuple[Operand, ...]]:
    column = cursor.name()
    if column is None:
        raise _error(cursor, _KEY)
    if cursor.accept("="):
        return column, (_operand(cursor, _KEY),)
    if not cursor.accept("IN", "("):
        raise _error(cursor, _KEY)
    values = [_operand(cursor, _KEY)]
    while cursor.accept(","):
        values.append(_operand(cursor, _KEY))
    if not cursor.accept(")"):
        raise _error(cursor, _KEY)
    return column, tuple(values)


def _operand(cursor: Cursor, instead: str = "") -> Operand:
    operand = read_operand(cursor.tokens, cursor.at, min(cursor.at + 1, cursor.end))
    if operand is OPAQUE:
        raise _error(cursor, instead)
    cursor.take()
    return operand


def _error(cursor: Cursor, instead: str = "") -> StreamSyntaxError:
    here = cursor.peek()
    return StreamSyntaxError(here.start if here.key else len(cursor.template), instead)
