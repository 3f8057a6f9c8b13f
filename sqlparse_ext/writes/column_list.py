"""The list of columns that an INSERT leaves out, and that a vindex needs to find its value."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.reading.inserts import insert_parts
from streamfrom.sqlparse_ext.statements import InsertSource, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.sqlparse_ext.statements import Shape, Statement


def leaves_out_columns(shape: Shape) -> bool:
    """True for an INSERT or REPLACE of VALUES or of a query that says nothing of columns."""
    return (
        shape.insert is not None
        and shape.insert.columns is None
        and shape.insert.source is not InsertSource.SET
        and not shape.uses & Uses.UNPARSED
    )


def with_columns(statement: Statement, names: Sequence[str]) -> bytes:
    """Return the text of a statement that `leaves_out_columns` with the list of *names*."""
    place = _place(statement.shape)
    names_sql = ", ".join(map(quote_identifier, names)).encode("utf-8", "surrogateescape")
    return splice(statement.sql, statement.mode, [Edit(place, place, b" (%s)" % names_sql)])


@lru_cache(maxsize=1024)
def _place(shape: Shape) -> int:
    """Return where in the template the list would begin: behind the table and its partitions."""
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    cursor.at = cursor.find({"INSERT", "REPLACE"}) + 1
    parts = insert_parts(cursor)
    assert parts is not None
    return cursor.tokens[parts.columns_end].end
