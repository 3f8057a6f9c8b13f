"""The last hour of each queue in bounded memory: one sample every SAMPLE_S seconds. Pure.

A sample takes 113 bytes, so an hour of a queue 41 kB, and QUEUES_MAX of them 41 MB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice, pairwise
from math import isnan, nan
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from streamfrom.engine.messaging.table.counters import Counters, Histogram


if TYPE_CHECKING:
    from streamfrom.engine.messaging.figures.figures import QueueFigures


SAMPLE_S: Final = 10.0
SAMPLES_MAX: Final = 360
QUEUES_MAX: Final = 1000
# A rate over less than this shows when a batch came rather than how many come.
_RATE_OVER_S: Final = 5.0

QueueName: TypeAlias = tuple[str, str]
Series: TypeAlias = dict[str, list[float | None]]


class Sample(NamedTuple):
    """One queue at a moment; counters since the start of the process, NaN for what is not known.

    at_s: seconds since the epoch.
    delivery_latency_p99_s, ack_latency_p99_s: of the time since the sample before.
    """

    at_s: float
    depth: float
    parked: float
    in_flight: float
    delivered: float
    acked: float
    deleted: float
    redelivered: float
    delivery_latency_p99_s: float = nan
    ack_latency_p99_s: float = nan


class Rates(NamedTuple):
    """Messages a second. in_per_s: None where the depth is not known."""

    in_per_s: float | None
    delivered_per_s: float
    out_per_s: float
    redelivered_per_s: float


_PACKED: Final = Struct(f"{len(Sample._fields)}d")


class QueueHistory:
    """The samples of one queue, the oldest of which give way."""

    def __init__(self) -> None:
        self._samples: deque[bytes] = deque(maxlen=SAMPLES_MAX)
        self._histograms: tuple[list[int], list[int]] | None = None

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._samples)

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
        """Return the rates of now, since one of the last two samples; None before there is any."""
        for packed in islice(reversed(self._samples), 2):
            sample = Sample(*_PACKED.unpack(packed))
            if at_s - sample.at_s >= _RATE_OVER_S:
                return _rates(sample, _sample(queue, queue.counters, at_s))
        return None

    def series(self) -> Series:
        """Return what the charts show, by name, one value for each sample but the first; None: not known."""
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

    def __len__(self) -> int:
        """Return how many queues have a history."""
        return len(self._queues)

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
        """Return the rates of now; None where they are not known yet."""
        found = self._queues.get(_name(queue))
        return None if found is None else found.rates(queue, at_s)

    def series(self, keyspace: str, queue: str) -> Series:
        """Return what the charts of a queue show; empty lists where there is nothing yet."""
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
