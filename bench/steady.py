"""A steady run: an open-loop producer and consumers side by side, then the rest is drained."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench import messages
from bench.clients import Received, Sent
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Lab
from bench.report import percentile


REST_S = 90.0
WARM_UP_S = 1.0


@dataclass(slots=True)
class Steady:
    """What a steady run gave.

    delivered_per_second: messages that reached a consumer while the producer ran, a second.
    from_commit_ms, from_schedule_ms: how long each message took to the consumer, in order of
        size: from its COMMIT's answer, and from the moment the producer's schedule gave it.
    """

    delivered_per_second: float
    from_commit_ms: list[float]
    from_schedule_ms: list[float]
    facts: dict[str, Any] = field(default_factory=dict)

    def commit_ms(self, percent: float) -> float:
        """Return a percentile of commit → row."""
        return percentile(self.from_commit_ms, percent)

    def schedule_ms(self, percent: float) -> float:
        """Return a percentile of schedule → row."""
        return percentile(self.from_schedule_ms, percent)


def steady(
    lab: Lab,
    target: Endpoint,
    database: str,
    table: str,
    producer: Work,
    consumers: Sequence[Work],
    *,
    seconds: float,
    after_window: Callable[[], None] = lambda: None,
) -> Steady:
    """Run *producer* for *seconds* next to *consumers*, drain the rest, audit.

    after_window: called once the producer is done, before the rest is drained.

    Raises:
        AuditError: a message was lost.
        FleetError: the rest was not drained in time.
    """
    processes = {} if target == lab.direct else {"proxy": target}
    meter = lab.meter(**processes)
    with Fleet() as fleet:
        readers = [fleet.add(work) for work in consumers]
        source = fleet.add(producer)
        meter.start()
        start_ns = fleet.start()
        sent: Sent = source.result(seconds + REST_S)
        facts: dict[str, Any] = dict(meter.stop())
        after_window()
        results: list[Received] = fleet.finish(readers, len(sent.ids), REST_S)
    ids: array[int] = array("q")
    arrived_ns: array[int] = array("q")
    for result in results:
        ids += result.ids
        arrived_ns += result.arrived_ns
    outcome = messages.audited(lab, database, table, sent.ids, ids)
    facts |= {"sent": len(sent.ids), "duplicates": outcome.duplicates}
    return _measured(sent, ids, arrived_ns, start_ns, seconds, facts)


def _measured(
    sent: Sent,
    ids: "array[int]",
    arrived_ns: "array[int]",
    start_ns: int,
    seconds: float,
    facts: dict[str, Any],
) -> Steady:
    first_ns: dict[int, int] = {}
    for id_, arrived in zip(ids, arrived_ns, strict=True):
        first_ns[id_] = min(arrived, first_ns.get(id_, arrived))
    counted_from_ns = start_ns + int(WARM_UP_S * messages.NS_PER_S)
    from_commit, from_schedule = [], []
    for id_, intended, committed in zip(
        sent.ids, sent.intended_ns, sent.committed_ns, strict=True
    ):
        if intended >= counted_from_ns:
            # A row may overtake its COMMIT's answer; that is no negative time.
            from_commit.append(max(first_ns[id_] - committed, 0) / 1e6)
            from_schedule.append((first_ns[id_] - intended) / 1e6)
    end_ns = start_ns + int(seconds * messages.NS_PER_S)
    in_window = sum(arrived <= end_ns for arrived in first_ns.values())
    steady = Steady(in_window / seconds, sorted(from_commit), sorted(from_schedule), facts)
    steady.facts |= {
        f"{name}_p{percent:g}_ms": round(percentile(values, percent), 2)
        for name, values in (
            ("commit", steady.from_commit_ms),
            ("schedule", steady.from_schedule_ms),
        )
        for percent in (50, 99, 99.9)
    }
    return steady
