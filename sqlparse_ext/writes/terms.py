"""Cuts a statement into terms and operands, by its tokens alone.

A *term* stands between two borders: commas, AND, OR and the words that begin clauses. Comparisons
cut a term into *operands*. Groups, `( … )` and `CASE … END`, stay closed until they are asked for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.statements import Slot
from streamfrom.sqlparse_ext.text.tokens import QUERY_WORDS, Cursor, Token


# Words between two terms, unless they are the name of a function.
BORDERS: Final = frozenset({
    "SELECT", "DISTINCT", "DISTINCTROW", "FROM", "WHERE", "HAVING", "ON", "GROUP", "ORDER", "BY", "LIMIT",
    "OFFSET", "SET", "VALUES", "VALUE", "UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT",
    "CROSS", "STRAIGHT_JOIN", "NATURAL", "USING", "AND", "OR", "XOR", "&&", "||", ",", ";", "AS", "ASC", "DESC",
    "WITH", "UPDATE", "DELETE", "INSERT", "INTO", "RETURNING", "WHEN", "THEN", "ELSE", "FOR", "LOCK", "WINDOW",
    "DUPLICATE", "ROLLUP", "SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "IGNORE", "TABLE",
})  # fmt: skip
COMPARISONS: Final = frozenset({
    "=", "<=>", "<", ">", "<=", ">=", "<>", "!=", ":=", "BETWEEN", "IN", "LIKE", "REGEXP", "RLIKE", "IS",
})  # fmt: skip
PREFIXES: Final = frozenset({"NOT", "BINARY", "ALL", "ANY", "SOME"})
CLOSE: Final = {"(": ")", "CASE": "END", "{": "}"}
_SIGNS: Final = frozenset({"+", "-"})
_TRUTHS: Final = {"TRUE": 1, "FALSE": 0}
_ALSO_FUNCTIONS: Final = frozenset({"LEFT", "RIGHT", "INSERT", "VALUES", "VALUE"})


class Term(NamedTuple):
    """The tokens between two borders, or an operand between two comparisons; *border* is the key of the one before it."""

    border: str
    start: int
    end: int


class Terms:
    """The terms of a template's tokens.

    ends: the end of each group, by its beginning.
    depth: how deep groups are nested; None where a group is not closed.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.ends: dict[int, int] = {}
        self._around: list[int] = []  # the beginning of the group around each token, or -1
        deepest = 0
        opened: list[int] = []
        for place, token in enumerate(tokens):
            if opened and token.key == CLOSE[tokens[opened[-1]].key]:
                self.ends[opened.pop()] = place
            self._around.append(opened[-1] if opened else -1)
            if token.key in CLOSE:
                opened.append(place)
                deepest = max(deepest, len(opened))
        self.depth = None if opened else deepest

    def key(self, place: int) -> str:
        """Return the key of a token, "" for none."""
        return self.tokens[place].key if place < len(self.tokens) else ""

    def is_call(self, place: int, end: int) -> bool:
        """Whether `name(` begins here, before *end*."""
        return place + 1 < end and self.key(place + 1) == "(" and self.tokens[place].is_name

    def behind(self, place: int) -> int:
        """Return the place behind a token, or behind the group that it begins."""
        return self.ends.get(place, place) + 1

    def is_group(self, start: int, end: int) -> bool:
        """Whether one group is all of tokens[start:end]."""
        return self.ends.get(start) == end - 1

    def cut(self, start: int, end: int) -> list[Term]:
        """Return the terms of tokens[start:end]."""
        found: list[Term] = []
        betweens = 0
        border, first, place = "", start, start
        while place < end:
            key = self.key(place)
            if key == "BETWEEN":
                betweens += 1
            elif key == "AND" and betweens:
                betweens -= 1
            elif key in BORDERS and not (key in _ALSO_FUNCTIONS and self.is_call(place, end)):
                found.append(Term(border, first, place))
                border, first, betweens = key, place + 1, 0
            place = self.behind(place)
        return [*found, Term(border, first, end)]

    def operands(self, start: int, end: int) -> list[Term]:
        """Return the operands of a term, more than one where it compares (or assigns)."""
        found: list[Term] = []
        comparison, first, place = "", start, start
        while place < end:
            key = self.key(place)
            if key in COMPARISONS or key == "AND":  # the AND of BETWEEN
                found.append(Term(comparison, first, place))
                comparison, first = key, place + 1
            place = self.behind(place)
        return [*found, Term(comparison, first, end)]

    def literal_sum(self, start: int, end: int) -> tuple[tuple[int, tuple[Slot, ...]], ...]:
        """Return the (sign, factors) of literals that are multiplied and added, FALSE having sign 0; nothing where there is more."""
        found: list[tuple[int, tuple[Slot, ...]]] = []
        cursor = Cursor(self.tokens, b"", start, end)
        while cursor.at < end:
            sign = 1
            while key := cursor.accept_any(_SIGNS):
                sign = -sign if key == "-" else sign
            factors: list[Slot] = []
            is_factor = True
            while is_factor:
                token = cursor.take()
                if isinstance(token.slot, Slot):
                    factors.append(token.slot)
                elif token.key in _TRUTHS:
                    sign *= _TRUTHS[token.key]
                else:
                    return ()
                is_factor = cursor.accept("*")
            if cursor.at < end and cursor.key not in _SIGNS:
                return ()
            found.append((sign, tuple(factors)))
        return tuple(found)

    def scale(
        self, start: int, end: int, outermost: int = -1
    ) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
        """Return the literals that tokens[start:end] are multiplied by, and divided by.

        Factors of the groups around it count as well, up to that which begins at *outermost*, or
        to a query.
        """
        tokens = self.tokens
        up: list[Slot] = []
        down: list[Slot] = []
        while True:
            while self.key(end) in ("*", "/", "DIV") and end + 1 < len(tokens):
                slot = tokens[end + 1].slot
                if not isinstance(slot, Slot):
                    break
                (up if tokens[end].key == "*" else down).append(slot)
                end += 2
            if start > 1 and tokens[start - 1].key == "*":
                slot = tokens[start - 2].slot
                if isinstance(slot, Slot):
                    up.append(slot)
            around = self._around[start]
            if around in (-1, outermost) or tokens[around].key != "(":
                break
            if tokens[around + 1].key in QUERY_WORDS:
                break
            start, end = around, self.ends[around] + 1
            if around and tokens[around - 1].is_name and tokens[around - 1].key not in BORDERS:
                start -= 1
        return tuple(up), tuple(down)
