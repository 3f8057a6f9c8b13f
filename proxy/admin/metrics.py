"""The figures for Prometheus: names and units by its rules, labels bounded by the number of tables.

https://prometheus.io/docs/practices/naming/, and for the text
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. Its own Python client checks the names of every label
of every sample, and took three quarters of a scrape of 200 queues for it, in one piece.

Counters and histograms are per queue, all its shards together: 200 queues on 16 shards are about ten thousand lines; by
shard they were 160,000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.counters import BOUNDS_S, Counters
from streamfrom.proxy.status.queue_figures import FIGURES, QueueLook, Unit


if TYPE_CHECKING:
    from streamfrom.engine.messaging.figures.figures import QueueFigures, StreamFigures
    from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
# Vitess's tablets' names for them, in one family: go/vt/vttablet/tabletserver/messager/message_manager.go.
_OF_VITESS: Final = {"Sent": "delivered", "Acked": "acked", "Purged": "purged"}
_HISTOGRAMS: Final = {
    "delivery_latency": "From the moment a message was ready until it was delivered to a stream.",
    "ack_latency": "From a delivery until its acknowledgement by id.",
}
_BOUNDS: Final = (*(f"{bound_s:g}" for bound_s in BOUNDS_S), "+Inf")


def labels(**named: str) -> str:
    """Return labels as a sample has them, without the braces."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in named.items())


class MetricFamily:
    """The samples of one metric."""

    __slots__ = ("_lines", "_name")

    def __init__(self, name: str, kind: str, text: str) -> None:
        self._name = name
        self._lines = [f"# HELP {name} {text}\n# TYPE {name} {kind}\n"]

    def add(self, of: str, value: float) -> None:
        """Add a sample. of: the result of `labels`."""
        # Of True `+` makes 1.
        self._lines.append(f"{self._name}{f'{{{of}}}' if of else ''} {+value!r}\n")

    def add_histogram(self, of: str, buckets: Iterable[tuple[str, int]], total: float) -> None:
        """Add the samples of a histogram.

        buckets: upper bounds and how many stay below each, the last one "+Inf". total: the sum of all that was observed.
        """
        name, count = self._name, 0
        lines = []
        for bound, count in buckets:
            lines.append(f'{name}_bucket{{{of},le="{bound}"}} {count}\n')
        lines.append(f"{name}_count{{{of}}} {count}\n{name}_sum{{{of}}} {total!r}\n")
        self._lines += lines

    def text(self) -> str:
        """Return the family, with its head."""
        return "".join(self._lines)


class MetricsPage:
    """The figures at the moment *now_ns*, as text; queues are added a few at a time."""

    def __init__(
        self,
        shards: Iterable[ShardStatus],
        member: MemberStatus,
        now_ns: int,
        streams: Iterable[StreamFigures] = (),
    ) -> None:
        self._now_ns = now_ns
        self._first = [*_of_process(member, now_ns), *_of_shards(shards)]
        self._stalled_ns = _stalled_ns(streams, now_ns)
        self._figures = [
            (
                MetricFamily(
                    f"streamfrom_{figure.metric}",
                    "counter" if figure.unit is Unit.TOTAL else "gauge",
                    figure.help,
                ),
                figure.read,
            )
            for figure in FIGURES
            if figure.metric
        ]
        self._stalled = MetricFamily(
            "streamfrom_queue_consumer_stalled_seconds",
            "gauge",
            "For how long the worst stream has had a full prefetch and acknowledged nothing; 0 if none has.",
        )
        self._histograms = {
            name: MetricFamily(f"streamfrom_message_{name}_seconds", "histogram", text)
            for name, text in _HISTOGRAMS.items()
        }
        self._of_vitess: dict[tuple[str, str], int] = {}

    def add(self, queues: Iterable[QueueFigures]) -> None:
        """Add the figures of *queues*."""
        for queue in queues:
            look = QueueLook(queue, self._now_ns)
            of = labels(keyspace=look.keyspace, queue=look.queue)
            for family, read in self._figures:
                if (value := read(look)) is not None:
                    family.add(of, value)
            self._stalled.add(of, self._stalled_ns.get((look.keyspace, look.queue), 0) / 10**9)
            for name, family in self._histograms.items():
                histogram = getattr(look.counters, name)
                buckets = zip(_BOUNDS, accumulate(histogram.counts), strict=True)
                family.add_histogram(of, buckets, histogram.sum_ns / 10**9)
            self._add_vitess(queue, look.counters)

    def text(self) -> bytes:
        """Return everything."""
        of_vitess = MetricFamily("vttablet_messages", "gauge", "Stats for messages")
        for (table, metric), count in self._of_vitess.items():
            of_vitess.add(labels(table_name=table, metric=metric), count)
        families = [
            *self._first,
            *(family for family, _ in self._figures),
            self._stalled,
            *self._histograms.values(),
            of_vitess,
        ]
        # A name that no UTF-8 has must not cost all other figures.
        return "".join(family.text() for family in families).encode("utf-8", "replace")

    def _add_vitess(self, queue: QueueFigures, counters: Counters) -> None:
        sums, table = self._of_vitess, queue.table.name
        for metric, name in _OF_VITESS.items():
            sums[table, metric] = sums.get((table, metric), 0) + getattr(counters, name)
        sums[table, "ClientCount"] = sums.get((table, "ClientCount"), 0) + queue.streams


def _stalled_ns(streams: Iterable[StreamFigures], now_ns: int) -> dict[tuple[str, str], int]:
    """Return for how long streams are stalled, the longest of each queue, by keyspace and name."""
    longest: dict[tuple[str, str], int] = {}
    for stream in streams:
        if stream.stalled_since_ns is not None:
            key = stream.table.keyspace, stream.table.name
            longest[key] = max(longest.get(key, 0), now_ns - stream.stalled_since_ns)
    return longest


_OF_SHARDS: Final = {
    "shard_up": ("Whether the shard's primary can be used.", "is_up"),
    "shard_dispatched": ("Whether this process sends the shard's messages.", "is_dispatched"),
    "pool_size": ("Connections that the pool may have.", "pool_size"),
    "pool_waiters": ("Statements that wait for a connection.", "pool_waiters"),
}


def _of_shards(shards: Iterable[ShardStatus]) -> Sequence[MetricFamily]:
    families = {
        read: MetricFamily(f"streamfrom_{name}", "gauge", text)
        for name, (text, read) in _OF_SHARDS.items()
    }
    used = MetricFamily("streamfrom_pool_connections", "gauge", "Connections of the pool.")
    for shard in shards:
        named = {"keyspace": shard.keyspace, "shard": shard.shard}
        of = labels(**named)
        for read, family in families.items():
            family.add(of, getattr(shard, read))
        used.add(labels(**named, state="in_use"), shard.pool_in_use)
        used.add(labels(**named, state="free"), shard.pool_open - shard.pool_in_use)
    return *families.values(), used


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
