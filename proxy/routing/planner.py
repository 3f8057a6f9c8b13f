"""Choose the shards of a statement. Pure: statement and keyspace in, route out.

A statement is routed in two steps, because the first is the same for every text of one shape
and is kept: a `Plan` decides how to find the shards (always this one, by the values of the vindex
column, all of them, or not at all and why), and `Plan.route` puts the values in.

A SELECT that cannot be answered in one go has parts, each with a separate route: SELECTs of a UNION, derived tables, bodies of
WITH, or the rows of its tables. Their rows replace them, and the first shard answers the rest.

Nothing is guessed. If rows of several shards would have to be joined, or merged in
a way that is not exact, the statement is refused with `unsupported: …` rather than answered wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import MissingVindexColumn
from streamfrom.proxy.routing.plan_joins import JoinPlanner
from streamfrom.proxy.routing.plan_scatter import MERGED, refuse, scattered_select
from streamfrom.proxy.routing.routes import (
    AnyShard,
    Combine,
    Concatenate,
    Merge,
    OneShard,
    Plan,
    Route,
    WriteParts,
)
from streamfrom.proxy.routing.vschema_tables import RowRouting, VschemaTables
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from streamfrom.sqlparse_ext.reading.database_names import database_names
from streamfrom.sqlparse_ext.reading.utility_statements import STATEMENT_VERBS
from streamfrom.sqlparse_ext.selects.inner_selects import (
    InnerSelects,
    read_derived,
    read_inner_selects,
    read_table_rows,
)
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.statements import (
    InsertSource,
    Kind,
    ListSlot,
    Shape,
    Statement,
    TableRef,
    Uses,
)
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.text.lexer_patterns import BAD
from streamfrom.sqlparse_ext.writes.write_parts import limit_of, rows_max, share_list


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard


_TABLE_STATEMENTS: Final = frozenset(
    {Kind.SELECT, Kind.UPDATE, Kind.DELETE, Kind.INSERT, Kind.REPLACE}
)
# Without a table they do not need the session's database.
_READS: Final = frozenset({Kind.SELECT, Kind.SHOW})
_SEVERAL: Final = Uses.SETOP | Uses.JOIN | Uses.SUBQUERY | Uses.CTE
# ANALYZE TABLE and similar, including ALTER TABLE … ANALYZE PARTITION, answer with rows, and
# each shard has its own part of the table.
_MAINTAINS: Final = frozenset({"ALTER", "ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"})


class Planner:
    """Plans for one keyspace, or for some of its shards.

    Args:
        keyspace: the keyspace of the statements.
        shards: the shards in reach: all of them, or those that a target such as `ks:-80` names.
        columns_of: returns a table's columns in order, None if they are unknown.
    """

    _PLANS_MAX: Final = 8192

    def __init__(
        self,
        keyspace: Keyspace,
        shards: tuple[Shard, ...],
        columns_of: Callable[[str], tuple[str, ...] | None],
    ) -> None:
        self._tables = VschemaTables(keyspace, shards)
        self._shards = shards
        self._columns_of = columns_of
        self._plans: dict[Shape, Plan] = {}

    def knows(self, shape: Shape) -> bool:
        """Return whether the plan of *shape* is cached."""
        return shape in self._plans

    def plan(self, shape: Shape) -> Plan:
        """Return the plan of *shape*. Raises Unsupported."""
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._or_by_rows(shape)
            if shape.uses & Uses.USER_VARIABLE and b":=" in shape.template:
                plan = _on_one_shard(plan)
            if len(self._plans) >= self._PLANS_MAX:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    def _or_by_rows(self, shape: Shape) -> Plan:
        """Return the plan, by the rows of its tables where the answers of several shards cannot be merged. Raises Unsupported."""
        is_one = len(self._shards) == 1
        whole = None if is_one else plan_of_rows(self._tables, shape, self._route_of)
        try:
            merged = self._make(shape)
        except Unsupported:
            # The rows of a join that nothing ties are refused as well.
            if whole is None or shape.uses & _SEVERAL:
                raise
            return Plan(find=whole)
        if whole is None or isinstance(merged.always, OneShard):
            return merged

        def find(statement: Statement) -> Route:
            try:
                route = merged.route(statement)
            except Unsupported:
                with suppress(Unsupported):
                    return whole(statement)
                raise
            return replace(route, otherwise=whole) if isinstance(route, Merge) else route

        return Plan(find=find)

    def _make(self, shape: Shape) -> Plan:
        first = self._shards[0]
        # Sessions that take locks of the same name have to meet.
        here = (OneShard if shape.uses & Uses.ADVISORY_LOCK else AnyShard)(first)
        if len(self._shards) == 1:
            return Plan(here if shape.kind in _READS and not shape.tables else OneShard(first))
        if (
            shape.kind in _TABLE_STATEMENTS
            and shape.uses & Uses.UNPARSED
            and not _describes(shape)
        ):
            raise Unsupported(
                f"this {shape.verb} could not be analysed, which a sharded keyspace needs; write it more plainly, or USE one shard for it"
            )
        match shape.kind:
            case Kind.SELECT | Kind.UPDATE | Kind.DELETE:
                return self._make_table_statement(shape, here)
            case Kind.INSERT | Kind.REPLACE:
                if (placed := self._placed(shape, shape.tables)) is not None:
                    return Plan(placed)
                return plan_insert(self._tables, shape, self._shards, self._columns_of)
            case Kind.SHOW | Kind.SAVEPOINT:
                return Plan(here)
            case Kind.EXPLAIN if shape.verb != "ANALYZE":
                return Plan(here)
            case Kind.SET if not shape.uses & Uses.UNPARSED:
                return Plan(here)
            case Kind.OTHER if shape.verb in _MAINTAINS and shape.tables:
                return Plan(Concatenate(self._shards))  # a row or more of each
            case Kind.OTHER if shape.verb in {"DO", "GET", "HELP"} and not shape.tables:
                return Plan(here)
            case Kind.OTHER if shape.verb not in STATEMENT_VERBS:
                raise SqlError(
                    "check the manual that corresponds to your server version for the right"
                    f" syntax to use near '{shape.verb}'"
                )
            case _:
                raise Unsupported(f"{shape.verb} in a sharded keyspace; USE one shard for it")

    # --- SELECT, UPDATE, DELETE -----------------------------------------------------------

    def _make_table_statement(self, shape: Shape, here: OneShard) -> Plan:
        tables = [
            table
            for table in shape.tables
            if table.schema is None or table.schema.lower() not in SYSTEM_SCHEMAS
        ]
        # A server knows them from the previous statement, which another shard may have run.
        refuse(shape, Uses.FOUND_ROWS | Uses.ROW_COUNT, "in a sharded keyspace")
        if not tables:
            return Plan(here)
        if (placed := self._placed(shape, tables)) is not None:
            return Plan(placed)
        if shape.uses & _SEVERAL or len(tables) > 1:
            parts = read_inner_selects(shape.template) if shape.kind is Kind.SELECT else None
            if parts is not None:
                return plan_of_parts(self._tables, shape, parts, self._route_of)
            return JoinPlanner(self._tables, shape).plan()
        rows = self._tables.rows(tables[0].name)
        changes = shape.kind is Kind.UPDATE and rows.column in shape.assignments
        given, limit = shape.conditions.get(rows.column), limit_of(shape)
        if changes and given is None:
            rows.refuse_changes(shape)
        if given is None and limit is None:
            return Plan(self._scattered(shape, self._shards))

        def find(statement: Statement) -> Route:
            if changes:
                rows.refuse_changes(shape, statement)
            route = spread(statement)
            if limit is None or not isinstance(route, WriteParts):
                return route
            return replace(route, rows_max=rows_max(statement, limit))

        def spread(statement: Statement) -> Route:
            shares = None if given is None else rows.shares(statement.values(given))
            if shares is None:
                return self._scattered(shape, self._shards)
            if not shares:
                # For example `id = NULL`: no row matches, and any shard can report that.
                return here
            shards = tuple(shares)
            if len(shards) == 1:
                return OneShard(shards[0])
            route = self._scattered(shape, shards)
            slot = given[0] if given else None
            if isinstance(route, WriteParts) and isinstance(slot, ListSlot):
                texts = share_list(statement, slot, shares.values())
                return WriteParts(tuple(zip(shards, texts, strict=True)))
            return route

        return Plan(find=find)

    def _route_of(self, statement: Statement) -> Route:
        return self.plan(statement.shape).route(statement)

    def _placed(self, shape: Shape, tables: Sequence[TableRef]) -> OneShard | None:
        """Return the shard that has all rows of all *tables*; None if a vindex distributes them.

        A reference table is on every shard, a pinned one on one. One server answers
        a statement with only such tables, including joins and subqueries.
        """
        found: Shard | None = None
        for table in tables:
            shard = self._tables.pinned_to(table.name)
            if shard is not None:
                if found not in (None, shard):
                    raise Unsupported(
                        "tables that are pinned to several shards; send one statement for each"
                    )
                found = shard
            elif not self._tables.is_reference(table.name):
                return None
        if shape.uses & Uses.INTO:
            raise Unsupported("SELECT … INTO in a sharded keyspace; USE one shard for it")
        # In a join, any of the tables may be the one that is written.
        written = tables if shape.uses & Uses.JOIN else tables[:1]
        for table in written if shape.kind is not Kind.SELECT else ():
            if self._tables.is_reference(table.name):
                # NOW(), UUID() and generated ids would make the copies differ.
                raise Unsupported(
                    f"writing reference table '{table.name}'; USE each shard for it"
                )
        return AnyShard(self._shards[0]) if found is None else OneShard(found)

    def _scattered(self, shape: Shape, shards: tuple[Shard, ...]) -> Route:
        if shape.kind is Kind.SELECT:
            return scattered_select(self._tables, shape, shards, shape.tables, shape.tables)
        if shape.uses & (Uses.LIMIT | Uses.ORDER) and limit_of(shape) is None:
            raise Unsupported(f"{shape.verb} with LIMIT or ORDER BY over several shards")
        return WriteParts(tuple((shard, None) for shard in shards))


def _describes(shape: Shape) -> bool:
    """Return whether a statement certainly reads only tables of the servers' own schemas, even if it cannot be parsed."""
    if shape.kind is not Kind.SELECT or shape.uses & Uses.MULTIPLE or BAD in shape.template:
        return False
    names = database_names(shape)
    named = {each.name.lower() for each in names.places}
    return bool(named) and named <= SYSTEM_SCHEMAS and not names.has_unqualified_tables


def _on_one_shard(plan: Plan) -> Plan:
    """Return *plan* for a statement that only one shard can answer alone.

    A value that it assigns to a user variable depends on the earlier rows, in the order of one server.
    """

    def find(statement: Statement) -> Route:
        route = plan.route(statement)
        if isinstance(route, OneShard):
            return route
        raise Unsupported("assigning a user variable in a query over several shards")

    return Plan(find=find)


def plan_insert(
    tables: VschemaTables,
    shape: Shape,
    shards: tuple[Shard, ...],
    columns_of: Callable[[str], tuple[str, ...] | None],
) -> Plan:
    """Return the plan of an INSERT or REPLACE into a sharded table. Raises Unsupported.

    columns_of: returns a table's columns in order, None if they are unknown.
    """
    insert, table = shape.insert, shape.tables[0].name
    assert insert is not None
    if tables.pinned_to(table) is not None or tables.is_reference(table):
        raise Unsupported(
            f"{shape.verb} … SELECT from sharded tables into '{table}'; select first, then insert the rows"
        )
    rows = tables.rows(table)
    rows.refuse_changes(shape)
    _refuse_subqueries(tables, shape)
    if insert.source is InsertSource.SET:
        _require(rows, table, insert.set)
        operand = insert.set[rows.column]
        return Plan(find=lambda statement: OneShard(rows.owner(statement.known(operand))))
    columns = insert.columns or columns_of(table)
    if columns is None:
        raise Unsupported(
            f"{shape.verb} without a column list into sharded table '{table}'; name the columns"
        )
    _require(rows, table, columns)
    position = columns.index(rows.column)
    if insert.source is InsertSource.SELECT:
        return JoinPlanner(tables, shape, position).plan()
    return Plan(find=lambda statement: _split(statement, rows, position, shards))


def _refuse_subqueries(tables: VschemaTables, shape: Shape) -> None:
    """Raise Unsupported for a subquery that would see only the rows of one shard."""
    assert shape.insert is not None
    for table in shape.insert.read_beside:
        if not tables.is_reference(table.name):
            raise Unsupported(
                f"a subquery of table '{table.name}' next to the rows of {shape.verb} in a sharded"
                " keyspace"
            )


def _require(rows: RowRouting, table: str, given: Collection[str]) -> None:
    if rows.column not in given:
        raise MissingVindexColumn(table, rows.column)


def _split(
    statement: Statement,
    routing: RowRouting,
    position: int,
    shards: tuple[Shard, ...],
) -> Route:
    """Return the route that gives each shard its rows of a VALUES list."""
    rows = insert_rows(statement)
    if rows is None:
        raise Unsupported(f"this form of {statement.shape.verb} in a sharded keyspace")
    by_shard: dict[Shard, list[int]] = {}
    for index, value in enumerate(rows.position(position)):
        by_shard.setdefault(routing.owner(value), []).append(index)
    if len(by_shard) == 1:
        return OneShard(next(iter(by_shard)))
    written = [shard for shard in shards if shard in by_shard]
    return WriteParts(
        tuple((shard, rows.select_rows(by_shard[shard])) for shard in written),
        places=tuple(by_shard[shard] for shard in written)
        if statement.shape.uses & Uses.RETURNING
        else (),
    )


_REFUSED: Final = (
    Uses.USER_VARIABLE | Uses.LOCKING_READ | Uses.INTO | Uses.UNPARSED
    | Uses.CALC_FOUND_ROWS | Uses.FOUND_ROWS | Uses.ROW_COUNT
)  # fmt: skip
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
    """Return the plan of a SELECT that has *parts*; *route_of* gives the route of a part. Raises Unsupported if no values would do."""
    planner = JoinPlanner(tables, shape)
    if not _can_combine(tables, shape, parts):
        return planner.plan()

    def find(statement: Statement) -> Route:
        with suppress(Unsupported):
            return planner.plan().route(statement)
        route = _combined(tables, parts, statement, route_of)
        # Planned again: a kept error would grow by a frame, which holds the statement, each time it is raised.
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
    """Return the route by the parts; None if there is none."""
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
        if isinstance(route, OneShard) and route.shard == tables.shards[0]:
            continue
        if isinstance(route, Concatenate) and parts.counts_rows:
            # Each shard counts its own rows.
            counting = read_derived(statement.shape.template)
            return None if counting is None else Merge(route.shards, counting, in_groups=True)
        shards.update(route.shards)
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
    """Return a function that routes a SELECT by its tables' rows, which one shard then processes; None for other statements."""
    if shape.kind is not Kind.SELECT or shape.uses & _REFUSED or not shape.uses & MERGED:
        return None
    rows = read_table_rows(shape.template)
    if rows is None:
        return None

    def find(statement: Statement) -> Combine:
        part = rows.statement(statement)
        route = route_of(part)
        first = tables.shards[0]
        others = tuple(shard for shard in tables.shards[1:] if shard in route.shards)
        return Combine((first, *others), rows, ((0, part, route),))

    return find
