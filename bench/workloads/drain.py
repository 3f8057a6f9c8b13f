"""Drain of a backlog: every message delivered and acknowledged, durably.

Both sides start connected, with the backlog in a fresh table; the clock runs from the common
start to the last acknowledgement's answer. Each side runs with the number of workers, and of
processes for them, that is best for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import messages
from bench.clients import Received, consumers
from bench.fleet import Fleet, FleetError, Work
from bench.lab import Endpoint, Keyspace
from bench.opponents import drain_loop
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target


DRAIN_S = 180.0
DATABASE = "drain"
BATCH = 100
BATCH_MESSAGES = (100_000, 20_000)
SINGLE_MESSAGES = (10_000, 2_000)
SINGLE_WORKERS = 16


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers, in how many processes."""

    processes: int
    each: int

    def __str__(self) -> str:
        return f"{self.processes} × {self.each}"


BATCH_WORKERS = (Workers(1, 1), Workers(2, 1), Workers(4, 1), Workers(1, 2), Workers(1, 4))
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
        target=Target(Goal.AT_LEAST, 1),
    )


def drain_single(plan: Plan) -> list[Figure]:
    """Drain with every message acknowledged by its own statement, 16 consumers."""
    return _compare(
        plan,
        "drain, an ack per message, 16 consumers",
        count=plan.size(*SINGLE_MESSAGES),
        batch=1,
        candidates=SINGLE_SPLITS,
        target=Target(Goal.AT_LEAST, 3),
    )


def drain(
    plan: Plan,
    target: Endpoint,
    work: Callable[[str, int], Work],
    *,
    workers: Workers,
    count: int,
    comment: bool,
) -> Drained:
    """Load *count* messages into a fresh table and measure how fast they are drained.

    target: where CREATE TABLE goes, so that a proxy knows its table at once.
    work: makes the worker process of so many workers on the named table.
    comment: whether it is a message table.
    """
    lab = plan.lab
    table = "queue"
    with lab.database(DATABASE + "_run") as scratch:
        # Nothing but a name to hang the old table on: dropping it is not part of the next run.
        del scratch
    _recreate(plan, target, table, comment=comment)
    messages.load(lab, DATABASE, table, count)
    lab.settle()
    processes = {} if target == lab.direct else {"proxy": target}
    meter = lab.meter(**processes)
    with Fleet() as fleet:
        members = [fleet.add(work(table, workers.each)) for _ in range(workers.processes)]
        meter.start()
        start_ns = fleet.start()
        if not fleet.wait_for(members, count, DRAIN_S):
            done = sum(member.counted for member in members)
            raise FleetError(f"only {done} of {count} messages were drained in {DRAIN_S:.0f} s")
        facts = meter.stop()
        results: list[Received] = fleet.stop(members)
    received = [id_ for result in results for id_ in result.ids]
    outcome = messages.audited(lab, DATABASE, table, range(1, count + 1), received)
    elapsed_s = (max(result.last_ack_ns for result in results) - start_ns) / 1e9
    facts |= {"elapsed_s": round(elapsed_s, 3), "duplicates": outcome.duplicates}
    return Drained(count / elapsed_s, facts)
