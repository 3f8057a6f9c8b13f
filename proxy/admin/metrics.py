"""The figures as Prometheus reads them: names and units by its rules, labels that are bounded by the tables there are.

https://prometheus.io/docs/practices/naming/. Counters and histograms are of each queue, all its shards together: 200
queues on 16 shards are some ten thousand lines, and by shard they were 160,000.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import generate_latest

from streamfrom.engine.messaging.figures import BOUNDS_S


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from streamfrom.engine.messaging.figures import (
        Counters,
        Histogram,
        QueueFigures,
        StreamFigures,
    )
    from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus


_BY_QUEUE: Final = ("keyspace", "queue")
_BY_SHARD: Final = ("keyspace", "shard")
_COUNTED: Final = {
    "sent": "Messages given to streams.",
    "retried": "Messages given to streams that had been sent before.",
    "acked": "Messages acknowledged by UPDATE through this proxy.",
    "deleted": "Messages deleted through this proxy.",
    "released": "Messages given back because their stream left before they were sent.",
    "parked": "Messages parked because they had been sent vt_max_attempts times.",
    "dead": "Messages moved to the dead letters because they had been sent vt_max_attempts times.",
    "purged": "Acknowledged messages that the purge deleted.",
}
_PURGES_FAILED: Final = "Purges of a shard that failed; each is tried again."
# What Vitess's tablets call them, in one family: go/vt/vttablet/tabletserver/messager/message_manager.go.
_OF_VITESS: Final = {"Sent": "sent", "Acked": "acked", "Purged": "purged"}


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What is known at the moment *now_ns*."""

    queues: Sequence[QueueFigures]
    shards: Sequence[ShardStatus]
    member: MemberStatus
    now_ns: int
    streams: Sequence[StreamFigures] = ()

    def collect(self) -> Iterator[Metric]:
        """Yield every family of metrics."""
        yield from _of_process(self.member, self.now_ns)
        yield from _of_shards(self.shards)
        counted = [(_labels(queue), queue, queue.counters) for queue in self.queues]
        yield from self._gauges()
        for name, text in _COUNTED.items():
            family = CounterMetricFamily(f"streamfrom_messages_{name}", text, labels=_BY_QUEUE)
            for labels, _, counters in counted:
                family.add_metric(labels, getattr(counters, name))
            yield family
        purges = CounterMetricFamily(
            "streamfrom_purges_failed", _PURGES_FAILED, labels=_BY_QUEUE
        )
        for labels, _, counters in counted:
            purges.add_metric(labels, counters.purges_failed)
        yield purges
        yield _histogram(
            "streamfrom_message_due_to_sent_seconds",
            "From the moment a message was due until it was given to a stream.",
            ((labels, counters.due_to_sent) for labels, _, counters in counted),
        )
        yield _histogram(
            "streamfrom_message_sent_to_acked_seconds",
            "From a sending until its acknowledgement by id.",
            ((labels, counters.sent_to_acked) for labels, _, counters in counted),
        )
        yield _of_vitess((queue, counters) for _, queue, counters in counted)

    def _gauges(self) -> Iterator[Metric]:
        depth = _gauge(
            "depth", "Unacknowledged messages; an estimate where memory does not hold all."
        )
        exact = _gauge("depth_is_exact", "Whether the depth is exact.")
        due = _gauge("due", "Messages in memory that could be sent now.")
        in_flight = _gauge(
            "in_flight", "Messages sent, and neither acknowledged nor due again."
        )
        oldest = _gauge(
            "oldest_due_seconds", "For how long the first due message has waited, at least."
        )
        streams = _gauge("streams", "Open streams.")
        full = _gauge(
            "stream_full_seconds",
            "For how long the worst stream has had a full prefetch and acknowledged nothing; 0 if none has.",
        )
        paused = _gauge("paused", "Whether nothing is sent, as vt_paused says.")
        full_ns = self._full_ns()
        for queue in self.queues:
            labels, shards = _labels(queue), queue.shards
            depths = [shard.depth for shard in shards]
            if None not in depths:
                depth.add_metric(labels, sum(each or 0 for each in depths))
            exact.add_metric(labels, all(shard.is_whole for shard in shards))
            if all(shard.streams for shard in shards):
                due.add_metric(labels, sum(shard.due for shard in shards))
            in_flight.add_metric(labels, sum(shard.in_flight for shard in shards))
            since_ns = [s.oldest_due_ns for s in shards if s.oldest_due_ns is not None]
            if since_ns:
                oldest.add_metric(labels, max(0, self.now_ns - min(since_ns)) / 10**9)
            streams.add_metric(labels, queue.streams)
            full.add_metric(labels, full_ns.get(tuple(labels), 0) / 10**9)
            paused.add_metric(labels, queue.table.properties.paused)
        return iter((depth, exact, due, in_flight, oldest, streams, full, paused))

    def _full_ns(self) -> dict[tuple[str, ...], int]:
        """Return for how long streams stand still, the longest of each queue, by its labels."""
        longest: dict[tuple[str, ...], int] = {}
        for stream in self.streams:
            if stream.full_since_ns is not None:
                key = stream.table.keyspace, stream.table.name
                longest[key] = max(longest.get(key, 0), self.now_ns - stream.full_since_ns)
        return longest

    def text(self) -> bytes:
        """Return everything in Prometheus's text format. Takes a while: not on the loop."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(cast("Any", self))
        text: bytes = generate_latest(registry)
        return text


def _labels(queue: QueueFigures) -> list[str]:
    return [queue.table.keyspace, queue.table.name]


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"streamfrom_queue_{name}", text, labels=_BY_QUEUE)


def _histogram(
    name: str, text: str, of_queues: Iterable[tuple[list[str], Histogram]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=_BY_QUEUE)
    bounds = [*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf"]
    for labels, histogram in of_queues:
        buckets = list(zip(bounds, accumulate(map(float, histogram.counts)), strict=True))
        family.add_metric(labels, buckets, histogram.sum_ns / 10**9)
    return family


def _of_vitess(queues: Iterable[tuple[QueueFigures, Counters]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "vttablet_messages", "Stats for messages", labels=("table_name", "metric")
    )
    sums: dict[tuple[str, str], int] = {}
    for queue, counters in queues:
        for metric, name in _OF_VITESS.items():
            key = queue.table.name, metric
            sums[key] = sums.get(key, 0) + getattr(counters, name)
        key = queue.table.name, "ClientCount"
        sums[key] = sums.get(key, 0) + queue.streams
    for labels, count in sums.items():
        family.add_metric(list(labels), count)
    return family


def _of_shards(shards: Sequence[ShardStatus]) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "streamfrom_shard_up", "Whether the shard's primary can be used.", labels=_BY_SHARD
    )
    size = GaugeMetricFamily(
        "streamfrom_pool_size", "Connections that the pool may have.", labels=_BY_SHARD
    )
    used = GaugeMetricFamily(
        "streamfrom_pool_connections", "Connections of the pool.", labels=(*_BY_SHARD, "state")
    )
    waiting = GaugeMetricFamily(
        "streamfrom_pool_waiting", "Statements that wait for a connection.", labels=_BY_SHARD
    )
    dispatched = GaugeMetricFamily(
        "streamfrom_shard_dispatched",
        "Whether this process sends the shard's messages.",
        labels=_BY_SHARD,
    )
    for shard in shards:
        labels = [shard.keyspace, shard.shard]
        up.add_metric(labels, shard.trouble is None)
        dispatched.add_metric(labels, shard.is_dispatched)
        size.add_metric(labels, shard.pool_size)
        used.add_metric([*labels, "lent"], shard.pool_lent)
        used.add_metric([*labels, "free"], shard.pool_open - shard.pool_lent)
        waiting.add_metric(labels, shard.pool_waiting)
    return iter((up, dispatched, size, used, waiting))


def _of_process(member: MemberStatus, now_ns: int) -> Iterator[Metric]:
    info = InfoMetricFamily("streamfrom", "The proxy.")
    info.add_metric([], {"version": member.version, "member": member.member or ""})
    yield info
    yield GaugeMetricFamily("streamfrom_uptime_seconds", "Since its start.", member.uptime_s)
    yield GaugeMetricFamily(
        "streamfrom_connections", "Clients that are connected.", member.connections
    )
    yield GaugeMetricFamily(
        "streamfrom_connections_max", "Clients that may be connected.", member.connections_max
    )
    yield GaugeMetricFamily("streamfrom_streams", "Open streams.", member.streams)
    yield CounterMetricFamily(
        "streamfrom_questions", "Statements of clients.", member.questions
    )
    yield GaugeMetricFamily("streamfrom_stopping", "Whether it stops.", member.is_stopping)
    yield GaugeMetricFamily(
        "streamfrom_time_seconds", "The clock, by which messages are due.", now_ns / 10**9
    )
    if member.certificate_ends_s is not None:
        yield GaugeMetricFamily(
            "streamfrom_certificate_end_timestamp_seconds",
            "When the certificate for clients ends.",
            member.certificate_ends_s,
        )
