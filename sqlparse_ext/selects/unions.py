"""A UNION, or the like, written as a SELECT from a derived table.

`a UNION ALL b ORDER BY x LIMIT 3` and `SELECT * FROM (a UNION ALL b) AS u ORDER BY x LIMIT 3` are
the same rows in the same order. The second one has the form that `select_reader` reads, so a
UNION over several shards is merged like a SELECT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.selects.select_reader import read_select_from
from streamfrom.sqlparse_ext.statements import Statement
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.lexis import BAD
from streamfrom.sqlparse_ext.text.tokens import Token, outside_parens, statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import Select

_OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_ENDS: Final = frozenset({"ORDER", "LIMIT"})
_FOREIGN: Final = frozenset({"INTO", "PROCEDURE", "FETCH", "FOR", "LOCK", ":="})
# No blank at the end: a template has one blank only where a text has several.
_CLOSING: Final = b") AS `streamfrom`"


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
    if BAD in template:
        return None
    tokens = statement_tokens(template)
    outer = list(outside_parens(tokens, 0, len(tokens)))
    operators = [place for place in outer if tokens[place].key in _OPERATORS]
    if not operators or tokens[0].key not in ("SELECT", "("):
        return None
    if any(token.key in _FOREIGN or token.key == ";" for token in tokens):
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
    # One token for the derived table, which nobody looks into.
    table = Token("`", len(opening) - 1, behind + 1)
    before = [token for token in seen if token.end < len(opening)]
    after = [token for token in seen if token.start > behind]
    select = read_select_from([*before, table, *after], wrapped)
    return None if select is None else Union(body_end, is_distinct, select)


def _opening(*, is_distinct: bool) -> bytes:
    return b"SELECT DISTINCT * FROM (" if is_distinct else b"SELECT * FROM ("


def _wrap(body: bytes, tail: bytes, *, is_distinct: bool) -> bytes:
    return _opening(is_distinct=is_distinct) + body + _CLOSING + tail
