"""Tells whether a statement may give a user variable a value.

`SET @a = 1`, `SELECT b INTO @a`, `@a := 1`: see
https://dev.mysql.com/doc/refman/8.4/en/user-variables.html. What stored programs and the texts of
EXECUTE do to others is not in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import Kind, SetKind, Uses


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


# Kinds that give a variable a value by `:=` or INTO alone.
_READERS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL, Kind.SHOW}
    | {Kind.EXPLAIN, Kind.KILL, Kind.PREPARE}
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
