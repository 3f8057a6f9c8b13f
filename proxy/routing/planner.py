"""Which shards a statement goes to. Pure: statement and keyspace in, route out.

A statement is routed in two steps, because the first is the same for every text of one shape
and is kept: `Plan` says how its shards are found (always this one, by the values of the vindex
column, all of them, or not at all and why), and `Plan.route` puts the values in.

Nothing is guessed. What would need rows of several shards to be joined, or to be put together in
a way that is not exact, is refused with `unsupported: …` rather than answered wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from proxy.errors import BadVindexValue, MissingVindexColumn
from sqlparse_ext.errors import Unsupported
from sqlparse_ext.lists import share_list
from sqlparse_ext.rows import insert_rows
from sqlparse_ext.select import read_select
from sqlparse_ext.statements import OPAQUE, InsertSource, Kind, ListSlot, Number, Uses


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.keyspace import Keyspace, Shard
    from engine.vindex import Vindex
    from engine.vschema import TableRouting
    from sqlparse_ext.select import Select
    from sqlparse_ext.statements import Opaque, Operand, Shape, Statement, TableRef, Value


# Schemas that every server has and that describe only itself.
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

# What `proxy.merge` can put together, if `sqlparse_ext.select` can read it.
_MERGED: Final = Uses.AGGREGATE | Uses.GROUP | Uses.DISTINCT | Uses.ORDER | Uses.LIMIT
_NEEDS_MERGE: Final = (
    (Uses.AGGREGATE, "an aggregate over several shards"),
    (Uses.GROUP, "GROUP BY over several shards"),
    (Uses.DISTINCT, "DISTINCT over several shards"),
    (Uses.ORDER, "ORDER BY over several shards"),
    (Uses.LIMIT, "LIMIT over several shards"),
)
_NEVER_MERGED: Final = (
    (Uses.WINDOW, "a window function over several shards"),
    (Uses.INTO, "SELECT … INTO over several shards"),
    (Uses.CALC_FOUND_ROWS, "SQL_CALC_FOUND_ROWS over several shards"),
)
# Of these equal values have equal keyspace ids: rows that are equal in the vindex column are on
# one shard. Of strings that is not sure: 'a' = 'A', and their bytes differ.
_KEEPS_EQUALS: Final = frozenset({"hash", "numeric", "reverse_bits"})
_REFERENCE: Final = "reference"
_SEVERAL_TABLES: Final = (
    (Uses.SETOP, "UNION, INTERSECT or EXCEPT in a sharded keyspace"),
    (Uses.JOIN, "a join in a sharded keyspace"),
    (Uses.SUBQUERY, "a subquery in a sharded keyspace"),
    (Uses.CTE, "WITH in a sharded keyspace"),
)
# What a server knows of the statement before, which another shard may have run.
_OF_THE_STATEMENT_BEFORE: Final = (
    (Uses.FOUND_ROWS, "FOUND_ROWS() in a sharded keyspace"),
    (Uses.ROW_COUNT, "ROW_COUNT() in a sharded keyspace"),
)


@dataclass(frozen=True, slots=True)
class OneShard:
    """The statement goes to one shard, whose answer is the client's."""

    shard: Shard


@dataclass(frozen=True, slots=True)
class Concatenate:
    """A SELECT whose answer is the rows of all *shards*, in any order."""

    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """A SELECT whose answer must be put together from the rows of all *shards*.

    in_groups: rows of several shards are in one group; otherwise each row, or group, is a whole.
    """

    shards: tuple[Shard, ...]
    select: Select
    in_groups: bool


@dataclass(frozen=True, slots=True)
class WriteParts:
    """A write to several shards that succeeds or fails as one.

    Each part has its own text; None is the statement as the client wrote it.
    """

    parts: tuple[tuple[Shard, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A DDL statement for all *shards*, one after another."""

    shards: tuple[Shard, ...]


Route = OneShard | Concatenate | Merge | WriteParts | Everywhere


class Plan:
    """How to find the shards of every statement of one shape.

    Attributes:
        always: the route when it does not depend on the values, else None.
    """

    __slots__ = ("_find", "always")

    def __init__(
        self, always: Route | None = None, find: Callable[[Statement], Route] | None = None
    ) -> None:
        self.always = always
        self._find = find

    def route(self, statement: Statement) -> Route:
        """Return where *statement* goes. Raises Unsupported and the errors of bad values."""
        if self.always is not None:
            return self.always
        assert self._find is not None
        return self._find(statement)


class Planner:
    """Plans for one keyspace, or for some of its shards.

    Args:
        keyspace: where the statements go.
        shards: the shards in reach: all of them, or those that a target such as `ks:-80` names.
        columns_of: the columns of a table in order, None when they are not known.
    """

    _PLANS_MAX: Final = 8192

    def __init__(
        self,
        keyspace: Keyspace,
        shards: tuple[Shard, ...],
        columns_of: Callable[[str], tuple[str, ...] | None],
    ) -> None:
        self._keyspace = keyspace
        self._shards = shards
        self._columns_of = columns_of
        self._plans: dict[Shape, Plan] = {}

    def plan(self, shape: Shape) -> Plan:
        """Return the plan of *shape*. Raises Unsupported."""
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._make(shape)
            if len(self._plans) >= self._PLANS_MAX:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    def _make(self, shape: Shape) -> Plan:
        here = OneShard(self._shards[0])
        if len(self._shards) == 1:
            return Plan(here)
        match shape.kind:
            case Kind.SELECT | Kind.UPDATE | Kind.DELETE:
                return self._make_table_statement(shape, here)
            case Kind.INSERT | Kind.REPLACE:
                return self._make_insert(shape)
            case Kind.DDL:
                return Plan(Everywhere(self._shards))
            case Kind.SHOW | Kind.SAVEPOINT:
                return Plan(here)
            case Kind.EXPLAIN if shape.verb != "ANALYZE":
                return Plan(here)
            case Kind.SET if not shape.uses & Uses.UNPARSED:
                return Plan(here)
            case Kind.OTHER if shape.verb in {"DO", "GET", "HELP"} and not shape.tables:
                return Plan(here)
            case _:
                raise Unsupported(f"{shape.verb} in a sharded keyspace; USE one shard for it")

    # --- SELECT, UPDATE, DELETE -----------------------------------------------------------

    def _make_table_statement(self, shape: Shape, here: OneShard) -> Plan:
        tables = [
            table
            for table in shape.tables
            if table.schema is None or table.schema.lower() not in SYSTEM_SCHEMAS
        ]
        if shape.uses & Uses.UNPARSED:
            raise Unsupported(
                f"this {shape.verb} could not be analysed, which a sharded keyspace needs"
            )
        _refuse(shape, _OF_THE_STATEMENT_BEFORE)
        if b":=" in shape.template:
            raise Unsupported("assigning a user variable in a query; SET reaches every shard")
        if not tables:
            return Plan(here)
        placed = self._placed(shape, tables)
        if placed is not None:
            return Plan(placed)
        _refuse(shape, _SEVERAL_TABLES)
        if len(tables) > 1:
            raise Unsupported("several tables in a sharded keyspace")
        column, vindex = self._routing(tables[0].name)
        if shape.kind is Kind.UPDATE and column in shape.assignments:
            raise Unsupported(f"changing the vindex column '{column}'")
        operands = shape.conditions.get(column)
        if operands is None:
            return Plan(self._scattered(shape, self._shards))

        def find(statement: Statement) -> Route:
            shares = self._shares_of(vindex, statement.values(operands))
            if shares is None:
                return self._scattered(shape, self._shards)
            if not shares:
                # `id = NULL` and the like: no row matches, and any shard can say so.
                return here
            shards = tuple(shares)
            if len(shards) == 1:
                return OneShard(shards[0])
            route = self._scattered(shape, shards)
            if isinstance(route, WriteParts) and isinstance(operands[0], ListSlot):
                texts = share_list(statement, operands[0], shares.values())
                return WriteParts(tuple(zip(shards, texts, strict=True)))
            return route

        return Plan(find=find)

    def _placed(self, shape: Shape, tables: Sequence[TableRef]) -> OneShard | None:
        """Return the shard that has all rows of all *tables*, None when a vindex deals them out.

        A reference table is on every shard, a pinned one on one. What such tables alone take
        part in, one server answers, joins and subqueries too.
        """
        found: Shard | None = None
        for table in tables:
            routing = self._table(table.name)
            if routing.pinned is not None:
                shard = self._keyspace.shard_of(routing.pinned)
                if shard not in self._shards:
                    raise Unsupported(
                        f"table '{table.name}' of shard '{shard.name}', which is not in the target"
                    )
                if found not in (None, shard):
                    raise Unsupported("tables that are pinned to several shards")
                found = shard
            elif routing.type != _REFERENCE:
                return None
        if shape.uses & Uses.INTO:
            raise Unsupported("SELECT … INTO in a sharded keyspace; USE one shard for it")
        # What a join writes is not looked for: any of its tables may be the one.
        written = tables if shape.uses & Uses.JOIN else tables[:1]
        for table in written if shape.kind is not Kind.SELECT else ():
            if self._table(table.name).pinned is None:
                # NOW(), UUID() and generated ids would make the copies differ.
                raise Unsupported(
                    f"writing reference table '{table.name}'; USE each shard for it"
                )
        return OneShard(found or self._shards[0])

    def _table(self, name: str) -> TableRouting:
        vschema = self._keyspace.vschema
        assert vschema is not None
        routing = vschema.tables.get(name)
        if routing is None:
            raise Unsupported(
                f"table '{name}' is not in the vschema of keyspace '{self._keyspace.name}',"
                " which is sharded"
            )
        return routing

    def _scattered(self, shape: Shape, shards: tuple[Shard, ...]) -> Route:
        if shape.kind is Kind.SELECT:
            return self._scattered_select(shape, shards)
        if shape.uses & (Uses.LIMIT | Uses.ORDER):
            raise Unsupported(f"{shape.verb} with LIMIT or ORDER BY over several shards")
        if shape.uses & Uses.RETURNING:
            raise Unsupported(f"{shape.verb} … RETURNING over several shards")
        return WriteParts(tuple((shard, None) for shard in shards))

    def _scattered_select(self, shape: Shape, shards: tuple[Shard, ...]) -> Route:
        _refuse(shape, _NEVER_MERGED)
        if not shape.uses & _MERGED:
            return Concatenate(shards)
        select = _read_select(shape.template)
        if select is None or shape.uses & Uses.USER_VARIABLE:
            _refuse(shape, _NEEDS_MERGE)
        assert select is not None
        has_groups = bool(select.group) or select.has_aggregate
        if shape.uses & Uses.LOCKING_READ and (
            has_groups or select.limit is not None or select.distinct is not None
        ):
            raise Unsupported("a locking read with LIMIT or groups over several shards")
        column, _ = self._routing(select.table.name)
        is_whole = (
            select.distinct is None
            and self._keeps_equals(select.table.name)
            and any(group.column == column for group in select.group)
        )
        in_groups = not is_whole and (has_groups or select.distinct is not None)
        return Merge(shards, select, in_groups)

    def _keeps_equals(self, table: str) -> bool:
        vschema = self._keyspace.vschema
        assert vschema is not None
        primary = vschema.tables[table].primary
        return primary is not None and primary.vindex.type in _KEEPS_EQUALS

    def _shares_of(
        self, vindex: Vindex, values: list[Value] | None
    ) -> dict[Shard, list[int]] | None:
        """Return which of *values* each shard owns; None when only all shards are sure."""
        if values is None:
            return None
        found: dict[Shard, list[int]] = {}
        for index, value in enumerate(values):
            if value is None:
                continue
            keyspace_id = None if isinstance(value, Number) else vindex.map(value)
            if keyspace_id is None:
                # '5abc' = 5 is true for MySQL, and no vindex knows that.
                return None
            found.setdefault(self._keyspace.shard_of(keyspace_id), []).append(index)
        return {shard: found[shard] for shard in self._shards if shard in found}

    def _routing(self, table: str) -> tuple[str, Vindex]:
        """Return the column that decides the shard of a row of *table*, and how."""
        routing = self._table(table)
        if routing.type:
            raise Unsupported(f"{routing.type} table '{table}'")
        primary = routing.primary
        if primary is None or len(primary.columns) > 1:
            raise Unsupported(f"table '{table}', whose primary vindex has several columns")
        return primary.columns[0], primary.vindex.vindex

    # --- INSERT, REPLACE ------------------------------------------------------------------

    def _make_insert(self, shape: Shape) -> Plan:
        if shape.uses & Uses.UNPARSED or shape.insert is None:
            raise Unsupported(
                f"this {shape.verb} could not be analysed, which a sharded keyspace needs"
            )
        placed = self._placed(shape, shape.tables)
        if placed is not None:
            return Plan(placed)
        if shape.insert.source is InsertSource.SELECT:
            raise Unsupported(f"{shape.verb} … SELECT in a sharded keyspace")
        table = shape.tables[0].name
        column, _ = self._routing(table)
        if column in shape.assignments:
            raise Unsupported(f"changing the vindex column '{column}'")
        if shape.insert.source is InsertSource.SET:
            if column not in shape.insert.set:
                raise MissingVindexColumn(table, column)
            operand = shape.insert.set[column]
            return Plan(find=lambda statement: self._insert_set(statement, table, operand))
        columns = shape.insert.columns or self._columns_of(table)
        if columns is None:
            raise Unsupported(
                f"{shape.verb} without a column list into sharded table '{table}'"
            )
        if column not in columns:
            raise MissingVindexColumn(table, column)
        position = columns.index(column)
        return Plan(find=lambda statement: self._insert_values(statement, table, position))

    def _insert_set(self, statement: Statement, table: str, operand: Operand) -> Route:
        values = statement.values((operand,))
        value: Value | Opaque = OPAQUE if values is None else values[0]
        return OneShard(self._owner(table, value))

    def _insert_values(self, statement: Statement, table: str, position: int) -> Route:
        rows = insert_rows(statement)
        if rows is None:
            raise Unsupported(f"this form of {statement.shape.verb} in a sharded keyspace")
        by_shard: dict[Shard, list[int]] = {}
        for index, value in enumerate(rows.position(position)):
            by_shard.setdefault(self._owner(table, value), []).append(index)
        if len(by_shard) == 1:
            return OneShard(next(iter(by_shard)))
        if statement.shape.uses & Uses.RETURNING:
            raise Unsupported(f"{statement.shape.verb} … RETURNING over several shards")
        return WriteParts(
            tuple(
                (shard, rows.select_rows(by_shard[shard]))
                for shard in self._shards
                if shard in by_shard
            )
        )

    def _owner(self, table: str, value: Value | Opaque) -> Shard:
        column, vindex = self._routing(table)
        if value is OPAQUE:
            raise Unsupported(
                f"an expression for the vindex column '{column}' of table '{table}';"
                " give its value"
            )
        usable = value is not None and not isinstance(value, Number)
        keyspace_id = vindex.map(value) if usable else None
        if keyspace_id is None:
            raise BadVindexValue(table, column, value)
        shard = self._keyspace.shard_of(keyspace_id)
        if shard not in self._shards:
            raise Unsupported(f"a row of shard '{shard.name}', which is not in the target")
        return shard


# The pieces of a shape's template; a plan is made for each set of shards that values name.
_read_select = lru_cache(maxsize=2048)(read_select)


def _refuse(shape: Shape, reasons: Iterable[tuple[Uses, str]]) -> None:
    for use, construct in reasons:
        if shape.uses & use:
            raise Unsupported(construct)


def qualifiers(shape: Shape) -> set[str]:
    """Return the schema names that qualify the statement's tables, system schemas apart."""
    return {
        table.schema
        for table in shape.tables
        if table.schema is not None and table.schema.lower() not in SYSTEM_SCHEMAS
    }
