"""What the vschema says of tables and their values: who owns a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from streamfrom.engine.sharding.multicolumn_vindex import is_multi_column
from streamfrom.engine.sharding.vindex import is_of_strings
from streamfrom.proxy.errors import BadVindexValue
from streamfrom.proxy.routing.multicolumn import MultiColumnRouting
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import OPAQUE, Number


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard
    from streamfrom.engine.sharding.vindex import Vindex
    from streamfrom.engine.sharding.vschema import TableRouting
    from streamfrom.sqlparse_ext.statements import Opaque, Value

# Of these equal values have equal keyspace ids: rows that are equal in the vindex column are on
# one shard. Of strings that is not sure: 'a' = 'A', and their bytes differ.
_KEEPS_EQUALS: Final = frozenset({"hash", "numeric", "reverse_bits"})
_REFERENCE: Final = "reference"


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
            raise Unsupported(
                f"table '{name}' is not in the vschema of keyspace '{self.keyspace.name}',"
                " which is sharded"
            )
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
                f"table '{name}' of shard '{shard.name}', which is not in the target"
            )
        return shard

    def routing(self, name: str) -> tuple[str, Vindex]:
        """Return the column that decides the shard of a row of table *name*, and how."""
        routing = self.get(name)
        if routing.type:
            raise Unsupported(f"{routing.type} table '{name}'")
        primary = routing.primary
        if primary is None or len(primary.columns) > 1:
            raise Unsupported(f"table '{name}', whose primary vindex has several columns")
        vindex = primary.vindex.vindex
        if is_multi_column(vindex):
            raise Unsupported(f"table '{name}', whose primary vindex has several columns")
        return primary.columns[0], cast("Vindex", vindex)

    def several(self, name: str) -> MultiColumnRouting | None:
        """Return how several columns place a row of table *name*, None where one does."""
        routing = self.get(name)
        primary = routing.primary
        if routing.type or primary is None:
            return None
        vindex = primary.vindex.vindex
        if not is_multi_column(vindex):
            return None
        return MultiColumnRouting(self.keyspace, self.shards, name, primary.columns, vindex)

    def equality(self, name: str) -> str | None:
        """Return the vindex type by which equal values of any tables are on one shard.

        None where values that the server takes for equal may be on several.
        """
        primary = self.get(name).primary
        if primary is None or primary.vindex.type not in _KEEPS_EQUALS:
            return None
        return primary.vindex.type

    def shares(
        self, vindex: Vindex, values: list[Value] | None
    ) -> dict[Shard, list[int]] | None:
        """Return which of *values* each shard owns; None when only all shards are sure."""
        if values is None:
            return None
        unknown = (Number, int) if is_of_strings(vindex) else Number
        found: dict[Shard, list[int]] = {}
        for index, value in enumerate(values):
            if value is None:
                continue
            keyspace_id = None if isinstance(value, unknown) else vindex.map(value)
            if keyspace_id is None:
                # '5abc' = 5 is true for MySQL, and no vindex knows that.
                return None
            found.setdefault(self.keyspace.shard_of(keyspace_id), []).append(index)
        return {shard: found[shard] for shard in self.shards if shard in found}

    def owner(self, name: str, value: Value | Opaque) -> Shard:
        """Return the shard of a new row of table *name*. Raises what is wrong with *value*."""
        column, vindex = self.routing(name)
        if value is OPAQUE:
            raise Unsupported(
                f"an expression for the vindex column '{column}' of table '{name}';"
                " give its value"
            )
        usable = value is not None and not isinstance(value, Number)
        keyspace_id = vindex.map(value) if usable else None
        if keyspace_id is None:
            raise BadVindexValue(name, column, value)
        shard = self.keyspace.shard_of(keyspace_id)
        if shard not in self.shards:
            raise Unsupported(f"a row of shard '{shard.name}', which is not in the target")
        return shard
