"""Read the conditions of a WHERE clause that certainly hold for single columns.

A conjunct counts only if its tokens are exactly `column = literal`, `literal = column`,
`column IN (literals)` or `column IS NULL`, and if it is an operand of AND all the way up.
Anything else is ignored: a missed condition costs a scatter, an invented one
would cost rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import OPAQUE, Operand, Param, Shape
from streamfrom.sqlparse_ext.text.nodes import cut, nest


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.sqlparse_ext.text.nodes import Node
    from streamfrom.sqlparse_ext.text.tokens import Token

# Reserved words that end a WHERE clause on every server.
WHERE_ENDS: Final = frozenset(
    {"GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "INTO", "UNION", "EXCEPT", "INTERSECT"}
    | {"PROCEDURE", "FETCH", "WINDOW", "RETURNING", ";"}
)
# Operators that bind less tightly than AND. `||` is OR unless PIPES_AS_CONCAT, in which case
# the clause is merely not understood.
_LOOSER: Final = frozenset({"OR", "XOR", "||", ":="})
_AND: Final = frozenset({"AND", "&&"})
# Nested parentheses are read up to this depth.
_DEPTH_MAX: Final = 20
# Words that stand for a value in the place of a column.
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
    *end* are read too: if the clause does not end there after all (a column may be called
    `window` on some servers), a later OR must not be missed.
    """
    nodes = nest(tokens[start:], shape.template)
    if nodes is None or _has_looser(nodes):
        return
    reader = _ConditionReader(qualifiers)
    behind = tokens[end].start if end < len(tokens) else len(shape.template)
    shape.condition_only = reader.read([node for node in nodes if node.start < behind])
    shape.conditions, shape.guards = reader.conditions, frozenset(reader.guards)


def _has_looser(nodes: Sequence[Node]) -> bool:
    return any(node.key in _LOOSER for node in nodes)


class _ConditionReader:
    def __init__(self, qualifiers: frozenset[str]) -> None:
        self.qualifiers = qualifiers
        self.conditions: dict[str, tuple[Operand, ...]] = {}
        self.guards: set[str] = set()

    def read(self, nodes: Sequence[Node], depth: int = 0) -> bool:
        """Note the conditions in the operands of AND; return whether they are all that the operands contain."""
        said = [self.says(part, depth) for _, part in cut(nodes, _AND)]
        return all(said)

    def says(self, nodes: Sequence[Node], depth: int) -> bool:
        """Note a conjunct's condition on a column; return False if the conjunct contains anything else."""
        keys = [node.key for node in nodes]
        inside = nodes[-1].inside if nodes else None
        if keys == ["("] and inside and not nodes[0].is_query:
            if depth == _DEPTH_MAX or _has_looser(inside):
                return False
            return self.read(inside, depth + 1)
        name = self.column(nodes[0]) if nodes else ""
        if name and keys[1:] == ["IS", "NULL"]:
            self.guards.add(name)
            return True
        if name and keys[1:] == ["IN", "("]:
            operands = [_operand(part) for _, part in cut(inside or (), {","})]
            return OPAQUE not in operands and self.add(name, tuple(operands))
        if len(nodes) != 3 or keys[1] not in _EQUALS:
            return False
        operand = _operand(nodes[2:])
        if not name:
            name, operand = self.column(nodes[2]), _operand(nodes[:1])
        # `<=> NULL` is IS NULL and not a comparison that never holds; a `?` may be NULL.
        is_null = operand is None or isinstance(operand, Param)
        if not name or operand is OPAQUE or (is_null and keys[1] == "<=>"):
            return False
        return self.add(name, (operand,))

    def column(self, node: Node) -> str:
        """Return the name of the column at a node; "" if it is none."""
        is_own = not node.of or node.of in self.qualifiers
        return node.name if is_own and node.key not in _NO_COLUMNS else ""

    def add(self, name: str, operands: tuple[Operand, ...]) -> bool:
        # Of two conditions on one column either alone bounds the rows that can match, so the first
        # stays.
        is_first = name not in self.conditions
        self.conditions.setdefault(name, operands)
        return is_first


def _operand(nodes: Sequence[Node]) -> Operand:
    if len(nodes) != 1 or nodes[0].unit_ns:
        return OPAQUE
    return nodes[0].slot if nodes[0].slot is not None or nodes[0].key == "NULL" else OPAQUE


def read_operand(tokens: list[Token], start: int, end: int) -> Operand:
    """Return the operand tokens[start:end]: one literal, a `?`, NULL or OPAQUE."""
    if end - start != 1:
        return OPAQUE
    token = tokens[start]
    if token.slot is not None:
        return token.slot
    return None if token.key == "NULL" else OPAQUE
