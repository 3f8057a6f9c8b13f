"""What a message table holds: the figures that SQL, JSON and Prometheus show.

They are read off the schedulers on request (`engine.messaging.figures.table_figures`), next to the counters of what has
happened (`engine.messaging.table.counters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.counters import Counters


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """One message table on one shard, as this process sees it at a moment.

    counters: what has happened; these go on counting.
    streams: how many streams cover the shard.
    cached: how many ids are in memory, ready ones among them.
    ready: how many messages in memory could be delivered now, or wait for others of their key.
    is_whole: every unacked message is in memory or in flight, so cached, ready and in_flight are exact.
    in_flight: how many messages were delivered, and are neither acked nor ready again.
    depth: how many rows are unacked and not parked; None while it has not been asked for.
    oldest_ready_ns: since when the message that has waited longest is ready, where that is known.
    is_dispatched: this process sends the shard's messages; otherwise it knows little of them.
    blocked: how many messages wait for their group; `GroupWatch` knows a bounded number of them.
    partitions_overdue: how many partitions should have been dropped or made, as of the last purge.
    set_aside: how many rows the server refuses to write.
    parked: how many rows are parked now; None while that is not known.
    dead_lettered: how many rows the table of the dead letters has; None while that is not known, or without one.
    """

    shard: ShardName
    counters: Counters
    streams: int
    cached: int
    ready: int
    is_whole: bool
    in_flight: int
    depth: int | None
    oldest_ready_ns: int | None
    is_dispatched: bool = True
    blocked: int = 0
    partitions_overdue: int = 0
    parked: int | None = None
    set_aside: int = 0
    dead_lettered: int | None = None

    @property
    def scheduled(self) -> int:
        """Return how many messages in memory are for later. One in flight is a timer, too: its lease ends then."""
        return max(0, self.cached - self.ready - self.blocked - self.in_flight)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One message table, shard by shard.

    streams: how many streams clients of this process have.
    unknown: the shards of which the counters alone are known, as their dispatcher has reported no more.
    unanswered: why figures of other members are missing, a sentence for each member.
    """

    table: MessageTable
    shards: tuple[ShardFigures, ...]
    streams: int
    unknown: frozenset[ShardName] = frozenset()
    unanswered: tuple[str, ...] = ()

    @property
    def counters(self) -> Counters:
        """Return what happened on all shards together."""
        return Counters.total(shard.counters for shard in self.shards)


@dataclass(frozen=True, slots=True)
class SetAsideFigures:
    """A row that its server refuses to write, as the dispatcher of its shard knows it.

    id: as the literal of SQL.
    tried: what was to be written last: claim, lease, ack, return, fire or purge.
    since_ns, next_ns: when it was refused first, and when it is tried again.
    tries: how often it was refused.
    """

    keyspace: str
    queue: str
    shard: ShardName
    id: str
    tried: str
    error: str
    since_ns: int
    next_ns: int
    tries: int


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """One open stream.

    shards: the shards that the stream is narrowed to; None for all.
    opened_ns: when the stream began.
    oldest_unacked_ns: when the first of its unacked messages was delivered.
    prefetch: how many messages the stream may hold; 0 for no limit.
    stalled_since_ns: since when the prefetch is full, if nothing was acked since then.
    window: how many messages of what this process dispatches it may hold, where its prefetch is `auto`; 0 otherwise.
    is_for_member: the client is connected to another member, so the figures are of this process's messages alone.
    """

    table: MessageTable
    connection_id: int
    shards: frozenset[ShardName] | None
    opened_ns: int
    delivered: int
    unacked: int
    oldest_unacked_ns: int | None
    prefetch: int
    stalled_since_ns: int | None
    is_for_member: bool = False
    window: int = 0
