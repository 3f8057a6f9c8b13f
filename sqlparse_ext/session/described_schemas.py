"""Which schemas a query on `information_schema` can show rows of, as far as its conditions say.

The answer is None wherever that is not certain: what cannot be shown to be narrowed is everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import Kind, Param, Uses
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    Token,
    outside_parens,
    split_at,
    statement_tokens,
    unquote,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import ListSlot, Shape, Slot, Statement


INFORMATION_SCHEMA: Final = "information_schema"
# Schemas that every server has and that describe only itself.
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
# Each row of these tables describes what is in the schema that one of these columns names.
_OF_SCHEMAS: Final = frozenset(
    {
        "TABLES", "COLUMNS", "STATISTICS", "KEY_COLUMN_USAGE", "TABLE_CONSTRAINTS", "VIEWS", "SCHEMATA",
        "REFERENTIAL_CONSTRAINTS", "CHECK_CONSTRAINTS", "ROUTINES", "PARAMETERS", "TRIGGERS", "PARTITIONS",
        "EVENTS", "COLUMN_STATISTICS", "VIEW_TABLE_USAGE",
    }
)  # fmt: skip
# And these describe nothing of any schema.
_OF_THE_SERVER: Final = frozenset(
    {"CHARACTER_SETS", "COLLATIONS", "COLLATION_CHARACTER_SET_APPLICABILITY", "ENGINES"}
    | {"KEYWORDS", "SQL_FUNCTIONS", "PLUGINS", "ST_SPATIAL_REFERENCE_SYSTEMS"}
)
SCHEMA_COLUMNS: Final = frozenset(
    {"TABLE_SCHEMA", "SCHEMA_NAME", "CONSTRAINT_SCHEMA", "ROUTINE_SCHEMA", "SPECIFIC_SCHEMA"}
    | {"TRIGGER_SCHEMA", "EVENT_SCHEMA", "VIEW_SCHEMA", "EVENT_OBJECT_SCHEMA"}
)
# With one of these outside of parentheses a condition is more than its parts.
_NOT_ONLY_AND: Final = frozenset(
    {"OR", "||", "XOR", "CASE", "BETWEEN", ":=", "RIGHT", "FULL", "NATURAL", "&&"}
)
_ENDS: Final = frozenset({"GROUP", "HAVING", "ORDER", "LIMIT", "PROCEDURE", "FOR", "WINDOW"})
_JOINS: Final = frozenset({"JOIN", "STRAIGHT_JOIN", "WHERE", "LEFT", "INNER", "CROSS", ","})
_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})

_Values = frozenset["Slot | ListSlot | Param | None"]


def described(statement: Statement, columns: frozenset[str]) -> frozenset[bytes] | None:
    """Return what *columns* of every row of `information_schema` in the answer can be.

    b"" stands for DATABASE(), b"?" for a parameter. None where it can be anything.
    """
    shape = statement.shape
    if shape.kind is not Kind.SELECT or shape.uses & (
        Uses.SUBQUERY | Uses.SETOP | Uses.CTE | Uses.UNPARSED
    ):
        return None
    found: set[bytes] = set()
    narrowed: set[str] = set()
    conditions = _conditions(shape, columns)
    wanted = set()
    for table in shape.tables:
        if table.name.upper() in _OF_THE_SERVER:
            continue
        if table.name.upper() not in _OF_SCHEMAS:
            return None
        wanted.add((table.alias or table.name).lower())
    for scope, owner, operand in conditions:
        if isinstance(operand, str):
            continue
        name = owner or (next(iter(wanted)) if len(wanted) == 1 else "")
        if scope in ("", name):
            values = _spelled(statement, operand)
            if values is None:
                return None
            narrowed.add(name)
            found |= values
    for _ in wanted:
        for scope, owner, operand in conditions:
            if isinstance(operand, str):
                for one, other in ((owner, operand), (operand, owner)):
                    if scope in ("", one) and other in narrowed:
                        narrowed.add(one)
    return frozenset(found) if wanted <= narrowed else None


def _spelled(
    statement: Statement, operand: Slot | ListSlot | Param | None
) -> frozenset[bytes] | None:
    if operand is None:
        return frozenset({b""})
    if isinstance(operand, Param):
        return frozenset({b"?"})
    values = statement.values((operand,))
    if not values or not all(isinstance(value, bytes) for value in values):
        return None
    return frozenset(value for value in values if isinstance(value, bytes))


def _conditions(
    shape: Shape, columns: frozenset[str]
) -> list[tuple[str, str, Slot | ListSlot | Param | str | None]]:
    """Return (scope, owner, operand) of each `owner.column = operand` that must hold.

    scope: "" for a condition of WHERE; the joined table for one of ON, which decides about its rows alone.
    operand: None for DATABASE(); another owner for a column of *columns*; else the literal or `?`.
    """
    tokens = statement_tokens(shape.template)
    found = []
    joined = scope = ""
    depth = start = 0
    is_condition = False
    for place in range(len(tokens) + 1):
        key = tokens[place].key if place < len(tokens) else "LIMIT"
        depth -= key == ")"
        if not depth and key in _NOT_ONLY_AND:
            return []
        if not depth and (key in _ENDS or key in _JOINS or key in ("AND", "ON", "FROM")):
            if is_condition and start < place:
                found += [
                    (scope, *each)
                    for each in _equal(tokens[start:place], shape.template, columns)
                ]
            start = place + 1
            if key == "ON":
                is_condition, scope = True, joined
            elif key == "WHERE":
                is_condition, scope = True, ""
            elif key != "AND":
                is_condition = False
                joined = _factor(tokens, place + 1, shape.template)
            if key in _ENDS:
                break
        depth += key == "("
    return found


def _factor(tokens: list[Token], place: int, template: bytes) -> str:
    """Return by which name the table that begins at *place* goes, in lower case."""
    names = tokens[place : place + 5]
    while len(names) > 2 and names[1].key == ".":
        names = names[2:]
    if len(names) > 1 and names[1].key == "AS":
        names = names[1:]
    if (
        len(names) > 1
        and names[1].is_name
        and names[1].key not in {"ON", "WHERE", *_JOINS, *_ENDS}
    ):
        names = names[1:]
    return unquote(names[0], template).lower() if names and names[0].is_name else ""


def _equal(
    tokens: list[Token], template: bytes, columns: frozenset[str]
) -> list[tuple[str, Slot | ListSlot | Param | str | None]]:
    group = Cursor(tokens, template)
    if group.skip_parens() and not group.key:
        end = len(tokens) - 1
        if any(tokens[at].key in _NOT_ONLY_AND for at in outside_parens(tokens, 1, end)):
            return []
        return [
            each
            for first, last in split_at(tokens, 1, end, {"AND"})
            if first < last
            for each in _equal(tokens[first:last], template, columns)
        ]
    left, rest = _column(tokens, template, columns)
    if left is None or not rest:
        return []
    keys = [token.key for token in rest]
    if keys[0] in ("=", "<=>"):
        if len(rest) == 2 and rest[1].slot is not None:
            return [(left, rest[1].slot)]
        if keys[1:2] and keys[1] in _DATABASE and keys[2:] == ["(", ")"]:
            return [(left, None)]
        right, more = _column(rest[1:], template, columns)
        if right is not None and not more:
            return [(left, right)]
    elif (
        keys[:2] == ["IN", "("]
        and keys[-1] == ")"
        and all(token.slot is not None or token.key == "," for token in rest[2:-1])
    ):
        return [(left, token.slot) for token in rest[2:-1] if token.slot is not None]
    return []


def _column(
    tokens: list[Token], template: bytes, columns: frozenset[str]
) -> tuple[str | None, list[Token]]:
    """Return whose column of *columns* stands first, and what is behind it."""
    owner = ""
    if len(tokens) > 2 and tokens[1].key == "." and tokens[0].is_name:
        owner = unquote(tokens[0], template).lower()
        tokens = tokens[2:]
    if not tokens or not tokens[0].is_name:
        return None, tokens
    if unquote(tokens[0], template).upper() not in columns:
        return None, tokens
    return owner, tokens[1:]
