"""A vschema together with what the tables say: how their comments shard them (`vt_shard_by`), and their columns' types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamfrom.engine.errors import VindexError
from streamfrom.engine.sharding.multicolumn_vindex import make_any_vindex
from streamfrom.engine.sharding.vindex import Vindex, is_loose
from streamfrom.engine.sharding.vschema import ColumnVindex, TableRouting, VindexSpec, VSchema
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case


def with_queues(
    vschema: VSchema,
    shard_by: Mapping[str, tuple[str, str]],
    types: Mapping[str, Mapping[str, ColumnType]],
) -> VSchema:
    """Return *vschema* with the tables of *shard_by* that it does not name itself, and with the types of vindex columns.

    shard_by: a vindex and a column for each table. A vindex that there is not leaves its table out.
    types: the types of columns, in lower case, of each table of which they are known.
    """
    tables = dict(vschema.tables)
    for name, (vindex, column) in shard_by.items():
        spec = vindex_of(vschema.vindexes, vindex)
        if name not in vschema.tables and spec is not None:
            tables[name] = TableRouting(name, "", (placed_by(spec, column, None),), None, None)
    for name, columns in types.items():
        routing = tables.get(name)
        if routing is None or not routing.column_vindexes:
            continue
        first, *others = routing.column_vindexes
        if name in vschema.tables:
            known = tuple(map(columns.get, first.columns))
            first = replace(first, types=known)
        else:
            (column,) = first.columns
            first = placed_by(first.vindex, column, columns.get(column))
        tables[name] = replace(routing, column_vindexes=(first, *others))
    return replace(vschema, tables=tables) if tables != vschema.tables else vschema


def placed_by(spec: VindexSpec, column: str, column_type: ColumnType | None) -> ColumnVindex:
    """Return how a queue whose own comment shards it places its rows."""
    folds = column_type is not None and (is_loose(spec.vindex) or not folds_case(column_type))
    return ColumnVindex((column.lower(),), spec, (column_type,), folds)


def vindex_of(vindexes: Mapping[str, VindexSpec], name: str) -> VindexSpec | None:
    """Return the vindex of one column that *vindexes* call *name*, or whose type that is; else None."""
    known = vindexes.get(name)
    if known is None:
        try:
            known = VindexSpec(name, name, {}, "", make_any_vindex(name, {}))
        except VindexError:
            return None
    return known if isinstance(known.vindex, Vindex) else None
