"""What a WHERE clause says for certain about single columns.

A conjunct counts only when its tokens are exactly `column = literal`, `literal = column`,
`column IN (literals)` or `column IS NULL`, and when it is an operand of AND all the way up.
Anything else is left unsaid: a condition that is missed costs a scatter, one that is invented
would cost rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import OPAQUE, Operand, Param, Shape
from streamfrom.sqlparse_ext.text.tokens import QUERY_WORDS, Cursor, split_commas, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.text.tokens import Token

# Reserved words that end a WHERE clause on every server.
WHERE_ENDS: Final = frozenset(
    {"GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "INTO", "UNION", "EXCEPT", "INTERSECT"}
    | {"PROCEDURE", "FETCH", "WINDOW", "RETURNING", ";"}
)
# Operators that bind less tightly than AND. `||` is OR unless PIPES_AS_CONCAT, in which case
# it is merely not understood.
_LOOSER: Final = frozenset({"OR", "XOR", "||", ":="})
_AND: Final = frozenset({"AND", "&&"})
# Parentheses around parentheses that are looked into.
_DEPTH_MAX: Final = 20
# Words that stand for a value where a column could stand.
_NO_COLUMNS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "DEFAULT", "NOT", "CURRENT_USER", "CURRENT_DATE", "CURRENT_TIME"}
    | {"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME"}
    | {"UTC_TIMESTAMP"}
)
_EQUALS: Final = frozenset({"=", "<=>"})


def read_where(
    shape: Shape, tokens: list[Token], start: int, end: int, qualifiers: frozenset[str]
) -> None:
    """Read the WHERE clause tokens[start:end] of a statement on one table.

    *qualifiers* are the lower-case names by which a column may name that table. Tokens after
    *end* are looked at too: should the clause not end there after all (a column may be called
    `window` on some servers), an OR behind it must not be missed.
    """
    reader = _ConditionReader(tokens, shape.template, qualifiers)
    if not reader.has_looser(start, len(tokens)):
        reader.read(start, end)
        shape.conditions, shape.guards = reader.conditions, frozenset(reader.guards)
        shape.condition_only = reader.condition_only


class _ConditionReader:
    def __init__(
        self, tokens: list[Token], template: bytes, qualifiers: frozenset[str]
    ) -> None:
        self.tokens = tokens
        self.template = template
        self.qualifiers = qualifiers
        self.conditions: dict[str, tuple[Operand, ...]] = {}
        self.guards: set[str] = set()
        self.condition_only = True
        self.depth = 0

    def has_looser(self, start: int, end: int) -> bool:
        depth = 0
        for token in self.tokens[start:end]:
            depth += (token.key == "(") - (token.key == ")")
            if depth <= 0 and token.key in _LOOSER:
                return True
        return False

    def read(self, start: int, end: int) -> None:
        """Read the operands of AND in a range without looser operators."""
        depth = cases = betweens = 0
        first = start
        for place in range(start, end):
            key = self.tokens[place].key
            if key in ("(", ")"):
                depth += 1 if key == "(" else -1
            elif depth:
                continue
            elif key == "CASE" or (key == "END" and cases):
                cases += 1 if key == "CASE" else -1
            elif cases:
                continue
            elif key == "BETWEEN":
                betweens += 1
            elif key in _AND:
                # The AND of BETWEEN a AND b.
                if betweens:
                    betweens -= 1
                    continue
                self.condition_only = self.says(first, place) and self.condition_only
                first = place + 1
        self.condition_only = self.says(first, end) and self.condition_only

    def says(self, start: int, end: int) -> bool:
        """Note what a conjunct says of a column; False where that is not all that it says."""
        if self.is_wrapped(start, end):
            if self.depth == _DEPTH_MAX or self.has_looser(start + 1, end - 1):
                return False
            self.depth += 1
            self.read(start + 1, end - 1)
            self.depth -= 1
            return True
        name, after = self.column(start, end)
        keys = [token.key for token in self.tokens[after:end]]
        if name is None:
            operator = self.tokens[start + 1].key if end - start > 2 else ""
            name, after = self.column(start + 2, end)
            if operator not in _EQUALS or name is None or after != end:
                return False
            return self.equality(name, start, start + 1, operator)
        if keys == ["IS", "NULL"]:
            self.guards.add(name)
            return True
        if keys[:1] in (["="], ["<=>"]):
            return self.equality(name, after + 1, end, keys[0])
        return keys[:2] == ["IN", "("] and self.membership(name, after + 1, end)

    def is_wrapped(self, start: int, end: int) -> bool:
        """Whether one pair of parentheses holds the whole range, and no query."""
        if end - start < 3 or self.tokens[start + 1].key in QUERY_WORDS:
            return False
        cursor = Cursor(self.tokens, self.template, start, end)
        return cursor.skip_parens() and cursor.at == end

    def column(self, start: int, end: int) -> tuple[str | None, int]:
        """Return the column at *start* and the place behind it."""
        parts = []
        place = start
        while place < end and self.tokens[place].is_name:
            if self.tokens[place].key in _NO_COLUMNS:
                return None, place
            parts.append(unquote(self.tokens[place], self.template).lower())
            place += 1
            if place >= end or self.tokens[place].key != ".":
                break
            place += 1
        if not parts or len(parts) > 3 or (len(parts) > 1 and parts[-2] not in self.qualifiers):
            return None, place
        return parts[-1], place

    def equality(self, name: str, start: int, end: int, operator: str) -> bool:
        operand = read_operand(self.tokens, start, end)
        # `<=> NULL` is IS NULL and not a comparison that never holds; a `?` may be NULL.
        is_null = operand is None or isinstance(operand, Param)
        if operand is OPAQUE or (is_null and operator == "<=>"):
            return False
        return self.add(name, (operand,))

    def membership(self, name: str, start: int, end: int) -> bool:
        if not self.is_wrapped(start, end):
            return False
        operands = tuple(
            read_operand(self.tokens, *item)
            for item in split_commas(self.tokens, start + 1, end - 1)
        )
        return OPAQUE not in operands and self.add(name, operands)

    def add(self, name: str, operands: tuple[Operand, ...]) -> bool:
        # Two conditions on one column: either alone names all rows that can match, so the first
        # stays.
        is_first = name not in self.conditions
        self.conditions.setdefault(name, operands)
        return is_first


def read_operand(tokens: list[Token], start: int, end: int) -> Operand:
    """Return what tokens[start:end] is: one literal, a `?`, NULL or OPAQUE."""
    if end - start != 1:
        return OPAQUE
    token = tokens[start]
    if token.slot is not None:
        return token.slot
    return None if token.key == "NULL" else OPAQUE
