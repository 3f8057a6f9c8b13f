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
    """A column of the source with this number. column: its name in lower case."""

    source: int
    column: str


Equality = Reference | tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One table, at one place of the query.

    equalities: what each column (in lower case) equals: another column, or one of some literals.
    block: the number of the outermost SELECT around the table, at any depth; None in a CTE that
        several outermost SELECTs share.
    is_main: the table stands in the FROM of that SELECT itself.
    is_certain: every row of that SELECT has a row of the table, never NULLs instead of one. Such a
        table stands in its FROM, or in the derived table that is all of its FROM.
    """

    table: TableRef
    equalities: Mapping[str, tuple[Equality, ...]]
    block: int | None
    is_main: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """An outermost SELECT: the only one, or one of those that UNION and the like put together.

    items: each item of the select list, as a column, a literal, or None for any other expression;
        empty with a `*`.
    is_distinct: the SELECT has DISTINCT.
    is_grouped: the SELECT has GROUP BY.
    """

    items: tuple[Equality | None, ...]
    is_distinct: bool
    is_grouped: bool


@dataclass(frozen=True, slots=True)
class JoinEqualities:
    """The tables of a query, and what their columns equal.

    blocks: the outermost SELECTs.
    operators: the operators between the blocks, such as "UNION ALL", the one that is applied last first.
    limits_inside: a LIMIT stands in a derived table, in a CTE, in one of several blocks, or in a
        SELECT of a UNION that is a subquery.
    groupings: the GROUP BY or DISTINCT columns of each derived table that is all of a FROM: rows that
        are equal in these columns become one row.
    limited: the sources of each subquery that stands in an expression and has a LIMIT.
    factors: the tables of the outermost FROM, and the derived tables joined there by their aliases.
    apart: the sources and the GROUP BY or DISTINCT columns of each such joined derived table.
    """

    sources: tuple[Source, ...]
    blocks: tuple[QueryBlock, ...]
    operators: tuple[str, ...]
    limits_inside: bool
    groupings: tuple[frozenset[Reference], ...] = ()
    limited: tuple[frozenset[int], ...] = ()
    factors: tuple[TableRef, ...] = ()
    apart: tuple[tuple[frozenset[int], frozenset[Reference]], ...] = ()
