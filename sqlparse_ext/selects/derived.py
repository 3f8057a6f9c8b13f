"""A SELECT from a derived table: as it is written, the count of its rows, and a UNION written as one.

`SELECT COUNT(*) FROM (SELECT …) AS d` is what ORMs ask for the number of pages. Its inner SELECT is
a statement of its own, so a proxy that can answer that one over several servers can count its rows.

`a UNION ALL b ORDER BY x LIMIT 3` and `SELECT * FROM (a UNION ALL b) AS u ORDER BY x LIMIT 3` are
the same rows in the same order. The second one has the form that `select_reader` reads, so a
UNION over several shards is merged like a SELECT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.statement_features import VOLATILE
from streamfrom.sqlparse_ext.selects.inner_selects import OPERATORS, Excerpt, excerpt
from streamfrom.sqlparse_ext.selects.select_reader import FOREIGN, read_select_from
from streamfrom.sqlparse_ext.statements import Statement
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, outside_parens, statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import Select


_STARTS: Final = frozenset({"SELECT", "("})
_ENDS: Final = frozenset({"ORDER", "LIMIT"})
_NOT_IN_UNION: Final = frozenset({"INTO", "PROCEDURE", "FETCH", "FOR", "LOCK", ":=", ";"})
# No blank at the end: a template has one blank only where a text has several.
_CLOSING: Final = b") AS `streamfrom`"


@dataclass(frozen=True, slots=True)
class Counted:
    """`SELECT COUNT(*) FROM (inner) alias` and nothing else.

    inner: the derived table whose rows are counted, without its parentheses.
    select: the parts of the whole statement.
    """

    inner: Excerpt
    select: Select


def read_derived(template: bytes) -> Select | None:
    """Return the parts of a SELECT from one derived table; None for any other statement."""
    tokens = statement_tokens(template)
    found = _find(tokens, template)
    return None if found is None else _select(tokens, template, *found)


def read_counted(template: bytes) -> Counted | None:
    """Return the parts of a count of a derived table's rows; None for any other statement."""
    tokens = statement_tokens(template)
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
    return Counted(excerpt(tokens, start + 1, end - 1), select)


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
    # One token for the derived table, which is not looked into.
    table = Token("`", tokens[start].start, tokens[end - 1].end)
    seen = [*tokens[:start], table, *tokens[end:]]
    if any(token.key in FOREIGN for token in seen):
        return None
    if any(token.key in VOLATILE or token.is_variable for token in tokens[start:end]):
        return None  # its columns may be other ones each time that they are looked at
    select = read_select_from(seen, template)
    return None if select is None or select.table.alias is None else select


@dataclass(frozen=True, slots=True)
class Union:
    """Where a UNION ends and what follows it begins.

    body_end: the place in the template behind the last SELECT.
    is_distinct: the answer has each row once, whatever the operators between the SELECTs do.
    select: the parts of the wrapped template.
    """

    body_end: int
    is_distinct: bool
    select: Select

    def body(self, statement: Statement) -> bytes:
        """Return the text of all SELECTs, without what sorts and limits them together."""
        (end,) = locate(statement.sql, statement.mode, [self.body_end])
        return statement.sql[:end]

    def wrapped(self, statement: Statement) -> Statement:
        """Return *statement* as a SELECT from a derived table; its literals are the same ones."""
        body = self.body(statement)
        sql = _wrap(body, statement.sql[len(body) :], is_distinct=self.is_distinct)
        return Statement(
            sql, statement.mode, statement.shape, statement.literals, statement.runs
        )


def read_union(template: bytes, *, is_distinct: bool) -> Union | None:
    """Return the parts of a UNION, EXCEPT or INTERSECT; None when in doubt."""
    tokens = statement_tokens(template)
    outer = list(outside_parens(tokens, 0, len(tokens)))
    operators = [place for place in outer if tokens[place].key in OPERATORS]
    if not operators or tokens[0].key not in ("SELECT", "("):
        return None
    if any(token.key in _NOT_IN_UNION for token in tokens):
        return None
    last = operators[-1]
    end = next(
        (place for place in outer if place > last and tokens[place].key in _ENDS), len(tokens)
    )
    if tokens[0].start > len(template) - len(template.lstrip()):
        return None  # behind a `;`
    body_end = tokens[end - 1].end
    opening = _opening(is_distinct=is_distinct)
    wrapped = _wrap(template[:body_end], template[body_end:], is_distinct=is_distinct)
    behind = len(opening) + body_end
    seen = statement_tokens(wrapped)
    # One token for the derived table, which is not looked into.
    table = Token("`", len(opening) - 1, behind + 1)
    before = [token for token in seen if token.end < len(opening)]
    after = [token for token in seen if token.start > behind]
    select = read_select_from([*before, table, *after], wrapped)
    return None if select is None else Union(body_end, is_distinct, select)


def _opening(*, is_distinct: bool) -> bytes:
    return b"SELECT DISTINCT * FROM (" if is_distinct else b"SELECT * FROM ("


def _wrap(body: bytes, tail: bytes, *, is_distinct: bool) -> bytes:
    return _opening(is_distinct=is_distinct) + body + _CLOSING + tail
