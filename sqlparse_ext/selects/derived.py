"""A SELECT from a derived table, and the plainest of them: the count of its rows.

`SELECT COUNT(*) FROM (SELECT …) AS d` is what ORMs ask for the number of pages. Its inner SELECT is
a statement of its own, so whoever can answer that one over several servers can count its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.statement_features import VOLATILE
from streamfrom.sqlparse_ext.selects.inner_selects import excerpt
from streamfrom.sqlparse_ext.selects.select_reader import FOREIGN, read_select_from
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.lexis import BAD
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.inner_selects import Excerpt
    from streamfrom.sqlparse_ext.selects.select_ast import Select
    from streamfrom.sqlparse_ext.statements import Statement


_STARTS: Final = frozenset({"SELECT", "("})


@dataclass(frozen=True, slots=True)
class Counted:
    """`SELECT COUNT(*) FROM (inner) alias` and nothing else.

    inner: the derived table whose rows are counted, without its parentheses.
    end: the place behind the last token of the template.
    select: the parts of the whole statement.
    """

    inner: Excerpt
    end: int
    select: Select

    def statement(self, statement: Statement) -> Statement:
        """Return the derived table as a statement of its own."""
        return self.inner.statement(statement)

    def described(self, statement: Statement) -> bytes:
        """Return *statement* with LIMIT 0, which has the same columns and no row."""
        (end,) = locate(statement.sql, statement.mode, (self.end,))
        return statement.sql[:end] + b" LIMIT 0"


def read_derived(template: bytes) -> Select | None:
    """Return the parts of a SELECT from one derived table; None for any other statement."""
    tokens = _tokens(template)
    found = _find(tokens, template)
    return None if found is None else _select(tokens, template, *found)


def read_counted(template: bytes) -> Counted | None:
    """Return the parts of a count of a derived table's rows; None for any other statement."""
    tokens = _tokens(template)
    found = _find(tokens, template)
    if found is None:
        return None
    start, end = found
    select = _select(tokens, template, start, end)
    if select is None or len(select.items) != 1:
        return None
    expression = select.items[0].expression
    call = None if expression is None else expression.call
    is_count = (
        call is not None and call.function == "COUNT" and not (call.arguments or call.distinct)
    )
    is_bare = select.source[1] == tokens[-1].end and select.distinct is None
    if not (is_count and is_bare):
        return None
    return Counted(excerpt(tokens, start + 1, end - 1), tokens[-1].end, select)


def _tokens(template: bytes) -> list[Token]:
    if BAD in template:
        return []
    return statement_tokens(template)


def _find(tokens: list[Token], template: bytes) -> tuple[int, int] | None:
    """Return where the derived table of a SELECT begins and ends, parentheses and all."""
    if not tokens or tokens[0].key != "SELECT":
        return None
    cursor = Cursor(tokens, template, 1)
    cursor.at = cursor.find({"FROM"})
    if not cursor.accept("FROM") or cursor.key != "(" or cursor.peek(1).key not in _STARTS:
        return None
    start = cursor.at
    return (start, cursor.at) if cursor.skip_parens() else None


def _select(tokens: list[Token], template: bytes, start: int, end: int) -> Select | None:
    # One token for the derived table, which nobody looks into.
    table = Token("`", tokens[start].start, tokens[end - 1].end)
    seen = [*tokens[:start], table, *tokens[end:]]
    if any(token.key in FOREIGN or token.key == ";" for token in seen):
        return None
    if any(token.key in VOLATILE or token.is_variable for token in tokens[start:end]):
        return None  # its columns may be other ones each time that they are looked at
    select = read_select_from(seen, template)
    return None if select is None or select.table.alias is None else select
