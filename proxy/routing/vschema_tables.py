"""What the vschema says of tables: who has their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.vindex import Vindex
from streamfrom.proxy.routing.row_routing import RowRouting
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard
    from streamfrom.engine.sharding.vschema import ColumnVindex, TableRouting

# Of these equal values have equal keyspace ids: rows that are equal in the vindex column are on
# one shard. Of strings that is not sure: 'a' = 'A', and their bytes differ.
_KEEPS_EQUALS: Final = frozenset({"hash", "numeric", "reverse_bits"})
_REFERENCE: Final = "reference"


def not_in_vschema(keyspace: Keyspace, name: str, placed_by: ColumnVindex | None = None) -> str:
    """Return that a table is not in the vschema of a sharded keyspace, and what to add to it.

    placed_by: what is to place its rows; None if that is not known.
    """
    vindexes = {} if keyspace.vschema is None else keyspace.vschema.vindexes
    if placed_by is None:
        usable = (each.name for each in vindexes.values() if isinstance(each.vindex, Vindex))
        column, vindex = "id", next(usable, "xxhash")
    else:
        column, vindex = placed_by.columns[0], placed_by.vindex.name
    line = {name: {"column_vindexes": [{"column": column, "name": vindex}]}}
    lines = f"its tables: {json.dumps(line, ensure_ascii=False)[1:-1]}"
    if vindex not in vindexes:
        lines += f', and its vindexes: "{vindex}": {{"type": "{vindex}"}}'
    column_hint = (
        "" if placed_by else f", with the column that places its rows in place of {column}"
    )
    return (
        f"table '{name}' is not in the vschema of keyspace '{keyspace.name}', which is sharded:"
        f" add to {lines}{column_hint}"
    )


class VschemaTables:
    """The tables of one keyspace, as statements reach them.

    Attributes:
        keyspace: the keyspace of the tables.
        shards: the shards in reach: all of them, or those that a target such as `ks:-80` names.
    """

    def __init__(self, keyspace: Keyspace, shards: tuple[Shard, ...]) -> None:
        self.keyspace = keyspace
        self.shards = shards

    def get(self, name: str) -> TableRouting:
        """Return what the vschema says of table *name*. Raises Unsupported where it says nothing."""
        vschema = self.keyspace.vschema
        assert vschema is not None
        routing = vschema.tables.get(name)
        if routing is None:
            raise Unsupported(not_in_vschema(self.keyspace, name))
        return routing

    def is_reference(self, name: str) -> bool:
        """True for a table of which every shard has all rows."""
        return self.get(name).type == _REFERENCE

    def pinned_to(self, name: str) -> Shard | None:
        """Return the one shard that has a pinned table's rows. Raises Unsupported out of reach."""
        pinned = self.get(name).pinned
        if pinned is None:
            return None
        shard = self.keyspace.shard_of(pinned)
        if shard not in self.shards:
            raise Unsupported(
                f"table '{name}' of shard '{shard.name}', which is not in the target; USE the keyspace"
            )
        return shard

    def rows(self, name: str) -> RowRouting:
        """Return how the vindex of table *name* places its rows. Raises Unsupported without one."""
        routing = self.get(name)
        if routing.type:
            raise Unsupported(f"{routing.type} table '{name}'")
        primary = routing.primary
        if primary is None or (
            len(primary.columns) > 1 and isinstance(primary.vindex.vindex, Vindex)
        ):
            raise Unsupported(
                f"table '{name}', whose primary vindex has several columns; USE one shard for it"
            )
        return RowRouting(self.keyspace, self.shards, name, primary)

    def column(self, name: str) -> str:
        """Return the one column that places a row of table *name*. Raises Unsupported for several."""
        columns = self.rows(name).columns
        if len(columns) > 1:
            raise Unsupported(
                f"table '{name}', whose primary vindex has several columns; USE one shard for it"
            )
        return columns[0]

    def equality(self, name: str) -> str | None:
        """Return the vindex type by which equal values of any tables are on one shard.

        None where values that the server takes for equal may be on several.
        """
        primary = self.get(name).primary
        if primary is None or primary.vindex.type not in _KEEPS_EQUALS:
            return None
        return primary.vindex.type
