"""The gauges of a message table that SQL, JSON and Prometheus show.

They are read from the schedulers on request, together with the counters (`engine.messaging.table.counters`). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.counters import Counters


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.dispatch.table_state import TableState
    from streamfrom.engine.messaging.table.message import MessageKey
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.upkeep.depths import Depth
    from streamfrom.engine.sharding.keyspace import ShardName


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """One message table on one shard, as this process sees it now.

    counters: the live counters of the shard.
    streams: how many streams cover the shard.
    cached: how many ids are in memory, ready ones among them.
    ready: how many messages in memory could be delivered now, or wait for others of their key.
    is_whole: every unacked message is in memory or in flight, so cached, ready and in_flight are exact.
    in_flight: how many messages were delivered, and are neither acked nor ready again.
    depth: how many rows are unacked and not parked; None until it was queried.
    oldest_ready_ns: since when the message that has waited longest is ready, if that is known.
    is_dispatched: this process sends the shard's messages; otherwise it knows little of them.
    blocked: how many messages wait for their group; `GroupWatch` knows a bounded number of them.
    partitions_overdue: how many partitions should have been dropped or made, as of the last purge.
    set_aside: how many rows the server refuses to write.
    parked: how many rows are parked now; None while that is not known.
    dead_lettered: how many rows the dead letter table has; None while that is not known, or without one.
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
        """Return how many messages in memory are due later. One in flight counts too: its lease ends then."""
        return max(0, self.cached - self.ready - self.blocked - self.in_flight)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One message table, shard by shard.

    streams: how many streams clients of this process have.
    unknown: the shards of which only the counters are known, because their dispatcher has not reported.
    unanswered: why figures of other members are missing, a sentence for each member.
    """

    table: MessageTable
    shards: tuple[ShardFigures, ...]
    streams: int
    unknown: frozenset[ShardName] = frozenset()
    unanswered: tuple[str, ...] = ()

    @property
    def counters(self) -> Counters:
        """Return the sum over all shards."""
        return Counters.total(shard.counters for shard in self.shards)


@dataclass(frozen=True, slots=True)
class SetAsideFigures:
    """A row that its server refuses to write, as the dispatcher of its shard knows it.

    id: as the literal of SQL.
    tried: the last kind of write: claim, lease, ack, return, fire or purge.
    error, since_ns, next_ns, tries: as in `engine.messaging.gates.set_aside.SetAsideRow`.
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
    window: how many messages from this dispatcher it may hold, if its prefetch is `auto`; 0 otherwise.
    is_for_member: the client is connected to another member, so the figures are only of this process's messages.
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


# The most rows set aside that are listed per shard.
LISTED_MAX: Final = 1000


def queue_figures(
    state: TableState, depths: Mapping[ShardName, Depth], now_ns: int
) -> QueueFigures:
    """Return the gauges of *state*. For shards that are only partly in memory, use *depths*, the servers' counts."""
    return QueueFigures(
        state.table,
        tuple(_shard_figures(shard, depths.get(shard.name), now_ns) for shard in state.shards),
        sum(not receiver.is_for_member for receiver in state.receivers.attached.values()),
    )


def is_known_whole(shard: ShardState) -> bool:
    """Return whether memory has every unacked message of a shard, as of the last poll."""
    is_ordered = shard.order is not None  # memory has a follower for a key in flight
    return (
        shard.is_dispatched and shard.receivers > 0 and shard.queue.is_whole and not is_ordered
    )


def _shard_figures(shard: ShardState, asked: Depth | None, now_ns: int) -> ShardFigures:
    is_whole = is_known_whole(shard)
    in_memory = shard.queue.parked
    depth, parked, letters = (None, None, None) if asked is None else asked
    if is_whole:
        depth = len(shard.queue) + shard.queue.in_flight - in_memory
        parked = in_memory
    behind = () if shard.order is None else shard.order.waiting()
    return ShardFigures(
        shard=shard.name,
        counters=shard.counters,
        streams=shard.receivers,
        cached=len(shard.queue) - in_memory + len(behind),
        ready=shard.queue.due(now_ns, at_most=len(shard.queue)) + len(behind),
        is_whole=is_whole,
        in_flight=len(shard.leases),
        depth=depth,
        oldest_ready_ns=_oldest_ready_ns(shard, behind, now_ns),
        is_dispatched=shard.is_dispatched,
        blocked=len(shard.groups),
        partitions_overdue=shard.partitions_overdue if shard.is_dispatched else 0,
        set_aside=len(shard.set_aside),
        parked=parked,
        dead_lettered=letters,
    )


def _oldest_ready_ns(
    shard: ShardState, behind: Collection[MessageKey], now_ns: int
) -> int | None:
    """Return since when the first known message waits. *behind*: messages that wait for their keys."""
    queue, following = shard.queue, shard.queue.following
    moments = [
        shard.counters.oldest_new_ns(
            lambda ident: ident in queue or ident in following,
            is_ordered=shard.order is not None,
        ),
        queue.first_timed_ns(),
        *(one.time_next_ns or None for one in behind),
    ]
    return min((ns for ns in moments if ns is not None and ns <= now_ns), default=None)


def set_aside_figures(state: TableState) -> list[SetAsideFigures]:
    """Return the rows of a table that servers refuse to write, at most LISTED_MAX per shard, the first refused at the front."""
    table = state.table
    return [
        SetAsideFigures(
            table.keyspace,
            table.name,
            shard.name,
            ident.decode(errors="replace"),
            **asdict(row),
        )
        for shard in state.shards
        for ident, row in islice(shard.set_aside.rows.items(), LISTED_MAX)
    ]


def stream_figures(state: TableState, connection_ids: Mapping[int, int]) -> list[StreamFigures]:
    """Return the open streams of a table; *connection_ids* are those of their clients, by receiver."""
    found = []
    for receiver in state.receivers.attached.values():
        since_ns = [shard.leases.since_ns(receiver.id) for shard in state.shards]
        is_served = any(one.is_dispatched and receiver.covers(one.name) for one in state.shards)
        found.append(
            StreamFigures(
                table=state.table,
                connection_id=connection_ids.get(receiver.id, 0),
                shards=receiver.shards,
                opened_ns=receiver.opened_ns,
                delivered=receiver.sent,
                unacked=receiver.held,
                oldest_unacked_ns=min((ns for ns in since_ns if ns is not None), default=None),
                prefetch=receiver.limit,
                # Kept beyond a lease's end: a stream that is given as much again has still acked nothing.
                stalled_since_ns=None if receiver.room else receiver.full_since_ns,
                is_for_member=receiver.is_for_member,
                window=receiver.limit if receiver.window is not None and is_served else 0,
            )
        )
    return found
