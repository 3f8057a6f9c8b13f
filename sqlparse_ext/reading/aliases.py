"""Where the alias of an item of a SELECT stands; AS is optional."""

from __future__ import annotations

from typing import Final

from streamfrom.sqlparse_ext.text.lexer_patterns import STRING
from streamfrom.sqlparse_ext.text.tokens import Token, outside_parens


_STRING: Final = STRING.decode()
# Behind these words an operand follows.
BEFORE_OPERAND: Final = frozenset(
    {"AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "REGEXP", "RLIKE", "BETWEEN", "DIV", "MOD"}
    | {"COLLATE", "BINARY", "CASE", "WHEN", "THEN", "ELSE", "ESCAPE", "SOUNDS", "INTERVAL"}
    | {"OF", "MEMBER", "ALL", "DISTINCT", "ROW", "EXISTS", "CHARACTER", "ARRAY", "OVER", "FOR"}
)
# These words are no alias without AS.
NO_ALIAS: Final = BEFORE_OPERAND | {"END", "NULL", "TRUE", "FALSE", "UNKNOWN", "DEFAULT"}
# Behind these, and behind a character set such as _latin1, a string belongs to the word.
_TYPES: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "N"})
_UNITS: Final = frozenset(
    {"MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
    | {"SECOND_MICROSECOND", "MINUTE_MICROSECOND", "MINUTE_SECOND", "HOUR_MICROSECOND"}
    | {"HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND", "DAY_SECOND", "DAY_MINUTE"}
    | {"DAY_HOUR", "YEAR_MONTH"}
)


def alias_at(tokens: list[Token], start: int, end: int) -> int | None:
    """Return where the alias of the item tokens[start:end] stands, a name or a string; None without one."""
    if end - start < 2:
        return None
    last, before = tokens[end - 1], tokens[end - 2]
    if before.key == "AS":
        return end - 1
    if last.key == _STRING:
        # A string behind a string goes on with it.
        is_typed = end - start > 2 and tokens[end - 3].key in _TYPES
        if (
            (before.key == _STRING and not is_typed)
            or before.key in _TYPES
            or before.key[0] == "_"
        ):
            return None
    elif last.key == "END":
        keys = [token.key for token in tokens[start : end - 1]]
        if keys.count("CASE") > keys.count("END"):
            return None
    elif not last.is_name or last.key in NO_ALIAS:
        return None
    if before.key in BEFORE_OPERAND:
        return None
    if not (
        before.slot is not None or before.key == ")" or before.is_name or before.is_variable
    ):
        return None
    if last.key in _UNITS:
        keys = [tokens[place].key for place in outside_parens(tokens, start, end - 1)]
        if keys.count("INTERVAL") > sum(key in _UNITS for key in keys):
            return None
    return end - 1
