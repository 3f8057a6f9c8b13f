"""What the vschema says of tables: who has their rows, and which shards have those with some values. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.keyspace import KeyRange, Keyspace, Shard
from streamfrom.engine.sharding.vindex import Vindex, end_of_range
from streamfrom.proxy.errors import BadVindexValue
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import OPAQUE, Opaque, Operand, Shape, Statement, Value
from streamfrom.sqlparse_ext.writes.insert_gaps import keeps_shard


if TYPE_CHECKING:
    from streamfrom.engine.sharding.vschema import ColumnVindex, TableRouting


# So many combinations of values of several columns are looked at; more go to all shards.
_COMBINATIONS_MAX: Final = 1000


class RowRouting:
    """Where the rows of a table are whose primary vindex is *primary*. *shards* are those in reach."""

    def __init__(
        self, keyspace: Keyspace, shards: tuple[Shard, ...], table: str, primary: ColumnVindex
    ) -> None:
        vindex = primary.vindex.vindex
        self.columns = primary.columns
        self._forms = primary.forms
        self._keyspace = keyspace
        self._shards = shards
        self._table = table
        # The keyspace id of a row, or what the ids begin with that the first columns' values give.
        self._prefix: Callable[[Sequence[Value]], bytes | None]
        if isinstance(vindex, Vindex):
            single = vindex.map
            self._prefix = lambda values: single(values[0])
        else:
            self._prefix = vindex.prefix

    def given(self, shape: Shape) -> tuple[tuple[Operand, ...], ...]:
        """Return the conditions on the first columns, as many as have one without a gap."""
        found = []
        for column in self.columns:
            operands = shape.conditions.get(column)
            if operands is None:
                break
            found.append(operands)
        return tuple(found)

    def shares(self, given: Sequence[Sequence[Value] | None]) -> dict[Shard, list[int]] | None:
        """Return which combinations of values each shard may have rows with, by their numbers.

        given: the values of the first columns. None where only all shards are sure.
        """
        columns = []
        for form, values in zip(self._forms, given, strict=False):
            if values is None:
                return None
            equal = [None if value is None else form.equal(value) for value in values]
            if equal.count(None) > values.count(None):
                # Rows that the server finds equal may have any keyspace id.
                return None
            columns.append(equal)
        if len(columns) > 1 and prod(map(len, columns)) > _COMBINATIONS_MAX:
            return None
        is_whole = len(columns) == len(self.columns)
        found: dict[Shard, list[int]] = {}
        for number, row in enumerate(product(*columns)):
            if None in row:
                continue
            prefix = self._prefix(row)
            if prefix is None:
                # '5abc' = 5 is true for MySQL, and no vindex knows that.
                return None
            if is_whole:
                found.setdefault(self._keyspace.shard_of(prefix), []).append(number)
                continue
            for shard in self._shards_of(prefix):
                found.setdefault(shard, []).append(number)
        return {shard: found[shard] for shard in self._shards if shard in found}

    def owner(self, values: Sequence[Value | Opaque]) -> Shard:
        """Return the shard of a new row. Raises what is wrong with one of its values."""
        usable: list[Value] = []
        keyspace_id = None
        for column, form, value in zip(self.columns, self._forms, values, strict=True):
            if isinstance(value, Opaque):
                raise Unsupported(
                    f"an expression for the vindex column '{column}' of table"
                    f" '{self._table}'; give its value"
                )
            stored = None if value is None else form.stored(value)
            if stored is not None:
                usable.append(stored)
                keyspace_id = self._prefix(usable)
            if stored is None or keyspace_id is None:
                raise BadVindexValue(self._table, column, value, form.hint)
        assert keyspace_id is not None
        shard = self._keyspace.shard_of(keyspace_id)
        if shard not in self._shards:
            raise Unsupported(
                f"a row of shard '{shard.name}', which is not in the target; USE the keyspace"
            )
        return shard

    def refuse_changes(self, shape: Shape, statement: Statement | None = None) -> None:
        """Raise Unsupported for what may move a row to another shard.

        statement: one of an UPDATE's, whose values may show that it moves none.
        """
        for form, column in zip(self._forms, self.columns, strict=True):
            if column not in shape.assignments:
                continue
            if shape.insert is not None and keeps_shard(shape, column):
                continue
            if statement is not None:
                new = statement.known(shape.assignments[column])
                old = statement.values(shape.conditions.get(column, (OPAQUE,)))
                stored = None if isinstance(new, Opaque) or new is None else form.stored(new)
                if (
                    stored is not None
                    and old
                    and {form.equal(each) for each in old} == {stored}
                ):
                    continue
            raise Unsupported(
                f"changing the vindex column '{column}'; delete the row, and insert it with the new value"
            )

    def _shards_of(self, prefix: bytes) -> Sequence[Shard]:
        """Return the shards of all keyspace ids that begin with *prefix*."""
        wanted = KeyRange(prefix, end_of_range(prefix))
        return [
            shard
            for shard in self._keyspace.shards
            if shard.key_range is None or shard.key_range.meets(wanted)
        ]


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


class NotInVschema(Unsupported):
    """A statement names a table of a sharded keyspace that the vschema does not know, if there is such a table."""

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
        """Return what the vschema says of table *name*. Raises NotInVschema where it says nothing."""
        vschema = self.keyspace.vschema
        assert vschema is not None
        routing = vschema.tables.get(name)
        if routing is None:
            raise NotInVschema(self.keyspace, name)
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
