"""Merges the reports of a fleet's members. Pure.

Counts of events are added up, by bucket if they are times. A shard's queue figures come from the member that
dispatches the shard, because only it knows them. A stream is reported by the member that its client is connected to,
with the counts of sent and unacknowledged messages from its shards' dispatchers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.counters import Counters


if TYPE_CHECKING:
    from streamfrom.engine.messaging.figures.figures import (
        QueueFigures,
        SetAsideFigures,
        ShardFigures,
    )
    from streamfrom.proxy.status.status_rows import (
        MemberStatus,
        ShardStatus,
        StreamStatus,
        Unanswered,
    )


@dataclass(frozen=True, slots=True)
class QueueAtMember:
    """Another member's report of a queue."""

    keyspace: str
    table: str
    streams: int  # its own clients' streams
    # The shards that it dispatches, and those with events that it caused.
    shards: tuple[ShardFigures, ...]


@dataclass(frozen=True, slots=True)
class MemberFigures:
    """Another member's report; parts that were not requested are empty."""

    member: MemberStatus
    queues: tuple[QueueAtMember, ...] = ()
    streams: tuple[StreamStatus, ...] = ()
    shards: tuple[ShardStatus, ...] = ()
    set_aside: tuple[SetAsideFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class MembersFigures:
    """The reports of all other members."""

    answers: tuple[MemberFigures, ...] = ()  # in the order of the members' ids
    unanswered: tuple[Unanswered, ...] = ()  # members that report nothing

    @property
    def has_gap(self) -> bool:
        """Return whether a member did not answer that has an address; one without never answers."""
        return any(each.address for each in self.unanswered)

    def parts(self) -> dict[tuple[str, str], list[QueueAtMember]]:
        """Return the members' reports of each queue, by keyspace and table."""
        parts: dict[tuple[str, str], list[QueueAtMember]] = {}
        for answer in self.answers:
            for part in answer.queues:
                parts.setdefault((part.keyspace, part.table), []).append(part)
        return parts


def merged_queue(
    own: QueueFigures, parts: Sequence[QueueAtMember], unanswered: Iterable[Unanswered]
) -> QueueFigures:
    """Return a queue's figures over all members; *own* are the figures of this process."""
    missing = tuple(str(each) for each in unanswered)
    if not parts and not missing:
        return own
    told: dict[str, list[ShardFigures]] = {}
    for part in parts:
        for shard in part.shards:
            told.setdefault(shard.shard, []).append(shard)
    shards = [_merged_shard(shard, told.get(shard.shard, [])) for shard in own.shards]
    return replace(
        own,
        shards=tuple(shards),
        streams=own.streams + sum(part.streams for part in parts),
        unknown=frozenset(s.shard for s in shards if missing and not s.is_dispatched),
        unanswered=missing,
    )


def _merged_shard(own: ShardFigures, told: Sequence[ShardFigures]) -> ShardFigures:
    known = own, *told
    dispatcher = next((each for each in known if each.is_dispatched), own)
    # If the dispatcher does not hold all rows in memory, any member may query the shard for the depth;
    # every member that does not hold them all queries the shard for the parked messages.
    depth = own.depth if dispatcher.depth is None else dispatcher.depth
    return replace(
        dispatcher,
        counters=Counters.total(each.counters for each in known),
        depth=depth,
        parked=own.parked,
        dead_lettered=own.dead_lettered,
    )


def merged_streams(told: Iterable[StreamStatus]) -> list[StreamStatus]:
    """Return the streams whose clients are known, each with its dispatchers' figures."""
    found: dict[tuple[int, str, str], list[StreamStatus]] = {}
    for each in told:
        found.setdefault((each.connection_id, each.keyspace, each.queue), []).append(each)
    return [
        replace(
            parts[0],
            # Each dispatcher has its own window for sending.
            client=replace(client, prefetch=sum(p.window for p in parts) or client.prefetch),
            delivered=sum(part.delivered for part in parts),
            unacked=sum(part.unacked for part in parts),
            oldest_unacked_ns=_first(part.oldest_unacked_ns for part in parts),
            stalled_since_ns=_first(part.stalled_since_ns for part in parts),
        )
        for parts in found.values()
        if (client := next((p.client for p in parts if p.client is not None), None)) is not None
    ]


def _first(moments: Iterable[int | None]) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)
