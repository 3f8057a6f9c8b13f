"""The tables of a query, and what their columns equal, as `join_equalities` finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.sqlparse_ext.statements import Operand, TableRef


# Stands for every column.
ALL: Final = "*"


class Reference(NamedTuple):
    """A column of a source, by its number; the column in lower case."""

    source: int
    column: str


Equality = Reference | tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One table, at one place of the query.

    equalities: what a column equals, by lower-case column: literals, of which it is one, or a column.
    block: the number of the outermost SELECT that it belongs to, in whatever depth; None for
        one in a CTE of several.
    is_main: it stands in that SELECT's own FROM.
    is_certain: every row of that SELECT has one of its rows in it, not NULLs instead; it stands in
        its FROM, or in that of a derived table which is all of it.
    """

    table: TableRef
    equalities: Mapping[str, tuple[Equality, ...]]
    block: int | None
    is_main: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """An outermost SELECT: the only one, or one of those that UNION and the like put together.

    items: what each item of its select list is: a column, one literal, or None for everything
        else; empty with a `*`.
    is_distinct: it says DISTINCT.
    is_grouped: it says GROUP BY.
    """

    items: tuple[Equality | None, ...]
    is_distinct: bool
    is_grouped: bool


@dataclass(frozen=True, slots=True)
class JoinEqualities:
    """The tables of a query, and what their columns equal.

    blocks: the outermost SELECTs.
    operators: what puts them together, such as "UNION" and "UNION ALL", the last to do so first.
    limits_inside: a derived table, a CTE, or one of several blocks or of a subquery's has a LIMIT.
    groupings: for each derived table that is all of a FROM and has groups or DISTINCT, the columns
        whose equals are in one row of it together.
    limited: for each subquery in an expression that has a LIMIT, the sources of its FROM.
    factors: what stands in the outermost FROM, derived tables that are joined by their aliases.
    apart: for each such derived table that has groups or DISTINCT, its sources, and the columns
        whose equals are in one row of it together.
    """

    sources: tuple[Source, ...]
    blocks: tuple[QueryBlock, ...]
    operators: tuple[str, ...]
    limits_inside: bool
    groupings: tuple[frozenset[Reference], ...] = ()
    limited: tuple[frozenset[int], ...] = ()
    factors: tuple[TableRef, ...] = ()
    apart: tuple[tuple[frozenset[int], frozenset[Reference]], ...] = ()
