"""A steady run: an open-loop producer and consumers side by side, then the rest is drained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench import messages
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Lab
from bench.report import percentile


if TYPE_CHECKING:
    from bench.clients import Received, Sent

REST_S = 90.0
WARM_UP_S = 1.0


@dataclass(slots=True)
class Steady:
    """The result of a steady run.

    delivered_per_second: messages per second that reached a consumer while the producer ran.
    from_commit_ms: how long each message took from its COMMIT's reply to the consumer,
        sorted.
    """

    delivered_per_second: float
    from_commit_ms: list[float]
    facts: dict[str, Any]


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
        LabError: the rest was not drained in time.
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
    first_ns: dict[int, int] = {}
    for result in results:
        for id_, arrived in zip(result.ids, result.arrived_ns, strict=True):
            first_ns[id_] = min(arrived, first_ns.get(id_, arrived))
    received = [id_ for result in results for id_ in result.ids]
    duplicates = messages.audited(lab, database, table, sent.ids, received)
    facts |= {"sent": len(sent.ids), "duplicates": duplicates}
    warm_ns = start_ns + int(WARM_UP_S * messages.NS_PER_S)
    from_commit = sorted(
        # A row may arrive before its COMMIT's reply; do not count a negative time.
        max(first_ns[id_] - committed, 0) / 1e6
        for id_, committed in zip(sent.ids, sent.committed_ns, strict=True)
        if committed >= warm_ns
    )
    facts |= {
        f"p{each:g}_ms": round(percentile(from_commit, each), 2) for each in (50, 99, 99.9)
    }
    end_ns = start_ns + int(seconds * messages.NS_PER_S)
    in_window = sum(arrived <= end_ns for arrived in first_ns.values())
    return Steady(in_window / seconds, from_commit, facts)
