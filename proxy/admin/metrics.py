"""The figures as Prometheus reads them: names and units by its rules, labels that are bounded by the tables there are.

https://prometheus.io/docs/practices/naming/. Counters and histograms are of each queue, all its shards together: 200
queues on 16 shards are some ten thousand lines, and by shard they were 160,000.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.counters import BOUNDS_S
from streamfrom.proxy.admin.exposition import MetricFamily, labels


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamfrom.engine.messaging.figures.figures import QueueFigures, StreamFigures
    from streamfrom.engine.messaging.table.counters import Counters
    from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus


_COUNTED: Final = {
    "delivered": "Messages delivered to streams.",
    "redelivered": "Messages delivered to streams that had been delivered before.",
    "acked": "Messages acknowledged by UPDATE through this proxy.",
    "deleted": "Messages deleted through this proxy.",
    "returned": "Messages returned because their stream left before they were delivered.",
    "parked": "Messages parked because they had been delivered vt_max_attempts times.",
    "dead_lettered": "Messages moved to the dead letters because they had been delivered vt_max_attempts times.",
    "purged": "Acknowledged messages that the purge deleted.",
}
# What Vitess's tablets call them, in one family: go/vt/vttablet/tabletserver/messager/message_manager.go.
_OF_VITESS: Final = {"Sent": "delivered", "Acked": "acked", "Purged": "purged"}


_GAUGES: Final = {
    "depth": "Unacknowledged messages that are not parked; an estimate where memory does not hold all.",
    "depth_is_exact": "Whether the depth is exact.",
    "ready": "Messages in memory that could be delivered now.",
    "scheduled": "Messages in memory that are for later.",
    "in_flight": "Messages delivered, and neither acknowledged nor ready again.",
    "parked": "Messages that are parked now; an estimate above ten thousand.",
    "dead_lettered": "Rows that the table of the dead letters has now; absent without one.",
    "blocked": "Messages that wait for their group.",
    "oldest_message_age_seconds": "For how long the first ready message has waited, at least.",
    "streams": "Open streams.",
    "consumer_stalled_seconds": "For how long the worst stream has had a full prefetch and acknowledged nothing; 0 if none has.",
    "paused": "Whether nothing is delivered, as vt_paused says.",
    "max_rate": "Messages a second that may be delivered, as vt_max_rate says; absent without.",
    "max_in_flight": "Messages that may be in flight, as vt_max_in_flight says; absent without.",
    "partitions_overdue": "Partitions that should have been dropped or made.",
    "set_aside": "Rows that the server refuses to write.",
}
_BOUNDS: Final = (*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf")


class MetricsPage:
    """What is known at the moment *now_ns*, as text; queues are added a few at a time."""

    def __init__(
        self,
        shards: Iterable[ShardStatus],
        member: MemberStatus,
        now_ns: int,
        streams: Iterable[StreamFigures] = (),
    ) -> None:
        self._now_ns = now_ns
        self._first = [*_of_process(member, now_ns), *_of_shards(shards)]
        self._full_ns = _full_ns(streams, now_ns)
        self._gauges = {
            name: MetricFamily(f"streamfrom_queue_{name}", "gauge", text)
            for name, text in _GAUGES.items()
        }
        self._counted = {
            name: MetricFamily(f"streamfrom_messages_{name}_total", "counter", text)
            for name, text in _COUNTED.items()
        }
        self._purge_failures = MetricFamily(
            "streamfrom_purge_failures_total",
            "counter",
            "Purges of a shard that failed; each is tried again.",
        )
        self._delivery_latency = MetricFamily(
            "streamfrom_message_delivery_latency_seconds",
            "histogram",
            "From the moment a message was ready until it was delivered to a stream.",
        )
        self._ack_latency = MetricFamily(
            "streamfrom_message_ack_latency_seconds",
            "histogram",
            "From a delivery until its acknowledgement by id.",
        )
        self._of_vitess: dict[tuple[str, str], int] = {}

    def add(self, queues: Iterable[QueueFigures]) -> None:
        """Add the figures of *queues*."""
        for queue in queues:
            of = labels(keyspace=queue.table.keyspace, queue=queue.table.name)
            counters = queue.counters
            self._add_gauges(of, queue)
            for name, family in self._counted.items():
                family.add(of, getattr(counters, name))
            self._purge_failures.add(of, counters.purge_failures)
            for times, histogram in (
                (self._delivery_latency, counters.delivery_latency),
                (self._ack_latency, counters.ack_latency),
            ):
                buckets = zip(_BOUNDS, accumulate(histogram.counts), strict=True)
                times.add_histogram(of, buckets, histogram.sum_ns / 10**9)
            self._add_vitess(queue, counters)

    def text(self) -> bytes:
        """Return everything."""
        of_vitess = MetricFamily("vttablet_messages", "gauge", "Stats for messages")
        for (table, metric), count in self._of_vitess.items():
            of_vitess.add(labels(table_name=table, metric=metric), count)
        families = [
            *self._first,
            *self._gauges.values(),
            *self._counted.values(),
            self._purge_failures,
            self._delivery_latency,
            self._ack_latency,
            of_vitess,
        ]
        # A name that no UTF-8 has must not cost all other figures.
        return "".join(family.text() for family in families).encode("utf-8", "replace")

    def _add_gauges(self, of: str, queue: QueueFigures) -> None:
        shards, properties = queue.shards, queue.table.properties
        is_streamed = all(shard.streams for shard in shards)
        since_ns = [s.oldest_ready_ns for s in shards if s.oldest_ready_ns is not None]
        found = {
            "depth": _sum(shard.depth for shard in shards),
            "depth_is_exact": all(shard.is_whole for shard in shards),
            # Memory knows no key of a queue without streams.
            "ready": sum(shard.ready for shard in shards) if is_streamed else None,
            "scheduled": sum(shard.scheduled for shard in shards) if is_streamed else None,
            "in_flight": sum(shard.in_flight for shard in shards),
            "parked": _sum(shard.parked for shard in shards),
            "dead_lettered": _sum(shard.dead_lettered for shard in shards),
            "blocked": sum(shard.blocked for shard in shards) if is_streamed else None,
            "oldest_message_age_seconds": max(0, self._now_ns - min(since_ns)) / 10**9
            if since_ns
            else None,
            "streams": queue.streams,
            "consumer_stalled_seconds": self._full_ns.get(
                (queue.table.keyspace, queue.table.name), 0
            )
            / 10**9,
            "paused": properties.paused,
            "max_rate": None if properties.max_rate is None else properties.max_rate / 10**6,
            "max_in_flight": properties.max_in_flight,
            "partitions_overdue": sum(shard.partitions_overdue for shard in shards),
            "set_aside": sum(shard.set_aside for shard in shards),
        }
        for name, value in found.items():
            if value is not None:
                self._gauges[name].add(of, value)

    def _add_vitess(self, queue: QueueFigures, counters: Counters) -> None:
        sums, table = self._of_vitess, queue.table.name
        for metric, name in _OF_VITESS.items():
            sums[table, metric] = sums.get((table, metric), 0) + getattr(counters, name)
        sums[table, "ClientCount"] = sums.get((table, "ClientCount"), 0) + queue.streams


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def _full_ns(streams: Iterable[StreamFigures], now_ns: int) -> dict[tuple[str, str], int]:
    """Return for how long streams stand still, the longest of each queue, by keyspace and name."""
    longest: dict[tuple[str, str], int] = {}
    for stream in streams:
        if stream.stalled_since_ns is not None:
            key = stream.table.keyspace, stream.table.name
            longest[key] = max(longest.get(key, 0), now_ns - stream.stalled_since_ns)
    return longest


def _of_shards(shards: Iterable[ShardStatus]) -> Sequence[MetricFamily]:
    up = MetricFamily(
        "streamfrom_shard_up", "gauge", "Whether the shard's primary can be used."
    )
    dispatched = MetricFamily(
        "streamfrom_shard_dispatched",
        "gauge",
        "Whether this process sends the shard's messages.",
    )
    size = MetricFamily("streamfrom_pool_size", "gauge", "Connections that the pool may have.")
    used = MetricFamily("streamfrom_pool_connections", "gauge", "Connections of the pool.")
    waiters = MetricFamily(
        "streamfrom_pool_waiters", "gauge", "Statements that wait for a connection."
    )
    for shard in shards:
        named = {"keyspace": shard.keyspace, "shard": shard.shard}
        of = labels(**named)
        up.add(of, shard.last_error is None)
        dispatched.add(of, shard.is_dispatched)
        size.add(of, shard.pool_size)
        used.add(labels(**named, state="in_use"), shard.pool_in_use)
        used.add(labels(**named, state="free"), shard.pool_open - shard.pool_in_use)
        waiters.add(of, shard.pool_waiters)
    return up, dispatched, size, used, waiters


def _of_process(member: MemberStatus, now_ns: int) -> Sequence[MetricFamily]:
    gauges = {
        "uptime_seconds": ("Since its start.", member.uptime_s),
        "connections": ("Clients that are connected.", member.connections),
        "connections_max": ("Clients that may be connected.", member.connections_max),
        "streams": ("Open streams.", member.streams),
        "shutting_down": ("Whether it stops.", member.is_stopping),
        "clock_seconds": ("The clock, by which messages are due.", now_ns / 10**9),
        "certificate_expiry_timestamp_seconds": (
            "When the certificate for clients ends.",
            member.certificate_expires_s,
        ),
    }
    info = MetricFamily("streamfrom_build_info", "gauge", "The proxy.")
    info.add(labels(version=member.version, member=member.member or ""), 1)
    questions = MetricFamily("streamfrom_questions_total", "counter", "Statements of clients.")
    questions.add("", member.questions)
    found = [info, questions]
    for name, (text, value) in gauges.items():
        if value is not None:
            family = MetricFamily(f"streamfrom_{name}", "gauge", text)
            family.add("", value)
            found.append(family)
    return found
