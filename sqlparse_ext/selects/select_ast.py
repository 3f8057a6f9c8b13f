"""The pieces of a SELECT as `select` finds them: places in its template, and what stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.statement_features import AGGREGATES
from streamfrom.sqlparse_ext.statements import Slot


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import ListSlot, TableRef


Span = tuple[int, int]  # positions in a template

# The words of an item with a subquery in it: they say nothing of which one it is.
SUBQUERY: Final = ("select",)
WINDOWED: Final = ("over",)  # the same of one with a window function


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression: where it stands and what it is.

    words: its tokens in a form that compares; a literal is its slot.
    column: the lower-case column, if it is nothing but one.
    names: the lower-case columns (or aliases) in it.
    calls: the functions in it, in upper case.
    call: set when it is one call of an aggregate function and nothing else.
    is_qualified: the table stands before a name in it, which then means no alias.
    leaves: of one that is made of others, the calls of aggregates in it and the names outside of
        these, as they stand; a keyword (the CHAR of CAST) is a name like any other.
    """

    span: Span
    words: tuple[str | Slot | ListSlot, ...]
    column: str | None
    names: frozenset[str]
    calls: frozenset[str]
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
    """`function([DISTINCT] arguments)`; no arguments is `*`.

    order, separator: of GROUP_CONCAT; None is the comma.
    """

    function: str
    distinct: bool
    arguments: tuple[Expression, ...]
    order: tuple[OrderItem, ...] = ()
    separator: Slot | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the select list. `*` and `t.*` have no expression.

    span: all of it, its alias too.
    alias: in lower case.
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

    operator: of `left operator literal`, or "IS NULL" and "IS NOT NULL"; "" for any other form,
        whose left is then all of it.
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
    """The pieces of one SELECT.

    select_end: behind the word SELECT.
    distinct: the span of the word DISTINCT.
    table_span: the table's name with its schema, no alias.
    joined: all tables of a join, in order; empty for one table alone.
    source: FROM with the table and its hints, or the whole join, before WHERE.
    where: from the word WHERE to its end; empty, behind the source, without one.
    group_span, having_span, order_span: from the first keyword on; None without the clause.
    rows_end: behind all clauses that choose rows and their order, so where LIMIT begins or would.
    is_derived: *table* is a derived table.
    windows: what each window function of the items is partitioned by.
    """

    select_end: int
    distinct: Span | None
    items: tuple[Item, ...]
    table: TableRef
    table_span: Span
    joined: tuple[TableRef, ...]
    source: Span
    where: Span
    group_span: Span | None
    group: tuple[Expression, ...]
    having_span: Span | None
    having: tuple[HavingCondition, ...]
    order_span: Span | None
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
