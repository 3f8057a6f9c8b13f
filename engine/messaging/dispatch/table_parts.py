"""The state that the parts of a table's scheduler share (`engine.messaging.dispatch.table_state`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.dispatch.events import ReportSetAside
from streamfrom.engine.messaging.dispatch.receivers import Receivers
from streamfrom.engine.messaging.order.key_order import KeyOrder
from streamfrom.engine.messaging.streams.stream_order import Streams


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import Action
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.table.message import Refusals
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


@dataclass(slots=True)
class TableParts:
    """One message table, its shards, its streams, and the actions of an event.

    table: as it is scheduled now.
    streams: the messages of each of its streams, in order.
    grace_ns: how long a stream survives a shard that fails without a break.
    actions: the actions so far for the event being handled.
    """

    table: MessageTable
    grace_ns: int
    shards: dict[ShardName, ShardState]
    streams: Streams = field(default_factory=Streams)
    receivers: Receivers = field(init=False)
    actions: list[Action] = field(default_factory=list)
    _numbers: int = 0

    def __post_init__(self) -> None:
        self.receivers = Receivers(self.shards)

    def limit_shards(self, now_ns: int | None = None) -> None:
        """Set how much each shard may send, and whether messages wait for groups."""
        properties = self.table.properties
        self.streams.wait_ns = properties.ack_wait_ns
        self.streams.attached = self.receivers.attached
        for index, shard in enumerate(self.shards.values()):
            shard.groups.configure(is_on=self.table.groups is not None)
            shard.early_acks.is_on = properties.acks_early
            self._set_order(shard)
            shard.gates.configure(properties, len(self.shards), index, now_ns)

    def _set_order(self, shard: ShardState) -> None:
        """Start or stop ordering messages; if that does not change, the known state stays."""
        in_order = self.table.properties.in_order
        if shard.order is not None and (shard.order.in_order, shard.order.key) == (
            in_order,
            self.table.key_column,
        ):
            return
        if shard.order is not None:
            shard.order.clear()
            shard.polls.wanted = True
        shard.order = None
        if in_order is not None:
            shard.order = KeyOrder(in_order, shard.queue, self.table.key_column)
        order = shard.order
        shard.gates.strict = order.closed_ns if order is not None and order.is_strict else None

    def refuse(self, shard: ShardState, refused: Refusals, now_ns: int) -> Mapping[bytes, int]:
        """Set rows aside that the server of a shard refuses to write; return when to try each again."""
        if not refused:
            return {}
        if new := shard.set_aside.refuse(refused, now_ns):
            self.actions.append(ReportSetAside(shard.name, tuple(new), len(shard.set_aside)))
        return {ident: shard.set_aside.next_ns(ident, now_ns) for ident in refused}

    def number(self) -> int:
        """Return a number that no claim or release has had."""
        self._numbers += 1
        return self._numbers
