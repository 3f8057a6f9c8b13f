"""The figures of a member, and lines of SHOW PROCESSLIST, as messages between members. Pure.

A figure that a class and its message in ``members.proto`` share by name travels by itself: `fields_codec` copies it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    SetAsideFigures,
    ShardFigures,
)
from streamfrom.engine.messaging.table.counters import Counters, Histogram
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldsCodec
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.services import Asker
from streamfrom.proxy.status.fleet_figures import QueueAtMember
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    StreamClient,
    StreamStatus,
)


class _HistogramCodec:
    def encode(self, value: Histogram, _now_ns: int) -> pb.Histogram | None:
        if not value.total:
            return None
        return pb.Histogram(counts=value.counts, sum_ns=value.sum_ns)

    def decode(self, found: pb.Histogram, _now_ns: int) -> Histogram | None:
        """Return the times; None for those of a member whose buckets are others."""
        histogram = Histogram()
        if len(found.counts) != len(histogram.counts):
            return None
        histogram.counts = list(found.counts)
        histogram.sum_ns = found.sum_ns
        return histogram


class _CountersCodec:
    """What has happened; absent for nothing."""

    def __init__(self) -> None:
        self._fields = FieldsCodec(Counters, pb.Counters, {"Histogram": _HistogramCodec()})

    def encode(self, value: Counters, _now_ns: int) -> pb.Counters | None:
        message = self._fields.encode(value)
        return message if message.ByteSize() else None

    def decode(self, found: pb.Counters, _now_ns: int) -> Counters:
        fields = self._fields.fields(found)
        return Counters(**{name: each for name, each in fields.items() if each is not None})


class _QueueOnShardCodec:
    """A shard of a queue; None if nothing has happened on it and another member dispatches it."""

    def __init__(self) -> None:
        self._counters = _CountersCodec()
        self._gauges = FieldsCodec(ShardFigures, pb.Gauges)

    def encode(self, value: ShardFigures, now_ns: int) -> pb.QueueOnShard | None:
        counters = self._counters.encode(value.counters, now_ns)
        if counters is None and not value.is_dispatched:
            return None
        gauges = None
        if value.is_dispatched:
            # A member that does not know every message does not know how many wait.
            known = value if value.is_whole else replace(value, depth=None)
            gauges = self._gauges.encode(known, now_ns)
        return pb.QueueOnShard(shard=value.shard, counters=counters, gauges=gauges)

    def decode(self, found: pb.QueueOnShard, now_ns: int) -> ShardFigures:
        # Where a member does not dispatch, gauges are absent, which protobuf reads as zeros.
        return ShardFigures(
            shard=found.shard,
            counters=self._counters.decode(found.counters, now_ns),
            is_whole=found.gauges.HasField("depth"),
            is_dispatched=found.HasField("gauges"),
            **self._gauges.fields(found.gauges, now_ns),
        )


MEMBERS: Final = FieldsCodec(MemberStatus, pb.MemberStatus)
SHARDS: Final = FieldsCodec(ShardStatus, pb.ShardStatus)
SET_ASIDE: Final = FieldsCodec(SetAsideFigures, pb.SetAsideRow)
QUEUES: Final = FieldsCodec(
    QueueAtMember, pb.QueueStatus, {"QueueOnShard": _QueueOnShardCodec()}
)
STREAMS: Final = FieldsCodec(
    StreamStatus, pb.StreamStatus, {"Client": FieldsCodec(StreamClient, pb.Client)}
)


def encode_queue(queue: QueueFigures, now_ns: int) -> pb.QueueStatus:
    """Return the message of a queue, without shards on which nothing has happened and others dispatch."""
    table = queue.table
    part = QueueAtMember(table.keyspace, table.name, queue.streams, queue.shards)
    return QUEUES.encode(part, now_ns)


def decode_stream(found: pb.StreamStatus, member: str, now_ns: int) -> StreamStatus:
    """Return the stream that *member* reports."""
    stream = STREAMS.decode(found, now_ns)
    if stream.client is None:
        return stream
    return replace(stream, client=replace(stream.client, member=member))


# Of the text of a statement so much travels: ten thousand sessions may each run one of 64 MB.
INFO_BYTES_MAX: Final = 64 << 10

ASKERS: Final = FieldsCodec(Asker, pb.Asker)
_PROCESSES: Final = FieldsCodec(Process, pb.Session)


def encode_process(process: Process) -> pb.Session:
    """Return the message of a line."""
    info = process.info
    cut = None if info is None else bytes(info[:INFO_BYTES_MAX])
    return _PROCESSES.encode(replace(process, info=cut))


decode_process: Final = _PROCESSES.decode
