"""The status page's figures, as JSON values, with the last hour of each queue, a sample every SAMPLE_S. Pure.

A sample takes 113 bytes, so an hour of a queue 41 kB, and QUEUES_MAX of them 41 MB.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from itertools import islice, pairwise
from math import isnan, nan
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from streamfrom.engine.messaging.table.counters import Counters, Histogram
from streamfrom.engine.messaging.table.message import AUTO
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.proxy.config.changes import key_of
from streamfrom.proxy.status.queue_figures import FIGURES, QueueLook
from streamfrom.proxy.status.status_rows import TABLES, StatusRow


if TYPE_CHECKING:
    from streamfrom.engine.messaging.figures.figures import QueueFigures
    from streamfrom.proxy.config.file import Server


SAMPLE_S: Final = 10.0
SAMPLES_MAX: Final = 360
QUEUES_MAX: Final = 1000
# A rate over a shorter time shows when a batch came rather than how many come.
_RATE_OVER_S: Final = 5.0

QueueName: TypeAlias = tuple[str, str]
Series: TypeAlias = dict[str, list[float | None]]


class Sample(NamedTuple):
    """One queue at a moment; counters since the start of the process, NaN for unknown values."""

    at_s: float  # seconds since the epoch
    depth: float
    parked: float
    in_flight: float
    delivered: float
    acked: float
    deleted: float
    redelivered: float
    # Since the previous sample.
    delivery_latency_p99_s: float = nan
    ack_latency_p99_s: float = nan


class Rates(NamedTuple):
    """Messages a second. in_per_s: None if the depth is not known."""

    in_per_s: float | None
    delivered_per_s: float
    out_per_s: float
    redelivered_per_s: float


_PACKED: Final = Struct(f"{len(Sample._fields)}d")


class QueueHistory:
    """The samples of one queue, of which the oldest are dropped."""

    def __init__(self) -> None:
        self._samples: deque[bytes] = deque(maxlen=SAMPLES_MAX)
        self._histograms: tuple[list[int], list[int]] | None = None

    def add(self, queue: QueueFigures, at_s: float) -> None:
        """Take a sample."""
        counters = queue.counters
        found = (counters.delivery_latency.counts, counters.ack_latency.counts)
        before = self._histograms or found
        self._histograms = found
        p99s = map(_p99_s, found, before)
        self._samples.append(_PACKED.pack(*_sample(queue, counters, at_s)[:-2], *p99s))

    def samples(self) -> list[Sample]:
        """Return the samples, the oldest first."""
        return [Sample(*_PACKED.unpack(packed)) for packed in self._samples]

    def rates(self, queue: QueueFigures, at_s: float) -> Rates | None:
        """Return the current rates, since one of the last two samples; None before there is any."""
        for packed in islice(reversed(self._samples), 2):
            sample = Sample(*_PACKED.unpack(packed))
            if at_s - sample.at_s >= _RATE_OVER_S:
                return _rates(sample, _sample(queue, queue.counters, at_s))
        return None

    def series(self) -> Series:
        """Return the charts' series by name, one value for each sample but the first; None: not known."""
        pairs = list(pairwise(self.samples()))
        rates = [_rates(before, after) for before, after in pairs]
        after = [pair[1] for pair in pairs]
        own = (
            "at_s",
            "depth",
            "parked",
            "in_flight",
            "delivery_latency_p99_s",
            "ack_latency_p99_s",
        )
        series = {name: [_known(getattr(each, name)) for each in after] for name in own}
        for name in Rates._fields:
            series[name] = [getattr(each, name) for each in rates]
        return series


class History:
    """The last hour of all queues."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, QueueHistory] = {}

    def forget_all_but(self, queues: Iterable[QueueFigures]) -> None:
        """Forget the queues that are gone."""
        names = {_name(queue) for queue in queues}
        self._queues = {name: kept for name, kept in self._queues.items() if name in names}

    def sample(self, queues: Iterable[QueueFigures], at_s: float) -> None:
        """Take a sample of each of *queues*, unless QUEUES_MAX others have a history."""
        for queue in queues:
            name = _name(queue)
            if name in self._queues or len(self._queues) < QUEUES_MAX:
                self._queues.setdefault(name, QueueHistory()).add(queue, at_s)

    def rates(self, queue: QueueFigures, at_s: float) -> Rates | None:
        """Return the current rates; None if they are not known yet."""
        found = self._queues.get(_name(queue))
        return None if found is None else found.rates(queue, at_s)

    def series(self, keyspace: str, queue: str) -> Series:
        """Return the charts' series of a queue; empty lists if there are no samples yet."""
        return (self._queues.get((keyspace, queue)) or QueueHistory()).series()


def _name(queue: QueueFigures) -> QueueName:
    return queue.table.keyspace, queue.table.name


def _sample(queue: QueueFigures, counters: Counters, at_s: float) -> Sample:
    return Sample(
        at_s,
        _sum([shard.depth for shard in queue.shards]),
        _sum([shard.parked for shard in queue.shards]),
        sum(shard.in_flight for shard in queue.shards),
        counters.delivered,
        counters.acked,
        counters.deleted,
        counters.redelivered,
    )


def _sum(counts: list[int | None]) -> float:
    return nan if None in counts else float(sum(count or 0 for count in counts))


def _rates(before: Sample, after: Sample) -> Rates:
    # A table that was dropped and created again counts from 0, and a clock may be set back.
    took_s = max(after.at_s - before.at_s, 0.001)
    gone = max(after.acked - before.acked, 0) + max(after.deleted - before.deleted, 0)
    parked = after.parked - before.parked
    arrived = after.depth - before.depth + gone + (0 if isnan(parked) else parked)
    return Rates(
        None if isnan(arrived) else max(arrived, 0) / took_s,
        max(after.delivered - before.delivered, 0) / took_s,
        gone / took_s,
        max(after.redelivered - before.redelivered, 0) / took_s,
    )


def _p99_s(counts: list[int], before: list[int]) -> float:
    since = Histogram()
    since.counts = [max(now - then, 0) for now, then in zip(counts, before, strict=True)]
    found = since.quantile_s(0.99)
    return nan if found is None else found


def _known(value: float) -> float | None:
    return None if isnan(value) else value


Record: TypeAlias = dict[str, Any]

# Settings of [server] that an operator runs into.
_LIMITS: Final = (
    "max_connections",
    "max_connections_per_address",
    "max_logins_per_address",
    "max_allowed_packet_bytes",
    "connection_memory_bytes",
    "user_memory_bytes",
    "merge_memory_bytes",
    "statement_timeout_s",
    "idle_timeout_s",
    "pool_timeout_s",
    "failover_buffer_s",
    "stream_grace_s",
    "shutdown_grace_s",
)


def records(table: str, rows: Iterable[StatusRow]) -> list[Record]:
    """Return the rows of a table of the schema `streamfrom`, each by column."""
    names = [column.name for column in TABLES[table]]
    return [dict(zip(names, row, strict=True)) for row in rows]


def queue_records(
    rows: Iterable[StatusRow],
    queues: Iterable[QueueFigures],
    rates: Callable[[QueueFigures], Rates | None],
) -> list[Record]:
    """Return a record for each row of queues, with its rates in messages a second; None while they are not known."""
    known = {_name(queue): rates(queue) for queue in queues}
    made = records("queues", rows)
    for record in made:
        found = known.get((record["keyspace"], record["queue"]))
        record.update(found._asdict() if found else dict.fromkeys(Rates._fields))
    return made


def shard_records(queue: QueueFigures, now_ns: int) -> list[Record]:
    """Return the figures of each shard of a queue."""
    found = []
    for shard in queue.shards:
        unknown = queue.unknown & {shard.shard}
        one = replace(queue, shards=(shard,), unknown=unknown, streams=shard.streams)
        look = QueueLook(one, now_ns)
        figures = {figure.name: figure.read(look) for figure in FIGURES}
        found.append({"shard": shard.shard} | figures)
    return found


def figure_records() -> list[Record]:
    """Return the page's description of each figure of a queue: name, unit and meaning."""
    names = "name", "unit", "label", "help"
    return [{name: getattr(each, name) for name in names} for each in FIGURES if each.label]


def setting_records(queue: QueueFigures) -> list[Record]:
    """Return the settings of a queue by their keys of the comment; times in seconds, None for none."""
    properties = queue.table.properties
    order = "strict" if properties.in_order and properties.key is None else "oldest"
    group, after = properties.groups or (None, None)
    found: Record = {}
    for each in fields(properties):
        value = getattr(properties, each.name)
        if each.name.endswith("_ns"):
            value = None if value is None else value / 10**9
        found[each.name.removesuffix("_ns")] = value
    found |= {
        "ack": "early" if found.pop("acks_early") else "committed",
        "after": after,
        "group": group,
        "lease": "lazy" if properties.lease_delay_ns else "written",
        "max_per_key": found.pop("in_order") if properties.key else None,
        "max_rate": properties.max_rate and properties.max_rate / 10**6,
        "message_cols": properties.message_cols and ", ".join(properties.message_cols),
        "order": "newest" if found.pop("newest") else order,
        "prefetch": "auto" if properties.prefetch == AUTO else properties.prefetch,
        "shard_by": properties.shard_by and "{}({})".format(*properties.shard_by),
    }
    return [
        {"key": f"vt_{key}", "value": value}
        for key, value in found.items()
        if f"vt_{key}" in KEYS
    ]


def newer(series: Series, after_s: float) -> Series:
    """Return the end of *series* that is younger than a moment."""
    moments = [moment or 0.0 for moment in series["at_s"]]
    start = bisect_right(moments, after_s)
    return {name: values[start:] for name, values in series.items()}


def limits(server: Server) -> Record:
    """Return the limits in force, by their keys of the configuration: bytes, seconds, counts."""
    return {key_of(name): getattr(server, name) for name in _LIMITS}
