"""The figures of a member as messages between members. Pure: moments are told as ages, by each member's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.figures import (
    BOUNDS_S,
    Counters,
    Histogram,
    QueueFigures,
    SetAsideFigures,
    ShardFigures,
)
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.status.fleet_figures import QueueAtMember
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    StreamClient,
    StreamStatus,
)


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member


_COUNTED: Final = (
    *("sent", "retried", "acked", "deleted", "released"),
    *("parked", "dead", "purged", "purges_failed"),
)
_NO_COUNTS: Final = (0,) * (len(BOUNDS_S) + 1)


def encode_member(member: MemberStatus) -> pb.MemberStatus:
    """Return the message of what a member says of itself."""
    return pb.MemberStatus(
        version=member.version,
        uptime_s=member.uptime_s,
        connections=member.connections,
        streams=member.streams,
        questions=member.questions,
        is_stopping=member.is_stopping,
        dispatches=member.dispatches,
        time_s=member.time_s,
        certificate_ends_s=member.certificate_ends_s,
    )


def decode_member(told: pb.MemberStatus, member: Member) -> MemberStatus:
    """Return what *member* says of itself."""
    return MemberStatus(
        member=member.id,
        version=told.version,
        uptime_s=told.uptime_s,
        connections=told.connections,
        streams=told.streams,
        questions=told.questions,
        is_stopping=told.is_stopping,
        address=member.address,
        dispatches=tuple(told.dispatches),
        time_s=told.time_s if told.HasField("time_s") else None,
        certificate_ends_s=told.certificate_ends_s
        if told.HasField("certificate_ends_s")
        else None,
    )


def encode_queue(queue: QueueFigures, now_ns: int) -> pb.QueueStatus:
    """Return the message of a queue, without shards on which nothing has happened and others dispatch."""
    shards = []
    for shard in queue.shards:
        counters = _encode_counters(shard.counters)
        if shard.is_dispatched or counters is not None:
            gauges = _encode_gauges(shard, now_ns) if shard.is_dispatched else None
            shards.append(pb.QueueOnShard(shard=shard.shard, counters=counters, gauges=gauges))
    return pb.QueueStatus(
        keyspace=queue.table.keyspace,
        table=queue.table.name,
        streams=queue.streams,
        shards=shards,
    )


def decode_queue(told: pb.QueueStatus, now_ns: int) -> QueueAtMember:
    """Return what a message tells of a queue."""
    shards = tuple(_decode_shard(shard, now_ns) for shard in told.shards)
    return QueueAtMember(told.keyspace, told.table, told.streams, shards)


def _encode_gauges(shard: ShardFigures, now_ns: int) -> pb.Gauges:
    return pb.Gauges(
        streams=shard.streams,
        waiting=shard.waiting,
        due=shard.due,
        in_flight=shard.in_flight,
        depth=shard.depth if shard.is_whole else None,
        oldest_due_ns=_age_ns(shard.oldest_due_ns, now_ns),
        held=shard.held,
        partitions_held_back=shard.partitions_held_back,
        set_aside=shard.set_aside,
    )


def _decode_shard(told: pb.QueueOnShard, now_ns: int) -> ShardFigures:
    # Where a member does not dispatch, they are absent, which protobuf reads as zeros.
    gauges = told.gauges
    is_whole = gauges.HasField("depth")
    return ShardFigures(
        shard=told.shard,
        counters=_decode_counters(told.counters),
        streams=gauges.streams,
        waiting=gauges.waiting,
        due=gauges.due,
        is_whole=is_whole,
        in_flight=gauges.in_flight,
        depth=gauges.depth if is_whole else None,
        oldest_due_ns=now_ns - gauges.oldest_due_ns
        if gauges.HasField("oldest_due_ns")
        else None,
        is_dispatched=told.HasField("gauges"),
        held=gauges.held,
        partitions_held_back=gauges.partitions_held_back,
        set_aside=gauges.set_aside,
    )


def _encode_counters(counters: Counters) -> pb.Counters | None:
    """Return the message of what has happened; None for nothing."""
    counted = {name: value for name in _COUNTED if (value := getattr(counters, name))}
    due_to_sent = _encode_histogram(counters.due_to_sent)
    sent_to_acked = _encode_histogram(counters.sent_to_acked)
    if not counted and due_to_sent is None and sent_to_acked is None:
        return None
    return pb.Counters(**counted, due_to_sent=due_to_sent, sent_to_acked=sent_to_acked)


def _decode_counters(told: pb.Counters) -> Counters:
    counters = Counters(**{name: getattr(told, name) for name in _COUNTED})
    counters.due_to_sent = _decode_histogram(told.due_to_sent)
    counters.sent_to_acked = _decode_histogram(told.sent_to_acked)
    return counters


def _encode_histogram(histogram: Histogram) -> pb.Histogram | None:
    if not any(histogram.counts):
        return None
    return pb.Histogram(counts=histogram.counts, sum_ns=histogram.sum_ns)


def _decode_histogram(told: pb.Histogram) -> Histogram:
    """Return the times; those of a member whose buckets are others tell nothing here."""
    histogram = Histogram()
    if len(told.counts) == len(_NO_COUNTS):
        histogram.counts = list(told.counts)
        histogram.sum_ns = told.sum_ns
    return histogram


def encode_stream(stream: StreamStatus, now_ns: int) -> pb.StreamStatus:
    """Return the message of a stream."""
    client = stream.client
    return pb.StreamStatus(
        connection_id=stream.connection_id,
        keyspace=stream.keyspace,
        table=stream.queue,
        client=None
        if client is None
        else pb.Client(
            user=client.user,
            host=client.host,
            open_ns=_age_ns(client.opened_ns, now_ns),
            prefetch=client.prefetch,
            shards=client.shards,
        ),
        sent=stream.sent,
        held=stream.held,
        held_ns=_age_ns(stream.held_since_ns, now_ns),
        full_ns=_age_ns(stream.full_since_ns, now_ns),
    )


def decode_stream(told: pb.StreamStatus, member: str, now_ns: int) -> StreamStatus:
    """Return the stream that *member* tells of."""
    client = None
    if told.HasField("client"):
        client = StreamClient(
            told.client.user,
            told.client.host,
            member,
            now_ns - told.client.open_ns,
            told.client.prefetch,
            told.client.shards if told.client.HasField("shards") else None,
        )
    return StreamStatus(
        told.connection_id,
        told.keyspace,
        told.table,
        client,
        told.sent,
        told.held,
        now_ns - told.held_ns if told.HasField("held_ns") else None,
        now_ns - told.full_ns if told.HasField("full_ns") else None,
    )


def encode_set_aside(row: SetAsideFigures, now_ns: int) -> pb.SetAsideRow:
    """Return the message of a row that is set aside."""
    return pb.SetAsideRow(
        keyspace=row.keyspace,
        table=row.queue,
        shard=row.shard,
        id=row.id,
        tried=row.tried,
        error=row.error,
        since_ns=_age_ns(row.since_ns, now_ns),
        next_in_ns=max(0, row.next_ns - now_ns),
        tries=row.tries,
    )


def decode_set_aside(told: pb.SetAsideRow, now_ns: int) -> SetAsideFigures:
    """Return the row that a message tells of."""
    return SetAsideFigures(
        told.keyspace,
        told.table,
        told.shard,
        told.id,
        told.tried,
        told.error,
        now_ns - told.since_ns,
        now_ns + told.next_in_ns,
        told.tries,
    )


def encode_shard(shard: ShardStatus) -> pb.ShardStatus:
    """Return the message of a shard's primary."""
    return pb.ShardStatus(
        keyspace=shard.keyspace,
        shard=shard.shard,
        server=shard.server,
        version=shard.version,
        trouble=shard.trouble,
        pool_size=shard.pool_size,
        pool_open=shard.pool_open,
        pool_lent=shard.pool_lent,
        pool_waiting=shard.pool_waiting,
        is_dispatched=shard.is_dispatched,
    )


def decode_shard(told: pb.ShardStatus, member: str) -> ShardStatus:
    """Return a shard's primary as *member* sees it."""
    return ShardStatus(
        keyspace=told.keyspace,
        shard=told.shard,
        server=told.server,
        version=told.version,
        trouble=told.trouble if told.HasField("trouble") else None,
        pool_size=told.pool_size,
        pool_open=told.pool_open,
        pool_lent=told.pool_lent,
        pool_waiting=told.pool_waiting,
        is_dispatched=told.is_dispatched,
        member=member,
    )


def _age_ns(since_ns: int | None, now_ns: int) -> int | None:
    # Unsigned on the wire: below 0, after the clock was set back, the message could not be made.
    return None if since_ns is None else max(0, now_ns - since_ns)
