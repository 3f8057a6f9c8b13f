"""Sequences: which one a name means, and the values left in a block of it. Pure.

A sequence is a table with the comment `vitess_sequence` and one row: id 0, `next_id`, the first
value that is not reserved, and `cache`, how many are reserved at a time. The rules and the
error texts are those of Vitess's tablets (`query_executor.go`, execNextval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import SequenceError, VschemaError


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard


MARK: Final = "vitess_sequence"  # in the comment of its table
_TYPE: Final = "sequence"


@dataclass(frozen=True, slots=True)
class SequencePlace:
    """A sequence: its keyspace, the shard with its row, its table."""

    keyspace: Keyspace
    shard: Shard
    table: str

    def __str__(self) -> str:
        return f"{self.keyspace.name}.{self.table}"


def resolve(name: str, home: Keyspace, keyspaces: Mapping[str, Keyspace]) -> SequencePlace:
    """Return the sequence that *name*, `table` or `keyspace.table`, means in the vschema of *home*.

    Without a keyspace it is a sequence of *home* or else of the only keyspace that has one.

    Raises:
        VschemaError: there is none, or several, or it has no shard of its own.
    """
    keyspace_name, dot, table = name.rpartition(".")
    if dot:
        keyspace = keyspaces.get(keyspace_name)
        if keyspace is None:
            raise _unresolved(name, f"VT05003: unknown database '{keyspace_name}' in vschema")
        return place_of(keyspace, table, name)
    found = [keyspace for keyspace in keyspaces.values() if _has(keyspace, table)]
    if home in found or not home.sharded:
        return place_of(home, table, name)
    if len(found) > 1:
        raise _unresolved(name, f"ambiguous table reference: {table}")
    if not found:
        raise _unresolved(name, f"table {table} not found")
    return place_of(found[0], table, name)


def place_of(keyspace: Keyspace, table: str, name: str) -> SequencePlace:
    """Return the sequence *table* of *keyspace*; VschemaError if it has no shard of its own."""
    if not keyspace.sharded:
        return SequencePlace(keyspace, keyspace.shards[0], table)
    assert keyspace.vschema is not None
    routing = keyspace.vschema.tables.get(table)
    if routing is None or routing.type != _TYPE or routing.pinned is None:
        raise _unresolved(name, f"table {table} not found")
    return SequencePlace(keyspace, keyspace.shard_of(routing.pinned), table)


def _has(keyspace: Keyspace, table: str) -> bool:
    tables = {} if keyspace.vschema is None else keyspace.vschema.tables
    return table in tables and tables[table].type == _TYPE


def _unresolved(name: str, reason: str) -> VschemaError:
    return VschemaError(f"cannot resolve sequence {name}: {reason}")


@dataclass(frozen=True, slots=True)
class SequenceBlock:
    """Reserved values that are still free: from *next_value* up to, and without, *end*."""

    next_value: int = 0
    end: int = 0

    def has(self, count: int) -> bool:
        """True when *count* consecutive values are left."""
        return self.next_value + count <= self.end

    def without(self, count: int) -> SequenceBlock:
        """Return the block without its first *count* values."""
        return SequenceBlock(self.next_value + count, self.end)


def check_increment(table: str, count: int) -> None:
    """Raise SequenceError if *count* is below one."""
    if count < 1:
        raise SequenceError(f"invalid increment for sequence {table}: {count}")


def extend(
    table: str, block: SequenceBlock, rows: Sequence[tuple[object, object]], count: int
) -> SequenceBlock:
    """Return *block* with *count* values or more; its end is the sequence's new `next_id`.

    *rows* are (next_id, cache) of the table's row, read for update. The rest of *block* stays in use
    if no other process has reserved values since.

    Raises:
        SequenceError: there is no such row, or its values are unusable.
    """
    if len(rows) != 1:
        raise SequenceError(
            f"unexpected rows from reading sequence {table} (possible mis-route): {len(rows)}"
        )
    ((next_id, cache),) = rows
    if not isinstance(cache, int) or cache < 1:
        raise SequenceError(f"invalid cache value for sequence {table}: {cache}")
    if not isinstance(next_id, int):
        raise SequenceError(f"error loading sequence {table}: next_id is {next_id}")
    if next_id != block.end:
        # If next_id was set back, values may be in use already.
        start = max(next_id, block.end)
        block = SequenceBlock(start, start)
    missing = block.next_value + count - block.end
    # Whole caches, one at least: with a cache of 100, 250 missing values reserve 300.
    return SequenceBlock(block.next_value, block.end + -(-max(missing, 1) // cache) * cache)
