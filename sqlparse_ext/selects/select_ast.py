"""The parts of a SELECT as `select_reader` finds them: their places in its template, and their contents.

Also the tables of a query, the equalities of their columns, as `join_equalities` finds them, and the meaning of a name there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.reading.statement_features import AGGREGATES
from streamfrom.sqlparse_ext.statements import ListSlot, Operand, Slot, TableRef


if TYPE_CHECKING:
    from sqlglot import exp


Span = tuple[int, int]  # positions in a template

# The words of an item with a subquery in it: they do not identify the subquery.
SUBQUERY: Final = ("select",)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression: its place and its contents."""

    span: Span
    # The tokens in a form that can be compared; a literal is its slot.
    words: tuple[str | Slot | ListSlot, ...]
    # The column, in lower case, of an expression that is only a column.
    column: str | None = None
    # The columns (or aliases) in the expression, in lower case.
    names: frozenset[str] = frozenset()
    # The functions that the expression calls, in upper case.
    calls: frozenset[str] = frozenset()
    # The aggregate call of an expression that is only that call.
    call: AggregateCall | None = None
    # A name in the expression has its table before it, so that it is no alias.
    is_qualified: bool = False
    # The aggregate calls in a composed expression, and the names outside these calls; a keyword (the CHAR of CAST) counts as
    # a name.
    leaves: tuple[Expression, ...] = ()

    @property
    def has_aggregate(self) -> bool:
        """True if it contains an aggregate function."""
        return not self.calls.isdisjoint(AGGREGATES)

    @property
    def is_constant(self) -> bool:
        """True for a lone literal, NULL, TRUE or FALSE."""
        if len(self.words) != 1:
            return False
        word = self.words[0]
        return isinstance(word, Slot) or word in ("null", "true", "false")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function([DISTINCT] arguments)`; without arguments it is `function(*)`."""

    function: str
    distinct: bool
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the select list. `*` and `t.*` have no expression."""

    span: Span  # the item with its alias
    expression: Expression | None
    alias: str | None = None  # the alias in lower case; None without one
    is_bare_star: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One item of ORDER BY. *position* is the slot of a lone literal, such as the 2 of ORDER BY 2."""

    expression: Expression
    descending: bool
    position: Slot | None


@dataclass(frozen=True, slots=True)
class HavingCondition:
    """One operand of HAVING's AND."""

    left: Expression
    # The operator of `left operator literal`; for any other form *left* is the whole.
    operator: str = ""
    literal: Slot | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """LIMIT's span and operands."""

    span: Span
    count: Slot
    offset: Slot | None


@dataclass(frozen=True, slots=True)
class Select:
    """The parts of one SELECT."""

    select_end: int  # the place after the word SELECT
    distinct: Span | None  # the span of the word DISTINCT; None without it
    items: tuple[Item, ...]
    table: TableRef
    table_span: Span  # the span of the table's name with its schema, without its alias
    joined: tuple[TableRef, ...]  # all tables of a join, in order; empty for a single table
    source: Span  # the span of FROM with the table and its hints, or with the whole join
    where: Span  # the span of the WHERE clause; an empty one after *source* without the clause
    group: tuple[Expression, ...]
    having: tuple[HavingCondition, ...]
    order: tuple[OrderItem, ...]
    limit: Limit | None
    rows_end: int  # the place where LIMIT begins, or would begin
    is_derived: bool = False  # *table* is a derived table

    @property
    def aggregates(self) -> frozenset[str]:
        """The aggregate functions that make groups of the rows, with or without GROUP BY."""
        expressions = [item.expression for item in self.items if item.expression is not None]
        expressions += [condition.left for condition in self.having]
        expressions += [order.expression for order in self.order]
        return frozenset().union(*(each.calls for each in expressions)).intersection(AGGREGATES)


# Represents every column.
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
    is_main: bool = False  # the table is in the FROM of that SELECT itself
    # Every row of that SELECT has a row of the table, never NULLs instead of one. The table is in its FROM, or in the
    # derived table that is all of its FROM.
    is_certain: bool = False
    # For each column (in lower case), the other columns, or alternatives of literals, that it equals.
    equalities: dict[str, list[Equality]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """An outermost SELECT: the only one, or one of those that UNION and similar operators combine."""

    # Each item of the select list, as a column, a literal, or None for any other expression; empty with a `*`.
    items: tuple[Equality | None, ...]
    is_distinct: bool  # the SELECT has DISTINCT
    is_grouped: bool  # the SELECT has GROUP BY


@dataclass(slots=True)
class JoinEqualities:
    """The tables of a query, and the equalities of their columns: filled while it is read, and never changed afterwards."""

    sources: list[Source] = field(default_factory=list)
    blocks: list[QueryBlock] = field(default_factory=list)  # the outermost SELECTs
    # The operators between the blocks, such as "UNION ALL", the one that is applied last first.
    operators: list[str] = field(default_factory=list)
    # There is a LIMIT in a derived table, in a CTE, in one of several blocks, or in a SELECT of a UNION that is a subquery.
    limits_inside: bool = False
    # The GROUP BY or DISTINCT columns of each derived table that is all of a FROM: rows that are equal in these columns become
    # one row.
    groupings: list[frozenset[Reference]] = field(default_factory=list)
    # The sources of each subquery that is part of an expression and has a LIMIT.
    limited: list[frozenset[int]] = field(default_factory=list)
    # The tables of the outermost FROM, and the derived tables joined there by their aliases.
    factors: list[TableRef] = field(default_factory=list)
    # The sources and the GROUP BY or DISTINCT columns of each of these joined derived tables.
    apart: list[tuple[frozenset[int], frozenset[Reference]]] = field(default_factory=list)


class Scope:
    """The FROM of one SELECT: the source that each name means."""

    def __init__(self, outer: Scope | None) -> None:
        # The scope of the SELECT around this one; None for an outermost SELECT.
        self.outer = outer
        # The meaning of each alias: the number of a table, the columns of a derived table that equal columns of its tables, or None
        # for a CTE and a derived table of unknown columns.
        self.names: dict[str, int | Mapping[str, Reference] | None] = {}
        self.numbers: set[int] = set()  # the numbers of the tables in this FROM
        self.inner: set[int] = set()  # the numbers of the tables in its derived tables
        # The columns of USING, each with the tables that have it.
        # The first of these tables has no NULLs from an outer join.
        self.shared: dict[str, list[int]] = defaultdict(list)

    def add(self, name: str, number: int | None) -> None:
        """Add the table *number* under *name*; None for a derived table or a CTE."""
        self.names[name] = number
        if number is not None:
            self.numbers.add(number)

    def find(self, column: exp.Column) -> Reference | None:
        """Return the table and column that this name means; None if that is not certain."""
        name, qualifier = column.name.lower(), column.table.lower()
        if not qualifier:
            # With several tables, any may have the column; a single one must have it.
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
