"""Drain of a backlog: every message delivered and acknowledged, durably.

Both sides start connected, with the backlog in a fresh table. The clock runs from the common
start to the last acknowledgement's reply. Each side runs with the number of workers and
processes that is best for it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import messages
from bench.clients import Received, consumers
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Lab
from bench.opponents import loops
from bench.plan import Plan
from bench.report import Figure, Target, figure, ratio_at_least, ratio_at_most


# Creates a table with messages, on a server or through a proxy.
Filled = Callable[[Lab, Endpoint], AbstractContextManager[str]]
DRAIN_S = 180.0
DATABASE = "drain"
BATCH = 100
BATCH_MESSAGES = (100_000, 40_000)
SINGLE_MESSAGES = (20_000, 4_000)
SINGLE_WORKERS = 16


@dataclass(frozen=True, slots=True)
class Workers:
    """A number of workers, and of processes for them."""

    processes: int
    each: int

    def __str__(self) -> str:
        return f"{self.processes} x {self.each}"


BATCH_WORKERS = [Workers(*each) for each in ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (1, 8))]
SINGLE_SPLITS = [Workers(each, SINGLE_WORKERS // each) for each in (1, 2, SINGLE_WORKERS)]


@dataclass(frozen=True, slots=True)
class Drained:
    """One run: messages per second and other facts."""

    per_second: float
    facts: dict[str, Any]


def drain_batch(plan: Plan) -> list[Figure]:
    """Drain with acknowledgements in batches of 100."""
    name, count = "drain, acks in batches of 100", plan.size(*BATCH_MESSAGES)
    target = plan.ratio_at_least(mariadb=2, mysql=1.3)
    return _compare(plan, name, count, BATCH, BATCH_WORKERS, target)


def drain_single(plan: Plan) -> list[Figure]:
    """Drain with every message acknowledged by its own statement, 16 consumers."""
    name, count = "drain, an ack per message, 16 consumers", plan.size(*SINGLE_MESSAGES)
    target = plan.ratio_at_least(mariadb=5, mysql=2.5)
    return _compare(plan, name, count, 1, SINGLE_SPLITS, target)


def drain_early(plan: Plan) -> list[Figure]:
    """Drain as `drain_single`, comparing early acks (answered before they are written) with committed ones."""
    count = plan.size(*SINGLE_MESSAGES)
    early, committed = (
        partial(messages.backlog, database=DATABASE, count=count, settings=f",vt_ack={kind}")
        for kind in ("early", "committed")
    )
    names = "drain, an ack per message, vt_ack = early", "the same, vt_ack = committed"
    workers = Workers(SINGLE_WORKERS, 1)
    return _compare_kinds(plan, *names, ratio_at_least(1), early, committed, workers, count)


def drain_keyed(plan: Plan) -> list[Figure]:
    """Drain 1,000 keys in order with an ack per message, where one key has half of the messages; and the same without keys."""
    count = plan.size(*SINGLE_MESSAGES)
    half = partial(messages.tenant_queue, tenant=messages.ONE_HAS_HALF, count=count)
    keyed, plain = (
        partial(half, database=DATABASE, settings=settings)
        for settings in ("key = tenant, max_per_key = 1, ", "")
    )
    name = f"drain, an ack per message, {messages.TENANTS:,} keys one by one, one with half of the messages"
    names = name, "the same without keys"
    workers = Workers(1, SINGLE_WORKERS)
    return _compare_kinds(plan, *names, ratio_at_least(0.5), keyed, plain, workers, count)


def drain(
    lab: Lab,
    target: Endpoint,
    filled: AbstractContextManager[str],
    members: Callable[[str], Sequence[Work]],
    count: int,
    database: str = DATABASE,
) -> Drained:
    """Measure how fast a table with *count* messages is drained.

    target: the proxy, or the server itself.
    members: creates the worker processes for the named table.
    """
    processes = {} if target == lab.direct else {"proxy": target}
    meter = lab.meter(**processes)
    with filled as table, Fleet() as fleet:
        lab.settle()
        running = [fleet.add(work) for work in members(table)]
        meter.start()
        start_ns = fleet.start()
        fleet.reach(running, count, DRAIN_S)
        facts: dict[str, Any] = dict(meter.stop())
        results: list[Received] = fleet.stop(running)
        received = [id_ for result in results for id_ in result.ids]
        twice = messages.audited(lab, database, table, range(1, count + 1), received)
    elapsed_s = (max(result.last_ack_ns for result in results) - start_ns) / 1e9
    shares = [len(result.ids) for result in results]
    facts |= {"elapsed_s": round(elapsed_s, 3), "duplicates": twice, "shares": shares}
    return Drained(count / elapsed_s, facts)


def _compare_kinds(
    plan: Plan,
    name: str,
    against: str,
    target: Target,
    ours: Filled,
    theirs: Filled,
    workers: Workers,
    count: int,
) -> list[Figure]:
    """Compare two kinds of queue, drained by the same consumers."""
    with plan.lab.keyspace(DATABASE) as proxy:

        def run(what: str, filled: Filled) -> float:
            def members(table: str) -> list[Work]:
                one = consumers(proxy.port, DATABASE, table, count=workers.each, ack_batch=1)
                return [one] * workers.processes

            outcome = drain(plan.lab, proxy, filled(plan.lab, proxy), members, count)
            plan.say(f"  {what}: {outcome.per_second:,.0f}/s {outcome.facts}")
            return outcome.per_second

        rates = plan.interleaved(lambda: run(name, ours), lambda: run(against, theirs))
    return [figure(name, "msg/s", rates[0], against, rates[1], target)]


def _compare(
    plan: Plan, name: str, count: int, batch: int, candidates: Sequence[Workers], target: Target
) -> list[Figure]:
    lab = plan.lab
    with lab.keyspace(DATABASE) as proxy:

        def measured(name: str, target: Endpoint, workers: Workers, count: int) -> Drained:
            def members(table: str) -> list[Work]:
                where = target.port, DATABASE, table
                if target is proxy:
                    one = consumers(*where, count=workers.each, ack_batch=batch)
                else:
                    one = loops(*where, batch=batch, workers=workers.each)
                return [one] * workers.processes

            filled = messages.backlog(lab, target, DATABASE, count)
            outcome = drain(lab, target, filled, members, count)
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
    loop = f"SKIP LOCKED loop, same batch, {their_best} workers"
    cpu, updates = "… processor time of the server for a message", "… row updates for a message"
    rows: list[tuple[str, str, Callable[[Drained], float], str, Target | None]] = [
        (name, "msg/s", lambda run: run.per_second, loop, target),
        (
            cpu,
            "µs",
            lambda run: run.facts["cpu_s_server"] / count * 1e6,
            "the loop's",
            ratio_at_most(1 / 2),
        ),
        (updates, "", lambda run: run.facts["rows_updated"] / count, "the loop's", None),
    ]
    return [
        figure(what, unit, map(of, our_runs), against, map(of, their_runs), goal)
        for what, unit, of, against, goal in rows
    ]
