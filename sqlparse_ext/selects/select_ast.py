"""The parts of a SELECT as `select_reader` finds them: places in its template, and what stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamfrom.sqlparse_ext.reading.statement_features import AGGREGATES
from streamfrom.sqlparse_ext.statements import ListSlot, Slot, TableRef


Span = tuple[int, int]  # positions in a template

# The words of an item with a subquery in it: they say nothing of which one it is.
SUBQUERY: Final = ("select",)
WINDOWED: Final = ("over",)  # the same of one with a window function


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression: where it stands and what it is.

    words: the tokens in a form that can be compared; a literal is its slot.
    column: the column, in lower case, of an expression that is one column and nothing else.
    names: the columns (or aliases) in the expression, in lower case.
    calls: the functions that the expression calls, in upper case.
    call: the aggregate call of an expression that is one and nothing else.
    is_qualified: a name in the expression has its table before it, so that it is no alias.
    leaves: the aggregate calls in a composed expression, and the names outside of these calls; a
        keyword (the CHAR of CAST) counts as a name.
    """

    span: Span
    words: tuple[str | Slot | ListSlot, ...]
    column: str | None = None
    names: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    call: AggregateCall | None = None
    is_qualified: bool = False
    leaves: tuple[Expression, ...] = ()

    @property
    def has_aggregate(self) -> bool:
        """An aggregate function is in it somewhere."""
        return not self.calls.isdisjoint(AGGREGATES)

    @property
    def is_constant(self) -> bool:
        """A lone literal, NULL, TRUE or FALSE."""
        if len(self.words) != 1:
            return False
        word = self.words[0]
        return isinstance(word, Slot) or word in ("null", "true", "false")


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function([DISTINCT] arguments)`; no arguments stand for `*`.

    order: the ORDER BY of GROUP_CONCAT.
    separator: the SEPARATOR of GROUP_CONCAT; None is the comma.
    """

    function: str
    distinct: bool
    arguments: tuple[Expression, ...]
    order: tuple[OrderItem, ...] = ()
    separator: Slot | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the select list. `*` and `t.*` have no expression.

    span: the item with its alias.
    alias: the alias in lower case; None without one.
    """

    span: Span
    expression: Expression | None
    alias: str | None = None
    is_bare_star: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One item of ORDER BY. *position* is the slot of a lone literal, such as the 2 of ORDER BY 2."""

    expression: Expression
    descending: bool
    position: Slot | None


@dataclass(frozen=True, slots=True)
class HavingCondition:
    """One operand of HAVING's AND.

    operator: the operator of `left operator literal`, or "IS NULL", or "IS NOT NULL"; "" for any
        other form, of which *left* is the whole.
    """

    left: Expression
    operator: str
    literal: Slot | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """LIMIT's span and operands."""

    span: Span
    count: Slot
    offset: Slot | None


@dataclass(frozen=True, slots=True)
class Select:
    """The parts of one SELECT.

    select_end: the place behind the word SELECT.
    distinct: the span of the word DISTINCT; None without it.
    table_span: the span of the table's name with its schema, without its alias.
    joined: all tables of a join, in order; empty for a single table.
    source: the span of FROM with the table and its hints, or with the whole join.
    where: the span of the WHERE clause; an empty one behind *source* without the clause.
    rows_end: the place where LIMIT begins, or would begin.
    is_derived: *table* is a derived table.
    windows: the PARTITION BY expressions of each window function of the items.
    """

    select_end: int
    distinct: Span | None
    items: tuple[Item, ...]
    table: TableRef
    table_span: Span
    joined: tuple[TableRef, ...]
    source: Span
    where: Span
    group: tuple[Expression, ...]
    having: tuple[HavingCondition, ...]
    order: tuple[OrderItem, ...]
    limit: Limit | None
    rows_end: int
    is_derived: bool = False
    windows: tuple[tuple[Expression, ...], ...] = ()

    @property
    def has_aggregate(self) -> bool:
        """An aggregate function makes groups of the rows, with or without GROUP BY."""
        expressions = [item.expression for item in self.items if item.expression is not None]
        expressions += [condition.left for condition in self.having]
        expressions += [order.expression for order in self.order]
        return any(expression.has_aggregate for expression in expressions)
