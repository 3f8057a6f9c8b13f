"""Routing by what the comments of message tables say (`vt_shard_by`), in addition to the vschema files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.queue_vschema import with_queues


if TYPE_CHECKING:
    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.stored_forms import ColumnType

    _ShardBy = Mapping[str, tuple[str, str]]
    _Types = Mapping[str, Mapping[str, ColumnType]]


class QueueSharding:
    """Puts keyspaces into force whose vschemas know the tables: the queues that their comments shard, and columns' types.

    keyspaces: as their vschema files say.
    tables: returns the message tables of a keyspace.
    types: returns the types of the columns of a keyspace's tables.
    apply: puts a keyspace into force.
    """

    def __init__(
        self,
        keyspaces: Iterable[Keyspace],
        tables: Callable[[str], Mapping[str, MessageTable | TableLoadError]],
        types: Callable[[str], Mapping[str, Mapping[str, ColumnType]]],
        apply: Callable[[Keyspace], None],
    ) -> None:
        self._keyspaces = {keyspace.name: keyspace for keyspace in keyspaces}
        self._tables = tables
        self._types = types
        self._apply = apply
        # What the vschema in force was made of, besides its file.
        self._in_force: dict[str, tuple[_ShardBy, _Types]] = {}

    def vschema_changed(self, keyspace: Keyspace) -> None:
        """Take in *keyspace* as its file says now."""
        self._keyspaces[keyspace.name] = keyspace
        self._put(keyspace, *self._in_force.get(keyspace.name, ({}, {})))

    def tables_changed(self, name: str) -> None:
        """Take in that tables of keyspace *name* are others now."""
        shard_by = {
            table: loaded.properties.shard_by
            for table, loaded in self._tables(name).items()
            if isinstance(loaded, MessageTable) and loaded.properties.shard_by is not None
        }
        keyspace = self._keyspaces[name]
        placed = shard_by.keys() | (keyspace.vschema.tables if keyspace.vschema else {})
        types = {table: each for table, each in self._types(name).items() if table in placed}
        known = shard_by, types
        if known != self._in_force.get(name, ({}, {})):
            self._in_force[name] = known
            self._put(keyspace, *known)

    def _put(self, keyspace: Keyspace, shard_by: _ShardBy, types: _Types) -> None:
        vschema = keyspace.vschema
        if vschema is not None and vschema.sharded:
            keyspace = replace(keyspace, vschema=with_queues(vschema, shard_by, types))
        self._apply(keyspace)
