"""INSERT … SELECT, taken apart, so that the rows can be read first and inserted then."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.statements import InsertSource, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import Cursor, outside_parens, statement_tokens


_NAME: Final = b"streamfrom"


class InsertSelect(NamedTuple):
    """What stands before the rows, up to the column list, the query that gives them, without parentheses around it, and what follows: RETURNING."""

    head: bytes
    query: bytes
    tail: bytes

    def giving(self, rows: bytes) -> bytes:
        """Return the text of the INSERT with *rows* in the place of the query."""
        return b"%b%b %b" % (self.head, rows, self.tail) if self.tail else self.head + rows


def is_insert_select(shape: Shape) -> bool:
    """True for an INSERT or REPLACE of a query's rows that does nothing else, but perhaps returns them."""
    insert = shape.insert
    return (
        insert is not None
        and insert.source is InsertSource.SELECT
        and not (insert.on_duplicate or insert.read_beside)
        and not shape.uses & Uses.UNPARSED
    )


def insert_select(statement: Statement) -> InsertSelect:
    """Take a statement that `is_insert_select` apart."""
    template, insert = statement.shape.template, statement.shape.insert
    assert insert is not None
    tokens = statement_tokens(template)
    first, last = source_at = insert.source_at
    while tokens[first].key == "(":
        inside = Cursor(tokens, template, first, last)
        if not inside.skip_parens() or inside.at != last:
            break
        first, last = first + 1, last - 1
    places = tokens[first].start, tokens[last - 1].end
    sql = statement.sql
    (head, start, end) = locate(sql, statement.mode, (tokens[source_at[0]].start, *places))
    tail = len(sql)
    if source_at[1] < len(tokens):
        (tail,) = locate(sql, statement.mode, (tokens[source_at[1]].start,))
    return InsertSelect(sql[:head], sql[start:end], sql[tail:])


def bounded(query: Statement, rows: int, lock: bytes = b"") -> bytes:
    """Return a query's text that gives *rows* rows at most, with *lock* as its locking clause."""
    tokens = statement_tokens(query.shape.template)
    if any(tokens[place].key == "LIMIT" for place in outside_parens(tokens, 0, len(tokens))):
        return b"SELECT * FROM (%b%b) AS `%b` LIMIT %d" % (query.sql, lock, _NAME, rows)
    return b"%b LIMIT %d%b" % (query.sql, rows, lock)
