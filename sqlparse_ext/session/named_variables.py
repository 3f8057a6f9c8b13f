"""User variables of a statement: which ones it names, and whether it may give them values.

`SET @a = 1`, `SELECT b INTO @a`, `@a := 1`: see
https://dev.mysql.com/doc/refman/8.4/en/user-variables.html. What stored programs and the texts of
EXECUTE do to others is not in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.statement_features import is_user_variable
from streamfrom.sqlparse_ext.statements import Kind, SetKind, Uses
from streamfrom.sqlparse_ext.text.tokens import END, statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


# Kinds that give a variable a value by `:=` or INTO alone.
_READERS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL, Kind.SHOW}
    | {Kind.EXPLAIN, Kind.KILL, Kind.PREPARE}
)


def named_variables(shape: Shape) -> frozenset[str]:
    """Return the user variables in the text, without `@` and quotes, ASCII in lower case."""
    if not shape.uses & Uses.USER_VARIABLE:
        return frozenset()
    tokens = statement_tokens(shape.template)
    return frozenset(
        _lower(unquote(token, shape.template))
        for before, token in zip([END, *tokens], tokens, strict=False)
        if is_user_variable(token, before)
    )


def may_assign(shape: Shape) -> bool:
    """True unless a statement only reads the user variables in its text."""
    if not shape.uses & Uses.USER_VARIABLE:
        return False
    if shape.uses & (Uses.INTO | Uses.UNPARSED) or b":=" in shape.template:
        return True
    if shape.kind is Kind.SET:
        return any(item.kind is SetKind.USER for item in shape.set)
    return shape.kind not in _READERS


def _lower(name: str) -> str:
    # Names are compared without regard to case; of other letters the server alone knows which.
    return name.lower() if name.isascii() else name
