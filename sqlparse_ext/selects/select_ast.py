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
    """One expression: where it stands and what it is."""

    span: Span
    # The tokens in a form that can be compared; a literal is its slot.
    words: tuple[str | Slot | ListSlot, ...]
    # The column, in lower case, of an expression that is one column and nothing else.
    column: str | None = None
    # The columns (or aliases) in the expression, in lower case.
    names: frozenset[str] = frozenset()
    # The functions that the expression calls, in upper case.
    calls: frozenset[str] = frozenset()
    # The aggregate call of an expression that is one and nothing else.
    call: AggregateCall | None = None
    # A name in the expression has its table before it, so that it is no alias.
    is_qualified: bool = False
    # The aggregate calls in a composed expression, and the names outside of these calls; a keyword (the CHAR of CAST) counts as
    # a name.
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
    """`function([DISTINCT] arguments)`; no arguments stand for `*`."""

    function: str
    distinct: bool
    arguments: tuple[Expression, ...]
    order: tuple[OrderItem, ...] = ()  # the ORDER BY of GROUP_CONCAT
    separator: Slot | None = None  # the SEPARATOR of GROUP_CONCAT; None is the comma


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
    # The operator of `left operator literal`, or "IS NULL", or "IS NOT NULL"; "" for any other form, of which *left* is the
    # whole.
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
    """The parts of one SELECT."""

    select_end: int  # the place behind the word SELECT
    distinct: Span | None  # the span of the word DISTINCT; None without it
    items: tuple[Item, ...]
    table: TableRef
    table_span: Span  # the span of the table's name with its schema, without its alias
    joined: tuple[TableRef, ...]  # all tables of a join, in order; empty for a single table
    source: Span  # the span of FROM with the table and its hints, or with the whole join
    where: Span  # the span of the WHERE clause; an empty one behind *source* without the clause
    group: tuple[Expression, ...]
    having: tuple[HavingCondition, ...]
    order: tuple[OrderItem, ...]
    limit: Limit | None
    rows_end: int  # the place where LIMIT begins, or would begin
    is_derived: bool = False  # *table* is a derived table
    # The PARTITION BY expressions of each window function of the items.
    windows: tuple[tuple[Expression, ...], ...] = ()

    @property
    def has_aggregate(self) -> bool:
        """An aggregate function makes groups of the rows, with or without GROUP BY."""
        expressions = [item.expression for item in self.items if item.expression is not None]
        expressions += [condition.left for condition in self.having]
        expressions += [order.expression for order in self.order]
        return any(expression.has_aggregate for expression in expressions)
