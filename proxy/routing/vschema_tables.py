"""The tables of the vschema: how their rows are placed, and which shards have rows with given values. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BadVindexValue
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import OPAQUE, Opaque, Shape, Statement, Value
from streamfrom.sqlparse_ext.writes.insert_gaps import keeps_shard


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard
    from streamfrom.engine.sharding.vschema import ColumnVindex, TableRouting


class RowRouting:
    """The placement of the rows of a table whose primary vindex is *primary*. *shards* are those in reach."""

    def __init__(
        self, keyspace: Keyspace, shards: tuple[Shard, ...], table: str, primary: ColumnVindex
    ) -> None:
        self.column = primary.column
        self._form = primary.form
        self._map = primary.vindex.vindex.map  # returns the keyspace id of a row by its value
        self._keyspace = keyspace
        self._shards = shards
        self._table = table

    def shares(self, values: Sequence[Value] | None) -> dict[Shard, list[int]] | None:
        """Return which of some *values* each shard may have rows with, by their numbers; None where only all shards are sure."""
        if values is None:
            return None
        found: dict[Shard, list[int]] = {}
        for number, value in enumerate(values):
            if value is None:
                continue
            equal = self._form.equal(value)
            # Rows that the server finds equal may have any keyspace id; '5abc' = 5 is true for MySQL, and no vindex knows that.
            keyspace_id = None if equal is None else self._map(equal)
            if keyspace_id is None:
                return None
            found.setdefault(self._keyspace.shard_of(keyspace_id), []).append(number)
        return {shard: found[shard] for shard in self._shards if shard in found}

    def owner(self, value: Value | Opaque) -> Shard:
        """Return the shard of a new row. Raises the error for its value."""
        if isinstance(value, Opaque):
            raise Unsupported(
                f"an expression for the vindex column '{self.column}' of table"
                f" '{self._table}'; give its value"
            )
        stored = None if value is None else self._form.stored(value)
        keyspace_id = None if stored is None else self._map(stored)
        if keyspace_id is None:
            raise BadVindexValue(self._table, self.column, value, self._form.hint)
        shard = self._keyspace.shard_of(keyspace_id)
        if shard not in self._shards:
            raise Unsupported(
                f"a row of shard '{shard.name}', which is not in the target; USE the keyspace"
            )
        return shard

    def refuse_changes(self, shape: Shape, statement: Statement | None = None) -> None:
        """Raise Unsupported for a change that may move a row to another shard.

        statement: an UPDATE, whose values may show that no row moves.
        """
        column, form = self.column, self._form
        if column not in shape.assignments:
            return
        if shape.insert is not None and keeps_shard(shape, column):
            return
        if statement is not None:
            new = statement.known(shape.assignments[column])
            old = statement.values(shape.conditions.get(column, (OPAQUE,)))
            stored = None if isinstance(new, Opaque) or new is None else form.stored(new)
            if stored is not None and old and {form.equal(each) for each in old} == {stored}:
                return
        raise Unsupported(
            f"changing the vindex column '{column}'; delete the row, and insert it with the new value"
        )


# Equal values of these have equal keyspace ids: rows that are equal in the vindex column are on
# one shard. For strings that is not certain: 'a' = 'A', but their bytes differ.
_KEEPS_EQUALS: Final = frozenset({"hash", "numeric", "reverse_bits"})
_REFERENCE: Final = "reference"


def not_in_vschema(keyspace: Keyspace, name: str, placed_by: ColumnVindex | None = None) -> str:
    """Return the error text for a table that is not in the vschema of a sharded keyspace, with the entry to add.

    placed_by: the vindex for its rows; None if that is not known.
    """
    vindexes = {} if keyspace.vschema is None else keyspace.vschema.vindexes
    if placed_by is None:
        column, vindex = "id", next(iter(vindexes), "xxhash")
    else:
        column, vindex = placed_by.column, placed_by.vindex.name
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


class NotInVschema(Unsupported):
    """A statement names a table of a sharded keyspace that is not in the vschema, whether or not it exists."""

    def __init__(self, keyspace: Keyspace, table: str) -> None:
        super().__init__(not_in_vschema(keyspace, table))
        self.keyspace = keyspace.name
        self.table = table


class VschemaTables:
    """The tables of one keyspace, as statements reach them."""

    def __init__(self, keyspace: Keyspace, shards: tuple[Shard, ...]) -> None:
        self.keyspace = keyspace  # the keyspace of the tables
        # The shards in reach: all of them, or those that a target such as `ks:-80` names.
        self.shards = shards

    def get(self, name: str) -> TableRouting:
        """Return the vschema's entry for table *name*. Raises NotInVschema if there is none."""
        vschema = self.keyspace.vschema
        assert vschema is not None
        routing = vschema.tables.get(name)
        if routing is None:
            raise NotInVschema(self.keyspace, name)
        return routing

    def is_reference(self, name: str) -> bool:
        """Return whether every shard has all rows of a table."""
        return self.get(name).type == _REFERENCE

    def pinned_to(self, name: str) -> Shard | None:
        """Return the one shard that has a pinned table's rows. Raises Unsupported if it is out of reach."""
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
        if routing.type or routing.primary is None:
            raise Unsupported(f"{routing.type or 'pinned'} table '{name}'")
        return RowRouting(self.keyspace, self.shards, name, routing.primary)

    def column(self, name: str) -> str:
        """Return the column that places a row of table *name*. Raises as `rows`."""
        return self.rows(name).column

    def equality(self, name: str) -> str | None:
        """Return the vindex type by which equal values of any tables are on one shard.

        None if values that the server considers equal may be on several.
        """
        primary = self.get(name).primary
        if primary is None or primary.vindex.type not in _KEEPS_EQUALS:
            return None
        return primary.vindex.type
