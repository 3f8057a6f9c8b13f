"""Drain of a backlog: every message delivered and acknowledged, durably.

Both sides start connected, with the backlog in a fresh table; the clock runs from the common
start to the last acknowledgement's answer. Each side runs with the number of workers, and of
processes for them, that is best for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench import messages
from bench.clients import Received, consumers
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Lab
from bench.opponents import drain_loop
from bench.plan import Plan
from bench.report import Figure, Target, figure, ratio_at_least, ratio_at_most


DRAIN_S = 180.0
DATABASE = "drain"
BATCH = 100
BATCH_MESSAGES = (100_000, 40_000)
SINGLE_MESSAGES = (20_000, 4_000)
SINGLE_WORKERS = 16


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers, in how many processes."""

    processes: int
    each: int

    def __str__(self) -> str:
        return f"{self.processes} x {self.each}"


BATCH_WORKERS = (
    Workers(1, 1),
    Workers(2, 1),
    Workers(4, 1),
    Workers(1, 2),
    Workers(1, 4),
    Workers(1, 8),
)
SINGLE_SPLITS = (
    Workers(1, SINGLE_WORKERS),
    Workers(2, SINGLE_WORKERS // 2),
    Workers(SINGLE_WORKERS, 1),
)


@dataclass(frozen=True, slots=True)
class Drained:
    """One run: messages a second, and what else is worth knowing of it."""

    per_second: float
    facts: dict[str, float]


def drain_batch(plan: Plan) -> list[Figure]:
    """Drain with acknowledgements in batches of 100."""
    return _compare(
        plan,
        "drain, acks in batches of 100",
        count=plan.size(*BATCH_MESSAGES),
        batch=BATCH,
        candidates=BATCH_WORKERS,
        target=plan.ratio_at_least(mariadb=2, mysql=1.3),
    )


def drain_single(plan: Plan) -> list[Figure]:
    """Drain with every message acknowledged by its own statement, 16 consumers."""
    return _compare(
        plan,
        "drain, an ack per message, 16 consumers",
        count=plan.size(*SINGLE_MESSAGES),
        batch=1,
        candidates=SINGLE_SPLITS,
        target=plan.ratio_at_least(mariadb=5, mysql=2.5),
    )


def drain_early(plan: Plan) -> list[Figure]:
    """Drain as `drain_single`, with acks that are answered before they are written, and with such as are committed."""
    lab, count = plan.lab, plan.size(*SINGLE_MESSAGES)
    workers = Workers(SINGLE_WORKERS, 1)
    with lab.keyspace(DATABASE) as proxy:

        def run(kind: str) -> Drained:
            def work(table: str, each: int) -> Work:
                return consumers(proxy.port, DATABASE, table, count=each, ack_batch=1)

            outcome = drain(
                lab, proxy, work, workers=workers, count=count, settings=f",vt_ack={kind}"
            )
            plan.say(f"  {kind}: {outcome.per_second:,.0f}/s {outcome.facts}")
            return outcome

        early, committed = plan.interleaved(lambda: run("early"), lambda: run("committed"))
    return [
        figure(
            "drain, an ack per message, vt_ack = early",
            "msg/s",
            (each.per_second for each in early),
            "the same, vt_ack = committed",
            (each.per_second for each in committed),
            ratio_at_least(1),
            messages=count,
            our_workers=str(workers),
            our_runs=[each.facts for each in early],
            their_runs=[each.facts for each in committed],
        )
    ]


def drain(
    lab: Lab,
    target: Endpoint,
    work: Callable[[str, int], Work],
    *,
    workers: Workers,
    count: int,
    settings: str = "",
) -> Drained:
    """Load *count* messages into a fresh table and measure how fast they are drained.

    target: the proxy, or the server itself.
    work: makes the worker process of so many workers on the named table.
    settings: further keys of the table's comment, each with a comma before it.
    """
    processes = {} if target == lab.direct else {"proxy": target}
    meter = lab.meter(**processes)
    with (
        messages.fresh_table(lab, target, DATABASE, settings=settings) as table,
        Fleet() as fleet,
    ):
        messages.load(lab, DATABASE, table, count)
        lab.settle()
        members = [fleet.add(work(table, workers.each)) for _ in range(workers.processes)]
        meter.start()
        start_ns = fleet.start()
        fleet.reach(members, count, DRAIN_S)
        facts = meter.stop()
        results: list[Received] = fleet.stop(members)
        received = [id_ for result in results for id_ in result.ids]
        outcome = messages.audited(lab, DATABASE, table, range(1, count + 1), received)
    elapsed_s = (max(result.last_ack_ns for result in results) - start_ns) / 1e9
    facts |= {"elapsed_s": round(elapsed_s, 3), "duplicates": outcome.duplicates}
    return Drained(count / elapsed_s, facts)


def _compare(
    plan: Plan,
    name: str,
    *,
    count: int,
    batch: int,
    candidates: Sequence[Workers],
    target: Target,
) -> list[Figure]:
    lab = plan.lab
    with lab.keyspace(DATABASE) as proxy:

        def measured(name: str, target: Endpoint, workers: Workers, count: int) -> Drained:
            where = target.port, DATABASE

            def work(table: str, each: int) -> Work:
                if target is proxy:
                    return consumers(*where, table, count=each, ack_batch=batch)
                return drain_loop(*where, table, batch=batch, workers=each)

            outcome = drain(lab, target, work, workers=workers, count=count)
            plan.say(f"  {name}, {workers}: {outcome.per_second:,.0f}/s {outcome.facts}")
            return outcome

        ours = partial(measured, "streamfrom", proxy)
        theirs = partial(measured, "the loop", lab.direct)
        trial = count // 2
        our_best = max(candidates, key=lambda one: ours(one, trial).per_second)
        their_best = max(candidates, key=lambda one: theirs(one, trial).per_second)
        our_runs, their_runs = plan.interleaved(
            lambda: ours(our_best, count), lambda: theirs(their_best, count)
        )
    return [
        figure(
            name,
            "msg/s",
            (run.per_second for run in our_runs),
            f"SKIP LOCKED loop, same batch, {their_best} workers",
            (run.per_second for run in their_runs),
            target,
            messages=count,
            our_workers=str(our_best),
            their_workers=str(their_best),
            our_runs=[run.facts for run in our_runs],
            their_runs=[run.facts for run in their_runs],
        ),
        figure(
            "… processor time of the server for a message",
            "µs",
            (run.facts["cpu_s_server"] / count * 1e6 for run in our_runs),
            "the loop's",
            (run.facts["cpu_s_server"] / count * 1e6 for run in their_runs),
            ratio_at_most(1 / 2),
        ),
        figure(
            "… row updates for a message",
            "",
            (run.facts["rows_updated"] / count for run in our_runs),
            "the loop's",
            (run.facts["rows_updated"] / count for run in their_runs),
        ),
    ]
