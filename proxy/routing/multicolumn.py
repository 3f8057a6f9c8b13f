"""Rows that several columns place: which shards their values, or the first of them, name. Pure."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.keyspace import KeyRange
from streamfrom.engine.sharding.multicolumn_vindex import end_of_range
from streamfrom.proxy.errors import BadVindexValue
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Number, Opaque


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.sharding.keyspace import Keyspace, Shard
    from streamfrom.engine.sharding.multicolumn_vindex import MultiColumnVindex
    from streamfrom.sqlparse_ext.statements import Operand, Shape, Statement, Value


# So many combinations of values are looked at; more go to all shards.
_COMBINATIONS_MAX: Final = 1000


class MultiColumnRouting:
    """Where the rows of a table are whose primary vindex reads several *columns*. *shards* are those in reach."""

    def __init__(
        self,
        keyspace: Keyspace,
        shards: tuple[Shard, ...],
        table: str,
        columns: tuple[str, ...],
        vindex: MultiColumnVindex,
    ) -> None:
        self._keyspace = keyspace
        self._shards = shards
        self._table = table
        self._vindex = vindex
        self.columns = columns

    def given(self, shape: Shape) -> tuple[tuple[Operand, ...], ...]:
        """Return the conditions on the first columns, as many as have one without a gap."""
        found = []
        for column in self.columns:
            operands = shape.conditions.get(column)
            if operands is None:
                break
            found.append(operands)
        return tuple(found)

    def shards(
        self, statement: Statement, given: Sequence[Sequence[Operand]]
    ) -> tuple[Shard, ...] | None:
        """Return the shards that may have rows with these values; None when only all are sure."""
        columns: list[list[Value]] = []
        combinations = 1
        for operands in given:
            values = statement.values(operands)
            if values is None or any(isinstance(value, Number) for value in values):
                return None
            columns.append([value for value in values if value is not None])
            combinations *= len(columns[-1])
        if combinations > _COMBINATIONS_MAX:
            return None
        found: set[Shard] = set()
        for row in product(*columns):
            prefix = self._vindex.prefix(row)
            if prefix is None:
                # '5abc' = 5 is true for MySQL, and no vindex knows that.
                return None
            found |= self._owners(prefix, is_whole=len(row) == len(self.columns))
        return tuple(shard for shard in self._shards if shard in found)

    def owner(self, values: Sequence[Value | Opaque]) -> Shard:
        """Return the shard of a new row. Raises what is wrong with one of its values."""
        usable: list[Value] = []
        for column, value in zip(self.columns, values, strict=True):
            if isinstance(value, Opaque):
                raise Unsupported(
                    f"an expression for the vindex column '{column}' of table"
                    f" '{self._table}'; give its value"
                )
            if value is None or isinstance(value, Number):
                raise BadVindexValue(self._table, column, value)
            usable.append(value)
            if self._vindex.prefix(usable) is None:
                raise BadVindexValue(self._table, column, value)
        keyspace_id = self._vindex.prefix(usable)
        assert keyspace_id is not None
        shard = self._keyspace.shard_of(keyspace_id)
        if shard not in self._shards:
            raise Unsupported(f"a row of shard '{shard.name}', which is not in the target")
        return shard

    def _owners(self, prefix: bytes, *, is_whole: bool) -> set[Shard]:
        if is_whole:
            return {self._keyspace.shard_of(prefix)}
        wanted = KeyRange(prefix, end_of_range(prefix))
        return {
            shard
            for shard in self._keyspace.shards
            if shard.key_range is None or shard.key_range.meets(wanted)
        }
