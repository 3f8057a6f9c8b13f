"""The tables of a query, what their columns equal, as `join_equalities` finds it, and what a name means there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from sqlglot import exp

    from streamfrom.sqlparse_ext.statements import Operand, TableRef


# Stands for every column.
ALL: Final = "*"


class Reference(NamedTuple):
    """A column of the source with this number. column: its name in lower case."""

    source: int
    column: str


Equality = Reference | tuple["Operand", ...]


@dataclass(slots=True)
class Source:
    """One table, at one place of the query."""

    table: TableRef
    # The number of the outermost SELECT around the table, at any depth; None in a CTE that several outermost SELECTs share.
    block: int | None
    is_main: bool = False  # the table stands in the FROM of that SELECT itself
    # Every row of that SELECT has a row of the table, never NULLs instead of one. Such a table stands in its FROM, or in the
    # derived table that is all of its FROM.
    is_certain: bool = False
    # What each column (in lower case) equals: another column, or one of some literals.
    equalities: dict[str, list[Equality]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """An outermost SELECT: the only one, or one of those that UNION and the like put together."""

    # Each item of the select list, as a column, a literal, or None for any other expression; empty with a `*`.
    items: tuple[Equality | None, ...]
    is_distinct: bool  # the SELECT has DISTINCT
    is_grouped: bool  # the SELECT has GROUP BY


@dataclass(slots=True)
class JoinEqualities:
    """The tables of a query, and what their columns equal: filled while it is read, never changed then."""

    sources: list[Source] = field(default_factory=list)
    blocks: list[QueryBlock] = field(default_factory=list)  # the outermost SELECTs
    # The operators between the blocks, such as "UNION ALL", the one that is applied last first.
    operators: list[str] = field(default_factory=list)
    # A LIMIT stands in a derived table, in a CTE, in one of several blocks, or in a SELECT of a UNION that is a subquery.
    limits_inside: bool = False
    # The GROUP BY or DISTINCT columns of each derived table that is all of a FROM: rows that are equal in these columns become
    # one row.
    groupings: list[frozenset[Reference]] = field(default_factory=list)
    # The sources of each subquery that stands in an expression and has a LIMIT.
    limited: list[frozenset[int]] = field(default_factory=list)
    # The tables of the outermost FROM, and the derived tables joined there by their aliases.
    factors: list[TableRef] = field(default_factory=list)
    # The sources and the GROUP BY or DISTINCT columns of each such joined derived table.
    apart: list[tuple[frozenset[int], frozenset[Reference]]] = field(default_factory=list)


class Scope:
    """The FROM of one SELECT: which name means which source.

    Attributes:
        outer: the scope of the SELECT around this one; None for an outermost SELECT.
        names: what each alias means: the number of a table, the columns of a derived table that
            equal columns of its tables, or None for a CTE and a derived table of unknown columns.
        numbers: the numbers of the tables in this FROM.
        inner: the numbers of the tables in its derived tables.
        shared: the columns of USING, each with the tables that have it.
    """

    def __init__(self, outer: Scope | None) -> None:
        self.outer = outer
        self.names: dict[str, int | Mapping[str, Reference] | None] = {}
        self.numbers: set[int] = set()
        self.inner: set[int] = set()
        # The first of these tables has no NULLs from an outer join.
        self.shared: dict[str, list[int]] = defaultdict(list)

    def add(self, name: str, number: int | None) -> None:
        """Add the table *number* under *name*; None for a derived table or a CTE."""
        self.names[name] = number
        if number is not None:
            self.numbers.add(number)

    def find(self, column: exp.Column) -> Reference | None:
        """Return the table and column that this name means; None where that is not certain."""
        name, qualifier = column.name.lower(), column.table.lower()
        if not qualifier:
            # Of several tables any may have the column; a single one must have it.
            if self.shared[name]:
                return Reference(self.shared[name][0], name)
            (only,) = self.names.values() if len(self.names) == 1 else (None,)
            return Reference(only, name) if isinstance(only, int) else None
        scope: Scope | None = self
        while scope is not None:
            if qualifier in scope.names:
                found = scope.names[qualifier]
                if isinstance(found, int):
                    return Reference(found, name)
                return None if found is None else found.get(name)
            scope = scope.outer
        return None
