"""SELECTs whose parts need several shards: UNIONs of groups and limits, derived tables, WITH.

A SELECT whose answer cannot be made of the shards' answers has one part: the rows of its table.

Where such a statement cannot be answered in one go, its parts are: each is a SELECT of its own, with a
route of its own, and what they are parts of reads nothing else that a vindex deals out. Their rows
then take their places, and the first shard answers the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.routing.plan_joins import JoinPlanner
from streamfrom.proxy.routing.routes import Combine, Concatenate, Merge, OneShard, Plan, Route
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.table_rows import read_table_rows
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses


if TYPE_CHECKING:
    from streamfrom.proxy.routing.vschema_tables import VschemaTables
    from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects

_REFUSED: Final = (
    Uses.USER_VARIABLE | Uses.LOCKING_READ | Uses.INTO | Uses.CALC_FOUND_ROWS | Uses.UNPARSED
)
# A derived table of these is written down by servers before it is read, so that its values have the
# digits that they show; of another one they may compute with more.
_WRITTEN_DOWN: Final = (
    Uses.AGGREGATE | Uses.GROUP | Uses.DISTINCT | Uses.LIMIT | Uses.SETOP | Uses.WINDOW
)


def plan_of_parts(
    tables: VschemaTables,
    shape: Shape,
    parts: InnerSelects,
    route_of: Callable[[Statement], Route],
) -> Plan:
    """Return the plan of a SELECT that has *parts*.

    route_of: gives the route of a part.

    Raises:
        Unsupported: it goes to no shard whatever its values are.
    """
    planner = JoinPlanner(tables, shape)
    if not _can_combine(tables, shape, parts):
        return planner.plan()

    def find(statement: Statement) -> Route:
        with suppress(Unsupported):
            return planner.plan().route(statement)
        route = _combined(tables, parts, statement, route_of)
        # Refused again: a kept error would grow by a frame, which has the statement, whenever it is raised.
        return planner.plan().route(statement) if route is None else route

    return Plan(find=find)


def _can_combine(tables: VschemaTables, shape: Shape, parts: InnerSelects) -> bool:
    outside = parts.outside
    return not (shape.uses | outside.uses) & _REFUSED and all(
        (table.schema or "").lower() not in SYSTEM_SCHEMAS and tables.is_reference(table.name)
        for table in outside.tables
    )


def _combined(
    tables: VschemaTables,
    parts: InnerSelects,
    statement: Statement,
    route_of: Callable[[Statement], Route],
) -> Route | None:
    """Return the route by the parts; None where there is none."""
    answered = []
    shards = {tables.shards[0]}
    for number, excerpt in enumerate(parts.excerpts):
        part = excerpt.statement(statement)
        if any(t.schema is None and t.name.lower() in parts.names for t in part.shape.tables):
            return None  # a body of WITH that reads another one
        try:
            route = route_of(part)
        except Unsupported:
            return None
        match route:
            case OneShard(shard) if shard == tables.shards[0]:
                continue
            case OneShard(shard):
                shards.add(shard)
            case Concatenate(found) | Merge(found) | Combine(found):
                shards.update(found)
            case _:
                return None
        if not (parts.operators or part.shape.uses & _WRITTEN_DOWN):
            return None
        answered.append((number, part, route))
    if not answered:
        return OneShard(tables.shards[0])
    return Combine(
        tuple(shard for shard in tables.shards if shard in shards), parts, tuple(answered)
    )


def plan_of_rows(
    tables: VschemaTables, shape: Shape, route_of: Callable[[Statement], Route]
) -> Callable[[Statement], Combine] | None:
    """Return what routes a SELECT by the rows of its one table, which one shard goes on with; None for other statements."""
    if shape.kind is not Kind.SELECT or shape.uses & _REFUSED:
        return None
    rows = read_table_rows(shape.template)
    if rows is None:
        return None

    def find(statement: Statement) -> Combine:
        part = rows.statement(statement)
        route = route_of(part)
        assert isinstance(route, OneShard | Concatenate)
        shards = (route.shard,) if isinstance(route, OneShard) else route.shards
        first = tables.shards[0]
        others = tuple(shard for shard in tables.shards[1:] if shard in shards)
        return Combine((first, *others), rows, ((0, part, route),))

    return find
