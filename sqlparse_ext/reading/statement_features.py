"""Find the features that a statement uses, in one sweep over its tokens.

A flag too many costs a pinned connection or a refusal; a flag too few would cost a wrong answer.
So the sweep reads every token by its word alone, even if a parser would distinguish two uses. `alias_at` finds the alias of an item, where AS is optional, `unnamed_items` the items without one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from streamfrom.sqlparse_ext.statements import Kind, SetKind, Shape, Uses
from streamfrom.sqlparse_ext.text.lexer_patterns import STRING
from streamfrom.sqlparse_ext.text.tokens import (
    END,
    QUERY_WORDS,
    Cursor,
    Token,
    outside_parens,
    split_commas,
    statement_tokens,
    unquote,
)


AGGREGATES: Final = (
    "COUNT", "SUM", "MIN", "MAX", "AVG", "GROUP_CONCAT", "BIT_AND", "BIT_OR", "BIT_XOR",
    "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "VARIANCE",
    "JSON_ARRAYAGG", "JSON_OBJECTAGG", "ANY_VALUE", "GROUPING", "ST_COLLECT",
)  # fmt: skip
# Functions whose every evaluation may give another value.
VOLATILE: Final = frozenset(
    {"RAND", "UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "SLEEP", "NEXTVAL"}
    | {"RANDOM_BYTES", "SYSDATE", "BENCHMARK"}
)
_LOCK_FUNCTIONS: Final = (
    "GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_USED_LOCK", "IS_FREE_LOCK",
    "SERVICE_GET_READ_LOCKS", "SERVICE_GET_WRITE_LOCKS", "SERVICE_RELEASE_LOCKS",
)  # fmt: skip
_FUNCTIONS: Final[dict[str, int]] = {
    **dict.fromkeys(AGGREGATES, Uses.AGGREGATE.value),
    **dict.fromkeys(_LOCK_FUNCTIONS, Uses.ADVISORY_LOCK.value),
    **dict.fromkeys(
        ("CONNECTION_ID", "USER", "SESSION_USER", "SYSTEM_USER"), Uses.IDENTITY.value
    ),
    "FOUND_ROWS": Uses.FOUND_ROWS.value,
    "ROW_COUNT": Uses.ROW_COUNT.value,
}
_WORDS: Final[dict[str, int]] = {
    "SQL_CALC_FOUND_ROWS": Uses.CALC_FOUND_ROWS.value,
    "CURRENT_USER": Uses.IDENTITY.value,  # with or without parentheses
    "DISTINCT": Uses.DISTINCT.value,
    "DISTINCTROW": Uses.DISTINCT.value,
    "HAVING": Uses.GROUP.value,
    "LIMIT": Uses.LIMIT.value,
    "FETCH": Uses.LIMIT.value,
    "JOIN": Uses.JOIN.value,
    "UNION": Uses.SETOP.value,
    "EXCEPT": Uses.SETOP.value,
    "INTERSECT": Uses.SETOP.value,
    "OVER": Uses.WINDOW.value,
    "WINDOW": Uses.WINDOW.value,
    "RETURNING": Uses.RETURNING.value,
}
_PAIRS: Final[dict[tuple[str, str], int]] = {
    ("GROUP", "BY"): Uses.GROUP.value,
    ("ORDER", "BY"): Uses.ORDER.value,
    ("FOR", "UPDATE"): Uses.LOCKING_READ.value,
    ("FOR", "SHARE"): Uses.LOCKING_READ.value,
    ("LOCK", "IN"): Uses.LOCKING_READ.value,
}
_PAIR_FIRST: Final = frozenset(first for first, _ in _PAIRS)
_SYSTEM_VARIABLES: Final[dict[str, int]] = {
    "identity": Uses.LAST_INSERT_ID.value,
    "last_insert_id": Uses.LAST_INSERT_ID.value,
    "warning_count": Uses.DIAGNOSTICS.value,
    "error_count": Uses.DIAGNOSTICS.value,
    "socket": Uses.IDENTITY.value,  # the path of the server's socket, not of the proxy's
}
# MariaDB's.
SEQUENCE_FUNCTIONS: Final = frozenset({"NEXTVAL", "SETVAL", "LASTVAL"})
# Words before a parenthesised SELECT that is no subquery.
_SETOP_WORDS: Final = frozenset({"UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT"})
# FROM inside these is no clause: EXTRACT(YEAR FROM d), TRIM(LEADING 'x' FROM s).
FROM_FUNCTIONS: Final = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "MID", "OVERLAY"})
SELECT_OPTIONS: Final = frozenset(
    {"SELECT", "ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE"}
)
# Verbs that MariaDB also accepts outside stored programs; no other statement begins so.
COMPOUND: Final = frozenset({"IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR", "DECLARE"})
# Kinds that assign to a variable only by `:=` or INTO.
_ASSIGN_IN_TEXT: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL, Kind.SHOW}
    | {Kind.EXPLAIN, Kind.KILL, Kind.PREPARE}
)


def sweep(tokens: list[Token]) -> Uses:
    """Return the flags that tokens alone show."""
    found = 0
    before = END
    leading = True  # only opening parentheses so far
    for place, token in enumerate(tokens):
        key = token.key
        after = tokens[place + 1] if place + 1 < len(tokens) else END
        if key[:1] == "@":
            found |= _variable(token, before)
        elif key == "(":
            if after.key in QUERY_WORDS and not leading and before.key not in _SETOP_WORDS:
                found |= Uses.SUBQUERY.value
        else:
            found |= _WORDS.get(key, 0)
            if after.key == "(":
                found |= _FUNCTIONS.get(key, 0)
                if key == "LAST_INSERT_ID":
                    sets = place + 2 < len(tokens) and tokens[place + 2].key != ")"
                    found |= (Uses.SETS_LAST_INSERT_ID if sets else Uses.LAST_INSERT_ID).value
            if key in _PAIR_FIRST:
                found |= _PAIRS.get((key, after.key), 0)
            elif key == "STRAIGHT_JOIN" and before.key not in SELECT_OPTIONS:
                found |= Uses.JOIN.value
        leading = leading and key == "("
        before = token
    return Uses(found)


def _variable(token: Token, before: Token) -> int:
    name = token.key.lower()
    if name.startswith("@@"):
        return _SYSTEM_VARIABLES.get(name.lstrip("@").rpartition(".")[2], 0)
    return Uses.USER_VARIABLE.value if is_user_variable(token, before) else 0


def is_user_variable(token: Token, before: Token) -> bool:
    """True for `@name`, unless it is the host of an account, as in 'root'@'localhost'."""
    if token.key[:1] != "@" or token.key[:2] == "@@":
        return False
    return before.end != token.start or not (before.is_name or before.slot is not None)


def user_variables(tokens: list[Token], template: bytes) -> frozenset[str]:
    """Return the user variables among *tokens*, without `@` and quotes, ASCII in lower case."""
    names = {
        unquote(token, template)
        for before, token in zip([END, *tokens], tokens, strict=False)
        if is_user_variable(token, before)
    }
    # Names are compared without regard to case; only the server knows the case of non-ASCII letters.
    return frozenset(name.lower() if name.isascii() else name for name in names)


def makes_or_drops_database(shape: Shape) -> bool:
    """Return whether a statement is CREATE DATABASE or DROP DATABASE, the only DDL with a target besides ALTER."""
    return (
        shape.kind is Kind.DDL and shape.target is not None and shape.verb in {"CREATE", "DROP"}
    )


def asks_sequence(shape: Shape) -> bool:
    """Return whether a statement takes a value of a MariaDB sequence, which writes it, or calls LASTVAL, which only reads.

    See https://mariadb.com/kb/en/sequence-functions/.
    """
    keys = [token.key for token in statement_tokens(shape.template)]
    return any(
        (key in SEQUENCE_FUNCTIONS and after == "(") or (key, after) == ("VALUE", "FOR")
        for key, after in pairwise(keys)
    )


def may_assign(shape: Shape) -> bool:
    """Return False only if a statement just reads the user variables in its text.

    `SET @a = 1`, `SELECT b INTO @a`, `@a := 1`: see
    https://dev.mysql.com/doc/refman/8.4/en/user-variables.html. Changes by stored programs and the texts of
    EXECUTE are not in the text.
    """
    if not shape.uses & Uses.USER_VARIABLE:
        return False
    if shape.uses & (Uses.INTO | Uses.UNPARSED) or b":=" in shape.template:
        return True
    if shape.kind is Kind.SET:
        return any(item.kind is SetKind.USER for item in shape.set)
    return shape.kind not in _ASSIGN_IN_TEXT


_STRING: Final = STRING.decode()
# An operand follows these words.
BEFORE_OPERAND: Final = frozenset(
    {"AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "REGEXP", "RLIKE", "BETWEEN", "DIV", "MOD"}
    | {"COLLATE", "BINARY", "CASE", "WHEN", "THEN", "ELSE", "ESCAPE", "SOUNDS", "INTERVAL"}
    | {"OF", "MEMBER", "ALL", "DISTINCT", "ROW", "EXISTS", "CHARACTER", "ARRAY", "OVER", "FOR"}
)
# These words are no alias without AS.
NO_ALIAS: Final = BEFORE_OPERAND | {"END", "NULL", "TRUE", "FALSE", "UNKNOWN", "DEFAULT"}
# After these, and after a character set such as _latin1, a string belongs to the word.
_TYPES: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "N"})
_UNITS: Final = frozenset(
    {"MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
    | {"SECOND_MICROSECOND", "MINUTE_MICROSECOND", "MINUTE_SECOND", "HOUR_MICROSECOND"}
    | {"HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND", "DAY_SECOND", "DAY_MINUTE"}
    | {"DAY_HOUR", "YEAR_MONTH"}
)


def alias_at(tokens: list[Token], start: int, end: int) -> int | None:
    """Return the place of the alias, a name or a string, of the item tokens[start:end]; None without one."""
    if end - start < 2:
        return None
    last, before = tokens[end - 1], tokens[end - 2]
    if before.key == "AS":
        return end - 1
    if last.key == _STRING:
        # A string after a string continues it.
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


_LIST_ENDS: Final = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT"}
    | {"INTO", "FOR", "LOCK", "WINDOW", "PROCEDURE", "SELECT", ";"}
)
# Servers accept this many nested SELECTs (ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT), and each is read once for those around it.
_NESTED_MAX: Final = 63


def unnamed_items(tokens: list[Token], places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges in the template of the columns without an alias, of any SELECT, that contain one of *places*.

    A server names these columns after their text, so an edit of the text must name them. A column with a subquery comes before
    those of the subquery.
    """
    found, depth = [], 0
    for at, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        if token.key == "SELECT" and depth <= _NESTED_MAX:
            found += [pair for pair in _items_of(tokens, at) if pair[0] < pair[1]]
    spans = [(tokens[start].start, tokens[end - 1].end) for start, end in found]
    return [
        span
        for span, pair in zip(spans, found, strict=True)
        if bisect_left(places, span[0]) < bisect_left(places, span[1])
        and alias_at(tokens, *pair) is None
    ]


def _items_of(tokens: list[Token], select: int) -> list[tuple[int, int]]:
    cursor = Cursor(tokens, b"", select + 1)
    cursor.skip_all(SELECT_OPTIONS - {"SELECT"})
    return split_commas(tokens, cursor.at, cursor.find(_LIST_ENDS))
