"""The LIMIT of a DELETE, which several shards keep together."""

from __future__ import annotations

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind, Param, Shape, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


def limit_of(shape: Shape) -> Slot | Param | None:
    """Return the number at the end of `DELETE … LIMIT n`; None for every other statement, and with an ORDER BY."""
    if shape.kind is not Kind.DELETE or shape.uses & (Uses.ORDER | Uses.RETURNING):
        return None
    tokens = statement_tokens(shape.template)
    slot = tokens[-1].slot
    is_limit = len(tokens) > 1 and tokens[-2].key == "LIMIT"
    return slot if is_limit and isinstance(slot, Slot | Param) else None


def rows_max(statement: Statement, limit: Slot | Param) -> int:
    """Return how many rows *statement* deletes at most. Raises Unsupported where that is no whole number."""
    number = statement.known(limit)
    if not isinstance(number, int) or number < 0:
        raise Unsupported(
            "DELETE over several shards with a LIMIT that is no whole number; write the number"
        )
    return number


def with_limit(statement: Statement, rows: int) -> bytes:
    """Return the text of a DELETE that has a `limit_of`, with the limit *rows*."""
    token = statement_tokens(statement.shape.template)[-1]
    edit = Edit(token.start, token.end, b"%d" % rows)
    return splice(statement.sql, statement.mode, [edit])
