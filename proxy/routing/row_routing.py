"""Which shards have the rows with some values, and which one a new row belongs to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.keyspace import KeyRange, Keyspace, Shard
from streamfrom.engine.sharding.multicolumn_vindex import end_of_range
from streamfrom.engine.sharding.vindex import Vindex
from streamfrom.proxy.errors import BadVindexValue
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import OPAQUE, Opaque, Operand, Shape, Statement, Value
from streamfrom.sqlparse_ext.writes.insert_gaps import keeps_shard


if TYPE_CHECKING:
    from streamfrom.engine.sharding.vschema import ColumnVindex


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
