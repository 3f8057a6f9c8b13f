"""Where new rows go: an INSERT or REPLACE into a table that a vindex deals out, row by row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import MissingVindexColumn
from streamfrom.proxy.routing.plan_joins import JoinPlanner
from streamfrom.proxy.routing.routes import OneShard, Plan, Route, WriteParts
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import InsertSource, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.routing.row_routing import RowRouting
    from streamfrom.proxy.routing.vschema_tables import VschemaTables


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
        operands = [insert.set[column] for column in rows.columns]
        return Plan(
            find=lambda statement: OneShard(rows.owner(list(map(statement.known, operands))))
        )
    columns = insert.columns or columns_of(table)
    if columns is None:
        raise Unsupported(
            f"{shape.verb} without a column list into sharded table '{table}'; name the columns"
        )
    _require(rows, table, columns)
    positions = [columns.index(column) for column in rows.columns]
    if insert.source is InsertSource.SELECT:
        return JoinPlanner(tables, shape, positions[0]).plan()
    return Plan(find=lambda statement: _split(statement, rows, positions, shards))


def _refuse_subqueries(tables: VschemaTables, shape: Shape) -> None:
    """Raise Unsupported for a subquery that would see the rows of one shard alone."""
    assert shape.insert is not None
    for table in shape.insert.read_beside:
        if not tables.is_reference(table.name):
            raise Unsupported(
                f"a subquery of table '{table.name}' next to the rows of {shape.verb} in a sharded"
                " keyspace"
            )


def _require(rows: RowRouting, table: str, given: Collection[str]) -> None:
    for column in rows.columns:
        if column not in given:
            raise MissingVindexColumn(table, column)


def _split(
    statement: Statement,
    routing: RowRouting,
    positions: Sequence[int],
    shards: tuple[Shard, ...],
) -> Route:
    """Return which shard gets which of the rows of a VALUES list."""
    rows = insert_rows(statement)
    if rows is None:
        raise Unsupported(f"this form of {statement.shape.verb} in a sharded keyspace")
    by_shard: dict[Shard, list[int]] = {}
    for index, values in enumerate(zip(*map(rows.position, positions), strict=True)):
        by_shard.setdefault(routing.owner(values), []).append(index)
    if len(by_shard) == 1:
        return OneShard(next(iter(by_shard)))
    written = [shard for shard in shards if shard in by_shard]
    return WriteParts(
        tuple((shard, rows.select_rows(by_shard[shard])) for shard in written),
        places=tuple(by_shard[shard] for shard in written)
        if statement.shape.uses & Uses.RETURNING
        else (),
    )
