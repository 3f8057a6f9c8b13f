"""A vschema together with the tables whose own comments say how they are sharded (`vt_shard_by`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.errors import VindexError
from streamfrom.engine.sharding.multicolumn_vindex import is_multi_column, make_any_vindex
from streamfrom.engine.sharding.vschema import ColumnVindex, TableRouting, VindexSpec


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.engine.sharding.vschema import VSchema


def with_queues(vschema: VSchema, shard_by: Mapping[str, tuple[str, str]]) -> VSchema:
    """Return *vschema* with the tables of *shard_by* that it does not name itself.

    shard_by: a vindex and a column for each table. A vindex that there is not leaves its table out.
    """
    added = {}
    for name, (vindex, column) in shard_by.items():
        spec = vindex_of(vschema.vindexes, vindex)
        if name not in vschema.tables and spec is not None:
            by = ColumnVindex((column.lower(),), spec)
            added[name] = TableRouting(name, "", (by,), None, None)
    return replace(vschema, tables={**vschema.tables, **added}) if added else vschema


def vindex_of(vindexes: Mapping[str, VindexSpec], name: str) -> VindexSpec | None:
    """Return the vindex of one column that *vindexes* call *name*, or whose type that is; else None."""
    known = vindexes.get(name)
    if known is None:
        try:
            known = VindexSpec(name, name, {}, "", make_any_vindex(name, {}))
        except VindexError:
            return None
    return None if is_multi_column(known.vindex) else known
