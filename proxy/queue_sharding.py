"""Routing by what the comments of message tables say (`vt_shard_by`), beside the vschema files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.message_table import MessageTable
from streamfrom.engine.sharding.queue_vschema import with_queues


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.sharding.keyspace import Keyspace


class QueueSharding:
    """Puts keyspaces into force whose vschemas name the queues as well that are sharded by their comments.

    keyspaces: as their vschema files say.
    tables: returns the message tables of a keyspace.
    apply: puts a keyspace into force.
    """

    def __init__(
        self,
        keyspaces: Iterable[Keyspace],
        tables: Callable[[str], Mapping[str, MessageTable | TableLoadError]],
        apply: Callable[[Keyspace], None],
    ) -> None:
        self._keyspaces = {keyspace.name: keyspace for keyspace in keyspaces}
        self._tables = tables
        self._apply = apply
        self._in_force: dict[str, dict[str, tuple[str, str]]] = {}

    def vschema_changed(self, keyspace: Keyspace) -> None:
        """Take in *keyspace* as its file says now."""
        self._keyspaces[keyspace.name] = keyspace
        self._put(keyspace, self._in_force.get(keyspace.name, {}))

    def tables_changed(self, name: str) -> None:
        """Take in that message tables of keyspace *name* are others now."""
        shard_by = {
            table: loaded.properties.shard_by
            for table, loaded in self._tables(name).items()
            if isinstance(loaded, MessageTable) and loaded.properties.shard_by is not None
        }
        if shard_by != self._in_force.get(name, {}):
            self._in_force[name] = shard_by
            self._put(self._keyspaces[name], shard_by)

    def _put(self, keyspace: Keyspace, shard_by: Mapping[str, tuple[str, str]]) -> None:
        vschema = keyspace.vschema
        if vschema is not None and vschema.sharded:
            keyspace = replace(keyspace, vschema=with_queues(vschema, shard_by))
        self._apply(keyspace)
