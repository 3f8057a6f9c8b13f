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
    "sent": "Messages given to streams.",
    "retried": "Messages given to streams that had been sent before.",
    "acked": "Messages acknowledged by UPDATE through this proxy.",
    "deleted": "Messages deleted through this proxy.",
    "released": "Messages given back because their stream left before they were sent.",
    "parked": "Messages parked because they had been sent vt_max_attempts times.",
    "dead": "Messages moved to the dead letters because they had been sent vt_max_attempts times.",
    "purged": "Acknowledged messages that the purge deleted.",
}
# What Vitess's tablets call them, in one family: go/vt/vttablet/tabletserver/messager/message_manager.go.
_OF_VITESS: Final = {"Sent": "sent", "Acked": "acked", "Purged": "purged"}


_GAUGES: Final = {
    "depth": "Unacknowledged messages that are not parked; an estimate where memory does not hold all.",
    "depth_is_exact": "Whether the depth is exact.",
    "due": "Messages in memory that could be sent now.",
    "in_flight": "Messages sent, and neither acknowledged nor due again.",
    "parked": "Messages that are parked now; an estimate above ten thousand.",
    "dead_lettered": "Rows that the table of the dead letters has now; absent without one.",
    "held": "Messages that wait for their group.",
    "oldest_due_seconds": "For how long the first due message has waited, at least.",
    "streams": "Open streams.",
    "stream_full_seconds": "For how long the worst stream has had a full prefetch and acknowledged nothing; 0 if none has.",
    "paused": "Whether nothing is sent, as vt_paused says.",
    "max_rate": "Messages a second that may be sent, as vt_max_rate says; absent without.",
    "max_in_flight": "Messages that may be in flight, as vt_max_in_flight says; absent without.",
    "partitions_held_back": "Partitions that should have been dropped or made.",
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
        self._purges_failed = MetricFamily(
            "streamfrom_purges_failed_total",
            "counter",
            "Purges of a shard that failed; each is tried again.",
        )
        self._due_to_sent = MetricFamily(
            "streamfrom_message_due_to_sent_seconds",
            "histogram",
            "From the moment a message was due until it was given to a stream.",
        )
        self._sent_to_acked = MetricFamily(
            "streamfrom_message_sent_to_acked_seconds",
            "histogram",
            "From a sending until its acknowledgement by id.",
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
            self._purges_failed.add(of, counters.purges_failed)
            for times, histogram in (
                (self._due_to_sent, counters.due_to_sent),
                (self._sent_to_acked, counters.sent_to_acked),
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
            self._purges_failed,
            self._due_to_sent,
            self._sent_to_acked,
            of_vitess,
        ]
        # A name that no UTF-8 has must not cost all other figures.
        return "".join(family.text() for family in families).encode("utf-8", "replace")

    def _add_gauges(self, of: str, queue: QueueFigures) -> None:
        shards, properties = queue.shards, queue.table.properties
        is_streamed = all(shard.streams for shard in shards)
        since_ns = [s.oldest_due_ns for s in shards if s.oldest_due_ns is not None]
        found = {
            "depth": _sum(shard.depth for shard in shards),
            "depth_is_exact": all(shard.is_whole for shard in shards),
            # Memory knows no key of a queue without streams.
            "due": sum(shard.due for shard in shards) if is_streamed else None,
            "in_flight": sum(shard.in_flight for shard in shards),
            "parked": _sum(shard.parked for shard in shards),
            "dead_lettered": _sum(shard.dead_lettered for shard in shards),
            "held": sum(shard.held for shard in shards) if is_streamed else None,
            "oldest_due_seconds": max(0, self._now_ns - min(since_ns)) / 10**9
            if since_ns
            else None,
            "streams": queue.streams,
            "stream_full_seconds": self._full_ns.get(
                (queue.table.keyspace, queue.table.name), 0
            )
            / 10**9,
            "paused": properties.paused,
            "max_rate": None if properties.max_rate is None else properties.max_rate / 10**6,
            "max_in_flight": properties.max_in_flight,
            "partitions_held_back": sum(shard.partitions_held_back for shard in shards),
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
        if stream.full_since_ns is not None:
            key = stream.table.keyspace, stream.table.name
            longest[key] = max(longest.get(key, 0), now_ns - stream.full_since_ns)
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
    waiting = MetricFamily(
        "streamfrom_pool_waiting", "gauge", "Statements that wait for a connection."
    )
    for shard in shards:
        named = {"keyspace": shard.keyspace, "shard": shard.shard}
        of = labels(**named)
        up.add(of, shard.trouble is None)
        dispatched.add(of, shard.is_dispatched)
        size.add(of, shard.pool_size)
        used.add(labels(**named, state="lent"), shard.pool_lent)
        used.add(labels(**named, state="free"), shard.pool_open - shard.pool_lent)
        waiting.add(of, shard.pool_waiting)
    return up, dispatched, size, used, waiting


def _of_process(member: MemberStatus, now_ns: int) -> Sequence[MetricFamily]:
    gauges = {
        "uptime_seconds": ("Since its start.", member.uptime_s),
        "connections": ("Clients that are connected.", member.connections),
        "connections_max": ("Clients that may be connected.", member.connections_max),
        "streams": ("Open streams.", member.streams),
        "stopping": ("Whether it stops.", member.is_stopping),
        "time_seconds": ("The clock, by which messages are due.", now_ns / 10**9),
        "certificate_end_timestamp_seconds": (
            "When the certificate for clients ends.",
            member.certificate_ends_s,
        ),
    }
    info = MetricFamily("streamfrom_info", "gauge", "The proxy.")
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
