"""The rows that a SELECT reads from its table, as a SELECT of their own.

`SELECT STD(a) FROM t WHERE b > 1` is `SELECT STD(a) FROM (SELECT a FROM t WHERE b > 1) AS t`. So what cannot be made of the
answers of several shards can be made of their rows, by one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.queries import read_factor
from streamfrom.sqlparse_ext.selects.inner_selects import Excerpt, excerpt
from streamfrom.sqlparse_ext.text.identifiers import quoted
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Statement


_ENDS: Final = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW"})
# What locks the rows, or leaves something behind, or reads other rows, or needs the table itself.
_FOREIGN: Final = frozenset(
    {"INTO", "PROCEDURE", "FETCH", "FOR", "LOCK", "SQL_CALC_FOUND_ROWS", ":=", ";"}
    | {"UNION", "EXCEPT", "INTERSECT", "QUALIFY", "EXAMINED", "DEFAULT", "_ROWID"}
)


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of the one table of a SELECT.

    source: FROM and WHERE.
    table: its name.
    name: what the rest calls the table.
    wanted: the names in the statement, in lower case, of which its columns are some; None for all columns.
    operators: none, as of other parts that are no UNION.
    """

    source: Excerpt
    table: str
    name: str
    wanted: frozenset[str] | None
    operators: tuple[str, ...] = ()

    def ask_columns(self) -> bytes:
        """Return the query whose rows begin with the names of the table's columns, invisible ones too."""
        return b"SHOW COLUMNS FROM " + quoted(self.table)

    def statement(
        self, statement: Statement, columns: Iterable[str] | None = None
    ) -> Statement:
        """Return the SELECT of the rows, with the values that *statement* is bound to.

        columns: those of the table, of which the wanted ones are selected; None for all.
        """
        items = b"*"
        if self.wanted is not None and columns is not None:
            found = [name for name in columns if name.lower() in self.wanted]
            items = b", ".join(map(quoted, found)) or b"1"
        return self.source.statement(statement, b"SELECT %b " % items)

    def with_parts(self, statement: Statement, texts: Mapping[int, bytes]) -> bytes:
        """Return *statement* as it reads the rows that the first of *texts* gives."""
        start, end = locate(statement.sql, statement.mode, (self.source.start, self.source.end))
        source = b"FROM (%b) AS %b" % (texts[0], quoted(self.name))
        return statement.sql[:start] + source + statement.sql[end:]


def read_table_rows(template: bytes) -> TableRows | None:
    """Return the rows that a SELECT reads; None where it reads more than one table, or in doubt."""
    tokens = statement_tokens(template)
    if not tokens or tokens[0].key != "SELECT":
        return None
    if any(token.key in _FOREIGN or token.is_variable for token in tokens):
        return None
    if sum(token.key == "SELECT" for token in tokens) > 1:
        return None
    cursor = Cursor(tokens, template, 1)
    start = cursor.at = cursor.find({"FROM"})
    if not cursor.accept("FROM"):
        return None
    table = read_factor(cursor)
    if table is None or table.schema is not None or cursor.key not in ("", *_ENDS):
        return None
    if cursor.accept("WHERE"):
        cursor.at = cursor.find(_ENDS)
    names = {unquote(token, template).lower() for token in tokens if token.is_name}
    # Behind the sign of a multiplication stands an operand.
    has_star = any(
        token.key == "*" and after.key in (",", "FROM") for token, after in pairwise(tokens)
    )
    return TableRows(
        excerpt(tokens, start, cursor.at),
        table.name,
        table.alias or table.name,
        None if has_star else frozenset(names),
    )
