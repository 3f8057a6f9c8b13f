"""Decide how the answers of several shards are merged, or why they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.routing.routes import Concatenate, Merge, Route
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import read_derived
from streamfrom.sqlparse_ext.selects.select_reader import read_select
from streamfrom.sqlparse_ext.statements import Shape, TableRef, Uses


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.routing.vschema_tables import VschemaTables
    from streamfrom.sqlparse_ext.selects.select_ast import Expression, Select

# Constructs that look at rows of all shards together. `proxy.merge` can merge them if `sqlparse_ext.selects.select_reader` can read them.
MERGED: Final = (
    Uses.AGGREGATE | Uses.GROUP | Uses.DISTINCT | Uses.ORDER | Uses.LIMIT | Uses.WINDOW
)
_AGGREGATES: Final = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG"})
NEVER_MERGED: Final = Uses.WINDOW | Uses.INTO | Uses.CALC_FOUND_ROWS
# The names of constructs in an error, which reports the first one.
_CONSTRUCTS: Final = {
    Uses.SETOP: "UNION, INTERSECT or EXCEPT",
    Uses.JOIN: "a join",
    Uses.CTE: "WITH",
    Uses.SUBQUERY: "a subquery",
    Uses.AGGREGATE: "an aggregate",
    Uses.GROUP: "GROUP BY",
    Uses.DISTINCT: "DISTINCT",
    Uses.ORDER: "ORDER BY",
    Uses.LIMIT: "LIMIT",
    Uses.WINDOW: "a window function",
    Uses.INTO: "SELECT … INTO",
    Uses.CALC_FOUND_ROWS: "SQL_CALC_FOUND_ROWS",
    Uses.FOUND_ROWS: "FOUND_ROWS()",
    Uses.ROW_COUNT: "ROW_COUNT()",
}


def refuse(shape: Shape, uses: Uses, where: str = "over several shards") -> None:
    """Raise Unsupported if the statement has one of the constructs *uses*."""
    found = shape.uses & uses
    for use, construct in _CONSTRUCTS.items():
        if found & use:
            raise Unsupported(f"{construct} {where}")


def scattered_select(
    tables: VschemaTables,
    shape: Shape,
    shards: tuple[Shard, ...],
    main: Sequence[TableRef],
    certain: Sequence[TableRef],
) -> Route:
    """Return how *shards* answer a SELECT whose rows each come entirely from one of them.

    main: the tables of its FROM, in order; none if that is a derived table.
    certain: those of them with a part in every row of the answer.
    """
    refuse(shape, NEVER_MERGED)
    if not shape.uses & MERGED:
        return Concatenate(shards)
    template = shape.template
    select = _read_select(template, tuple(main)) if main else _read_derived(template)
    if select is None or shape.uses & Uses.USER_VARIABLE:
        refuse(shape, MERGED)
    assert select is not None
    has_groups = bool(select.group) or bool(select.aggregates)
    if not (has_groups or select.order or select.limit or select.distinct):
        return Concatenate(shards)  # MERGED was in a subquery
    if shape.uses & Uses.LOCKING_READ and (
        has_groups or select.limit is not None or select.distinct is not None
    ):
        raise Unsupported("a locking read with LIMIT or groups over several shards")
    is_whole = select.distinct is None and _equals_stay_together(
        tables, select, certain, select.group
    )
    in_groups = not is_whole and (has_groups or select.distinct is not None)
    if in_groups and (others := select.aggregates - _AGGREGATES):
        raise Unsupported(f"{min(others)} over several shards")
    return Merge(shards, select, in_groups)


def _equals_stay_together(
    tables: VschemaTables,
    select: Select,
    certain: Sequence[TableRef],
    expressions: Sequence[Expression],
) -> bool:
    """Return whether rows that are equal in *expressions* are on one shard: one is a vindex column.

    False if an outer join can make it NULL: those rows are equal, and come from all shards.
    """
    for table in certain:
        if tables.is_reference(table.name) or tables.equality(table.name) is None:
            continue
        column = tables.column(table.name)
        name = (table.alias or table.name).lower()
        named = (name, ".", column) if select.joined else (column,)
        if any(expression.words == named for expression in expressions):
            return True
    return False


# The pieces of a shape's template; a plan is made for each set of shards that values name.
_read_select = lru_cache(maxsize=2048)(read_select)
_read_derived = lru_cache(maxsize=2048)(read_derived)
