"""Reads KILL, MariaDB's forms included: https://mariadb.com/kb/en/kill/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import OPAQUE, KillBy, KillScope, KillTarget, Kind, Slot
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.reading.shape_builder import ShapeBuilder
    from streamfrom.sqlparse_ext.statements import Opaque, Statement
    from streamfrom.sqlparse_ext.text.tokens import Cursor

_KILL_WORDS: Final = frozenset({"HARD", "SOFT", "CONNECTION", "QUERY"})


def read_kill(builder: ShapeBuilder, cursor: Cursor) -> None:
    """Read KILL, MariaDB's forms included: https://mariadb.com/kb/en/kill/."""
    builder.kind = Kind.KILL
    hard = cursor.accept_any({"HARD", "SOFT"}) != "SOFT"
    scope = KillScope.CONNECTION
    if cursor.accept_any({"CONNECTION", "QUERY"}) == "QUERY":
        scope = KillScope.QUERY
    by = KillBy.ID
    operand: Slot | str | Opaque = OPAQUE
    if cursor.accept("USER"):
        by = KillBy.USER
        token = cursor.peek()
        if isinstance(token.slot, Slot):
            operand = token.slot
        elif token.is_name:
            operand = unquote(token, cursor.template)
    else:
        if scope is KillScope.QUERY and cursor.accept("ID"):
            by = KillBy.QUERY_ID
        slot = cursor.take().slot
        if isinstance(slot, Slot) and not cursor.key:
            operand = slot
    builder.kill = KillTarget(scope, by, operand, hard)


def killed_expression(statement: Statement) -> bytes:
    """Return the expression that names the connection to kill; empty without one."""
    template = statement.shape.template
    tokens = statement_tokens(template)
    at = 1
    while at < len(tokens) and tokens[at].key in _KILL_WORDS:
        at += 1
    if at >= len(tokens):
        return b""
    borders = tokens[at].start, tokens[-1].end
    start, end = locate(statement.sql, statement.mode, borders)
    return statement.sql[start:end]
