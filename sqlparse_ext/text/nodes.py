"""A template as nested nodes: a token, or a whole group, so that a list of nodes has no parentheses.

Borders (commas, AND, OR and the words that begin clauses) cut a list of nodes into terms, comparisons cut a term into operands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.statements import ListSlot, Param, Slot
from streamfrom.sqlparse_ext.text.tokens import QUERY_WORDS, Token, unquote


SECOND_NS: Final = 1_000_000_000
UNIT_NS: Final = {
    "MICROSECOND": 1_000,
    "SECOND": SECOND_NS,
    "MINUTE": 60 * SECOND_NS,
    "HOUR": 3_600 * SECOND_NS,
    "DAY": 86_400 * SECOND_NS,
    "WEEK": 7 * 86_400 * SECOND_NS,
}
# Words between two terms, unless they are the name of a function.
BORDERS: Final = frozenset({
    "SELECT", "DISTINCT", "DISTINCTROW", "FROM", "WHERE", "HAVING", "ON", "GROUP", "ORDER", "BY", "LIMIT",
    "OFFSET", "SET", "VALUES", "VALUE", "UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT",
    "CROSS", "STRAIGHT_JOIN", "NATURAL", "USING", "AND", "OR", "XOR", "&&", "||", ",", ";", "AS", "ASC", "DESC",
    "WITH", "UPDATE", "DELETE", "INSERT", "INTO", "RETURNING", "WHEN", "THEN", "ELSE", "FOR", "LOCK", "WINDOW",
    "DUPLICATE", "ROLLUP", "SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "IGNORE", "TABLE",
    "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT",
})  # fmt: skip
COMPARISONS: Final = frozenset({
    "=", "<=>", "<", ">", "<=", ">=", "<>", "!=", ":=", "BETWEEN", "IN", "LIKE", "REGEXP", "RLIKE", "IS",
})  # fmt: skip
PREFIXES: Final = frozenset({"NOT", "BINARY", "ALL", "ANY", "SOME"})
_NO_FUNCTIONS: Final = (BORDERS | COMPARISONS | PREFIXES | {"INTERVAL"}) - {
    "LEFT", "RIGHT", "INSERT", "VALUES", "VALUE",
}  # fmt: skip
_CLOSE: Final = {"(": ")", "CASE": "END", "{": "}"}
# Deeper groups are not read.
_DEPTH_MAX: Final = 60


class Node(NamedTuple):
    """A name with the dots in it, `( … )`, `CASE … END`, `name( … )`, `INTERVAL n unit`, or any other token."""

    key: str  # of its token, or of the first; of `a.b` that of `b`
    start: int
    end: int
    slot: Slot | ListSlot | Param | None = None
    name: str = ""  # in lower case, without quotes; "" if it is no name
    of: str = ""  # the name before its dot
    inside: list[Node] | None = None
    unit_ns: int = 0  # the nanoseconds of the interval whose number is *slot*

    @property
    def is_query(self) -> bool:
        """True if it is a query in parentheses, or after a function's name."""
        return any(node.key in QUERY_WORDS for node in (self.inside or ())[:1])


def nest(tokens: Sequence[Token], template: bytes) -> list[Node] | None:
    """Return tokens as nodes; None if a group is not closed, or is too deep."""
    around: list[tuple[Token, list[Node]]] = []
    nodes: list[Node] = []
    for token in tokens:
        key = token.key
        if around and key == _CLOSE[around[-1][0].key]:
            inside = nodes
            first, nodes = around.pop()
            if nodes and nodes[-1].name and nodes[-1].key not in _NO_FUNCTIONS and key == ")":
                called = nodes.pop()
                nodes.append(Node(called.key, called.start, token.end, inside=inside))
            else:
                nodes.append(Node(first.key, first.start, token.end, inside=inside))
        elif key in _CLOSE:
            around.append((token, nodes))
            nodes = []
            if len(around) > _DEPTH_MAX:
                return None
        else:
            name = ""
            if token.is_word:
                name = key.lower()
            elif token.is_name:
                name = unquote(token, template).lower()
            nodes.append(Node(key, token.start, token.end, token.slot, name))
            if name and len(nodes) > 2:
                _join(nodes)
    return None if around else nodes


def _join(nodes: list[Node]) -> None:
    """Combine the last nodes if they are `a.b`, or an interval of a fixed length."""
    last = nodes[-1]
    if nodes[-2].key == "." and nodes[-3].name:
        nodes[-3:] = [last._replace(start=nodes[-3].start, of=nodes[-3].name)]
    unit_ns = UNIT_NS.get(last.key.removeprefix("SQL_TSI_"))
    if unit_ns is None or not isinstance(nodes[-2].slot, Slot | Param):
        return
    first = -3
    if nodes[-3].key == "-" and len(nodes) > 3:
        first, unit_ns = -4, -unit_ns
    if nodes[first].key == "INTERVAL":
        start, slot = nodes[first].start, nodes[-2].slot
        nodes[first:] = [Node("INTERVAL", start, last.end, slot, unit_ns=unit_ns)]


class Term(NamedTuple):
    """The nodes after a border or a comparison, whose key is *border*; "" for the first."""

    border: str
    nodes: list[Node]


def cut(nodes: Sequence[Node], borders: Collection[str]) -> list[Term]:
    """Return the terms between *borders*; the AND of a BETWEEN is no border, unless BETWEEN is."""
    found = [Term("", [])]
    betweens = 0
    for node in nodes:
        key = "" if node.inside is not None else node.key
        if key in borders and not (key == "AND" and betweens):
            found.append(Term(key, []))
            betweens = 0
        else:
            betweens += (key == "BETWEEN") - (key == "AND")
            found[-1].nodes.append(node)
    return found
