"""Counters of a table's messages that only grow, from the start of the process on.

A dispatcher counts deliveries, every proxy the acks that it receives, so the counters of all members of a fleet add up.
They count by batch: a drain of a hundred at a time pays a few additions per hundred.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, islice
from operator import add, attrgetter
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey


# Upper bounds of the buckets, in seconds: a wake-up takes about a millisecond, a retry may take hours.
BOUNDS_S: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0),
)
_BOUNDS_NS: Final = tuple(round(bound_s * 10**9) for bound_s in BOUNDS_S)
# How many new waiting messages have their commit time known; beyond that the oldest are left out.
NEW_MAX: Final = 10_000


class Histogram:
    """Times in fixed buckets.

    counts: by bucket, not cumulative; the last one is for times above every bound.
    sum_ns: all times together.
    """

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_ns = 0

    def observe(self, took_ns: int, count: int = 1) -> None:
        """Count *count* times of *took_ns*; a negative one, of a clock that was set back, is 0."""
        took_ns = max(took_ns, 0)
        self.counts[bisect_left(_BOUNDS_NS, took_ns)] += count
        self.sum_ns += took_ns * count

    def add(self, other: Histogram) -> None:
        """Add the counts of *other*."""
        self.counts = list(map(add, self.counts, other.counts))
        self.sum_ns += other.sum_ns

    @property
    def total(self) -> int:
        """Return how many times were counted."""
        return sum(self.counts)

    def quantile_s(self, share: float) -> float | None:
        """Return the time that *share* of all stay below, in seconds; None without any.

        It is interpolated within a bucket, as Prometheus's `histogram_quantile` does; times above
        every bound count as the last bound.
        """
        rank = share * self.total
        below = 0
        for index, upto in enumerate(accumulate(self.counts)):
            if upto >= rank and upto > 0:
                if index == len(BOUNDS_S):
                    return BOUNDS_S[-1]
                low_s = BOUNDS_S[index - 1] if index else 0.0
                part = (rank - below) / (upto - below) if upto > below else 1.0
                # Otherwise 4.97 ms would read 0.0049700000000000005.
                return round(low_s + (BOUNDS_S[index] - low_s) * part, 9)
            below = upto
        return None


@dataclass(slots=True)
class Counters:
    """The counters of a table's messages on one shard, as far as this process saw them.

    delivered: deliveries of messages to a stream.
    redelivered: of these, messages that had been sent before.
    acked: rows that UPDATEs acknowledged, as their answers counted them.
    deleted: rows that DELETEs removed; for a waiting message this is an ack too.
    returned: messages that were claimed, and whose stream left before they were sent.
    parked: messages that were sent often enough, and were parked.
    dead_lettered: messages that were sent often enough, and became dead letters.
    purged: acked rows that were deleted as old enough.
    delivery_latency: the time from the moment a message was due until it was sent. A new one is due when
        its commit is seen; rows written past the proxy, or before there was a stream, have no such moment.
    ack_latency: the time from a delivery to its ack by id.
    """

    delivered: int = 0
    redelivered: int = 0
    acked: int = 0
    deleted: int = 0
    returned: int = 0
    parked: int = 0
    dead_lettered: int = 0
    purged: int = 0
    purge_failures: int = 0
    delivery_latency: Histogram = field(default_factory=Histogram)
    ack_latency: Histogram = field(default_factory=Histogram)
    # When commits of messages that were due at once were seen.
    _new_ns: dict[bytes, int] = field(default_factory=dict)

    def has_new(self, keys: Iterable[MessageKey], now_ns: int) -> None:
        """Note committed messages that are ready from now on."""
        new = self._new_ns
        new.update(dict.fromkeys([key.id for key in keys if key.time_next_ns == 0], now_ns))
        if len(new) > NEW_MAX:
            # Half of them at once: finding the first key of a dict walks over the deleted ones.
            for ident in list(islice(new, len(new) - NEW_MAX // 2)):
                del new[ident]

    def has_sent(self, rows: Sequence[ClaimedRow], now_ns: int) -> None:
        """Count rows that a stream is given."""
        self.delivered += len(rows)
        # Only messages that were sent before, or scheduled for later, have a time.
        for row in [row for row in rows if row.time_next_ns]:
            self.delivery_latency.observe(now_ns - row.time_next_ns)
            if row.epoch:
                self.redelivered += 1
        if new := self._new_ns:
            # Messages that are sent together were often inserted together, so there are few moments.
            counts: dict[int, int] = {}
            for row in rows:
                since_ns = new.pop(row.id, 0)
                if since_ns and not row.time_next_ns:
                    counts[since_ns] = counts.get(since_ns, 0) + 1
            for since_ns, count in counts.items():
                self.delivery_latency.observe(now_ns - since_ns, count)

    def oldest_new_ns(
        self, waits: Callable[[bytes], bool], *, is_ordered: bool = False
    ) -> int | None:
        """Return when the first of the new messages that still wait was committed, if that is known.

        Messages that no longer wait, because they were acked unsent or deleted, are forgotten on the way.

        is_ordered: others wait behind those that *waits* knows, so that nothing can be forgotten.
        """
        new = self._new_ns
        if is_ordered:
            return next((ns for ident, ns in new.items() if waits(ident)), None)
        while new:
            ident = next(iter(new))
            if waits(ident):
                return new[ident]
            del new[ident]
        return None

    def forget_new(self) -> None:
        """Forget since when messages wait, because there is no stream left."""
        self._new_ns.clear()

    @classmethod
    def total(cls, parts: Iterable[Counters]) -> Counters:
        """Return the sum of *parts*."""
        found, counts = cls(), []
        for part in parts:
            counts.append(_counts_of(part))
            found.delivery_latency.add(part.delivery_latency)
            found.ack_latency.add(part.ack_latency)
        for name, several in zip(_COUNTS, zip(*counts, strict=True), strict=False):
            setattr(found, name, sum(several))
        return found


_COUNTS: Final = tuple(each.name for each in fields(Counters) if each.default == 0)
_counts_of: Final = attrgetter(*_COUNTS)
