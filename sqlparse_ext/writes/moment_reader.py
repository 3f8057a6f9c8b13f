"""Find the places where a statement sets or compares a time column of a message table with a moment or another value.

A time column holds nanoseconds since 1970. A server silently compares it with `NOW()` as the number
20261122150345, a moment of 1970. So this module finds the moments next to time
columns, to turn them into nanoseconds, and refuses values that cannot become any.

Each term (see `nodes.cut`) yields a list of *values* that are compared, assigned or chosen from
alike: its operands, with parentheses, COALESCE, IF, CASE and similar opened. The rule is:

* if one of the values is a time column, moments among them become nanoseconds, and literals
  must be numbers of nanoseconds;
* a time column and a time function that meet in one term otherwise are refused, unless the
  function counts (as UNIX_TIMESTAMP does), and factors bring both to the same unit.

Columns that do not belong to a message table by name (a view's, a derived table's, a variable) are not
seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.reading.queries import QUERY_STARTS, insert_parts
from streamfrom.sqlparse_ext.reading.statement_features import NO_ALIAS, unnamed_items
from streamfrom.sqlparse_ext.statements import InsertSource, Slot
from streamfrom.sqlparse_ext.text.nodes import (
    BORDERS,
    COMPARISONS,
    PREFIXES,
    SECOND_NS,
    UNIT_NS,
    Node,
    cut,
    nest,
)
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens
from streamfrom.sqlparse_ext.writes.times import (
    NO_MOMENTS,
    TIME_FUNCTIONS,
    TIME_WORDS,
    Beside,
    Literals,
    Moment,
    MomentPlan,
    Place,
    TimeColumns,
    read_durations,
    read_literals,
    read_moment,
)


# The value of these is one of the arguments (for IF, any but the first).
_CHOICES: Final = frozenset({
    "COALESCE", "IFNULL", "NULLIF", "GREATEST", "LEAST", "MIN", "MAX", "ANY_VALUE", "IF", "VALUES", "VALUE", "NVL",
})  # fmt: skip
# By the borders of their parts, whether these are among the values; "" comes before the first part.
_OF_LIST: Final = {"": True}
_OF_IF: Final = {",": True}
_OF_CASE: Final = {"WHEN": False, "THEN": True, "ELSE": True}
_OPERATORS: Final = COMPARISONS | {"AND"}  # the AND of BETWEEN
# A word after a column, or before one, that is no name.
_NO_ALIASES: Final = BORDERS | COMPARISONS | PREFIXES | NO_ALIAS
# They make a literal after them a time, as TIMESTAMP and DATE do.
_LITERAL_WORDS: Final = frozenset({"TIME", "TS", "D", "T"})
_BOOLEAN: Final = frozenset({"EXISTS", "ISNULL"})


class _Value(NamedTuple):
    """One of the values of a term."""

    places: tuple[Place, ...] = ()  # the time columns and time functions in the value
    # The parts that become nanoseconds next to a time column: the value itself, or durations after a column.
    moments: tuple[Moment, ...] = ()
    is_column: bool = False
    # The literals that must be nanoseconds next to a time column.
    literals: Literals = ()


class MomentReader:
    """Reads one template."""

    def __init__(self, template: bytes, columns: TimeColumns) -> None:
        self._template = template
        self._tokens = statement_tokens(template)
        self._names = columns.names
        self._foreign = columns.foreign
        self._target = columns.target
        self._is_set_read = True
        self._hidden: set[str] = set()  # names of time columns that also have another meaning
        self._stamps: set[str] = set()  # the aliases of time functions
        self._moments: list[Moment] = []
        self._literals: list[Beside] = []
        self._mixtures: list[tuple[Place, ...]] = []

    def plan(self) -> MomentPlan | None:
        """Return the plan for a statement; None if it cannot be read."""
        cursor = Cursor(self._tokens, self._template)
        parts = insert_parts(cursor) if cursor.accept_any({"INSERT", "REPLACE"}) else None
        start = behind = 0  # the values that an INSERT assigns by place
        # The SET of an INSERT into another table is that table's.
        self._is_set_read = parts is None or bool(self._target)
        if parts is not None and (
            # Not read: a template does not have all rows.
            parts.source is InsertSource.VALUES
            or (parts.source is InsertSource.SELECT and self._target)
        ):
            start, behind = parts.source_at
        rows, others = (
            nest(tokens, self._template)
            for tokens in (self._tokens[start:behind], self._tokens[behind:])
        )
        if rows is None or others is None:
            return None
        if parts is not None and rows and parts.source is InsertSource.SELECT:
            while len(rows) == 1 and rows[0].inside:
                rows = rows[0].inside
            self._find_aliases(rows)
            self._query(rows, parts.columns or self._target)
        self._find_aliases(others)
        self._query(others)
        return self._result()

    def plan_of_value(self, column: str) -> MomentPlan | None:
        """Return the plan for all the tokens, as the value of *column*; None if they cannot be read."""
        nodes = nest(self._tokens, self._template)
        if nodes is None:
            return None
        self._term(nodes, column)
        return self._result()

    def _result(self) -> MomentPlan:
        places = sorted(moment.start for moment in self._moments)
        is_query = self._tokens[0].key in QUERY_STARTS
        plan = MomentPlan(
            tuple(self._moments),
            tuple(unnamed_items(self._tokens, places)) if places and is_query else (),
            tuple(self._literals),
            tuple(self._mixtures),
        )
        return plan if any(plan) else NO_MOMENTS

    # --- names --------------------------------------------------------------------------------

    def _is_column(self, node: Node) -> bool:
        return node.name in self._names and node.of not in self._foreign

    def _find_aliases(self, nodes: list[Node]) -> None:
        """Note the names that mean time columns or time functions, or have another meaning than they seem to."""
        source: list[Node] = []
        for border, part in cut(nodes, BORDERS):
            is_as = border == "AS"
            if is_as and part:
                self._alias(part[0], source, is_as=True)
            elif len(part) > 1 and _ends_value(part[-2]):
                self._alias(part[-1], part[:-1], is_as=False)
            for node in part:
                if node.key != "CAST":  # in CAST, AS comes before a type
                    self._find_aliases(node.inside or [])
            source = part

    def _alias(self, alias: Node, source: Sequence[Node], *, is_as: bool) -> None:
        if not source or not alias.name or alias.key in _NO_ALIASES:
            return
        is_column = source[-1].name in self._names
        if (is_as or source[-1].inside is not None) and any(_times(source)):
            self._stamps.add(alias.name)
        # Another name of a time column is refused next to a moment, and not translated: elsewhere
        # in the statement it may mean another column.
        if is_column and alias.name != source[-1].name:
            self._names |= {alias.name}
            self._hidden.add(alias.name)
        elif alias.name in self._names and not is_column:
            self._hidden.add(alias.name)

    # --- from the statement to its values -----------------------------------------------------

    def _read(self, nodes: Sequence[Node]) -> list[Place]:
        """Read all terms; return the places that their values are made from."""
        return [place for term in cut(nodes, BORDERS) for place in self._term(term.nodes)]

    def _query(self, nodes: Sequence[Node], target: tuple[str, ...] = ()) -> list[Place]:
        """Read a query, whose columns are assigned to *target* by place; return the places that they are made from."""
        found: list[Place] = []
        at = 0
        in_list = in_set = is_known = False
        for border, part in cut(nodes, BORDERS):
            if border in ("SELECT", "FROM"):
                at, in_list, is_known = 0, border == "SELECT", bool(target)
            if border != ",":
                in_set = border in ("SET", "UPDATE") and self._is_set_read
            at += border == ","
            is_item = in_list and border in ("SELECT", ",", "DISTINCT")
            # A * gives an unknown number of columns, so the places after it are unknown.
            is_known = is_known and not (is_item and part and part[-1].key == "*")
            column = target[at] if is_item and is_known and at < len(target) else ""
            places = self._term(
                part, column if column in self._names else "", is_assignment=in_set
            )
            functions = [place for place in places if not place.is_column]
            if target and is_item and not is_known and functions:
                self._mixtures.append((_column(min(self._names)), functions[0]))
            if in_list:
                found += places
        return found

    def _term(
        self, nodes: Sequence[Node], column: str = "", *, is_assignment: bool = False
    ) -> list[Place]:
        """Read a term, which *column* is set to, or an assignment; return the places that its value is made from.

        A truth value is made from none.
        """
        operands = cut(nodes, _OPERATORS)
        values: list[_Value] = []
        for comparison, part in operands:
            values += self._values(part, is_list=comparison == "IN")
        # One value next to the column.
        is_given = len(values) == 1 if column else is_assignment and len(values) == 2
        found = self._relate(values, column, is_given=is_given and len(operands) == len(values))
        return found if len(operands) == 1 else []

    def _values(self, nodes: Sequence[Node], *, is_list: bool = False) -> list[_Value]:
        """Return the values of an operand, which is one of them or all of them."""
        # NOT and BINARY change a value, ALL and ANY choose one: the places that it is made from stay the same.
        while nodes and nodes[0].key in PREFIXES:
            nodes = nodes[1:]
        while nodes and nodes[-1].key == "NOT":
            nodes = nodes[:-1]
        if not nodes:
            return []
        key, inside = nodes[0].key, nodes[0].inside if len(nodes) == 1 else None
        is_parenthesised = key == "(" and not nodes[0].is_query
        if is_list and is_parenthesised and inside is not None:
            return self._chosen(inside)
        value = self._value(nodes)
        if value is not None:
            return [value]
        if inside is not None:
            if key == "CASE":
                has_operand = not inside or inside[0].key != "WHEN"
                return self._chosen(inside, _OF_CASE, compares=has_operand)
            if key in _CHOICES:
                return self._chosen(inside, _OF_IF if key == "IF" else _OF_LIST)
            if is_parenthesised and not any(node.key == "," for node in inside):  # no row
                return self._chosen(inside)
        return [_Value(tuple(self._made_of(nodes)))]

    def _chosen(
        self,
        nodes: Sequence[Node],
        chooses: Mapping[str, bool] = _OF_LIST,
        *,
        compares: bool = False,
    ) -> list[_Value]:
        """Return the values of a list, of IF or of CASE, by the borders before them.

        compares: the values that are not chosen are compared with each other, like the operand of CASE.
        """
        chosen: list[_Value] = []
        compared: list[_Value] = []
        is_chosen = False
        for border, part in cut(nodes, BORDERS):
            is_chosen = chooses.get(border, is_chosen)
            if len(cut(part, _OPERATORS)) == 1 and (is_chosen or compares):
                (chosen if is_chosen else compared).extend(self._values(part))
            else:
                self._term(part)
        self._relate(compared)
        return chosen

    # --- one value ----------------------------------------------------------------------------

    def _value(self, nodes: Sequence[Node]) -> _Value | None:
        """Read a literal, a time column plus or minus intervals, or a moment; it may have an alias."""
        if literals := read_literals(nodes):
            return _Value(literals=literals)
        first = nodes[0]
        has_alias = len(nodes) > 1 and nodes[-1].name
        for value in (nodes, nodes[:-1]) if has_alias else (nodes,):
            if self._is_column(first) and first.name not in self._hidden:
                durations = read_durations(value[1:])
                if durations is not None:
                    return _Value((_column(first.name),), tuple(durations), is_column=True)
            shifts = read_moment(value)
            if shifts is not None:
                moment = Moment(first.start, value[-1].end, shifts)
                return _Value((_function(first),), (moment,))
        return None

    def _made_of(self, nodes: Sequence[Node]) -> list[Place]:
        """Return the places that an expression of several nodes is made from."""
        found: list[Place] = []
        for at, node in enumerate(nodes):
            if node.key == "CASE":
                # The results of a CASE may be moments, its conditions never.
                places = self._term([node])
            elif node.inside is not None:
                places = self._call(node)
            elif _is_time(nodes, at):
                places = [_function(node)]
            elif self._is_column(node):
                places = [_column(node.name)]
            else:
                places = [Place(node.key)] if node.name in self._stamps else []
            if places and not node.is_query:
                up, down = _factors(nodes, at)
                places = [
                    place._replace(up=place.up + up, down=place.down + down) for place in places
                ]
            found += places
        return found

    def _call(self, node: Node) -> list[Place]:
        """Return the places that `(…)` or `name(…)` is made from."""
        name = node.key
        if name in _CHOICES:
            return self._term([node])
        inner = (self._query if node.is_query else self._read)(node.inside or [])
        if name in _BOOLEAN:
            return []
        # Any other function may return its argument, as ABS and COALESCE do.
        if name not in TIME_FUNCTIONS:
            return inner
        if beside := [place for place in inner if place.is_column]:
            unit_ns = SECOND_NS if name == "FROM_UNIXTIME" else 0
            self._mixtures.append((*beside, Place(name, unit_ns)))
        return [_function(node)]

    # --- neighbouring values -------------------------------------------------------------------

    def _relate(
        self, values: list[_Value], column: str = "", *, is_given: bool = False
    ) -> list[Place]:
        """Plan the changes to *values*, which are next to each other, and to *column*.

        is_given: the column is set to the one value next to it.
        Return the places that they are made from, unless that is settled.
        """
        assigned = [_column(column)] if column else []
        columns = assigned + [value.places[0] for value in values if value.is_column]
        found: list[Place] = []
        for value in values:
            if columns:
                self._moments += value.moments
                if value.literals:
                    self._literals.append(Beside(columns[0].name, value.literals, is_given))
            if not columns or value.is_column or not value.moments:
                found += value.places
        mixed = tuple(found + assigned)
        if len({place.is_column for place in mixed}) < 2:
            return found
        self._mixtures.append(mixed)
        return []


def _column(name: str) -> Place:
    return Place(name, 1, is_column=True)


def _function(node: Node) -> Place:
    """Return the place of a time function, with the nanoseconds of its unit if it counts since 1970."""
    if node.key == "UNIX_TIMESTAMP":
        return Place(node.key, SECOND_NS)
    # TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), in any zone.
    inside = node.inside or []
    is_utc = [each.key for each in inside[3:5]] == [",", "UTC_TIMESTAMP"]
    counts = node.key == "TIMESTAMPDIFF" and is_utc
    return Place(node.key, UNIT_NS.get(inside[0].key, 0) if counts else 0)


def _ends_value(node: Node) -> bool:
    """Return whether a name after the node is an alias."""
    is_name = bool(node.name) and node.key not in _NO_ALIASES
    return is_name or node.slot is not None or node.inside is not None


def _is_time(nodes: Sequence[Node], at: int) -> bool:
    """Return whether a time function is here, a word that is one, or a literal of a date."""
    node = nodes[at]
    if node.inside is not None:
        return node.key in TIME_FUNCTIONS
    if node.key in _LITERAL_WORDS and at + 1 < len(nodes):
        return nodes[at + 1].slot is not None
    is_variable = node.key[:2] == "@@" and node.key.lower().endswith("timestamp")
    return node.key in TIME_WORDS or is_variable


def _times(nodes: Sequence[Node]) -> Iterator[bool]:
    """Yield for each node, also within groups, whether a time function is there."""
    for at, node in enumerate(nodes):
        yield _is_time(nodes, at)
        yield from _times(node.inside or [])


def _factors(nodes: Sequence[Node], at: int) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Return the literals that a node is multiplied by, and divided by."""
    factors: dict[str, list[Slot]] = {"*": [], "/": [], "DIV": []}
    place = at + 2
    while place < len(nodes) and nodes[place - 1].key in factors:
        slot = nodes[place].slot
        if not isinstance(slot, Slot):
            break
        factors[nodes[place - 1].key].append(slot)
        place += 2
    before = nodes[at - 2].slot if at > 1 and nodes[at - 1].key == "*" else None
    if isinstance(before, Slot):
        factors["*"].append(before)
    return tuple(factors["*"]), tuple(factors["/"] + factors["DIV"])
