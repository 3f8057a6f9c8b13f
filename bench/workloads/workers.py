"""Slow workers: whether they share a backlog fairly, and the cost of a worker's death."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from bench import messages
from bench.clients import Received, open_many
from bench.fleet import Signals, Work
from bench.lab import Endpoint
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_most, value_at_most
from bench.workloads.drain import drain


DATABASE = "workers"
EQUAL_WORKERS: Final = 4
EQUAL_WORK_S: Final = 0.05
EQUAL_MESSAGES: Final = (2_000, 400)
# One of two workers drops its connection after ten messages.
MORTAL_WORK_S: Final = 0.005
MORTAL_MESSAGES: Final = 1_000
MORTAL_TAKES: Final = 10


def workers(plan: Plan) -> list[Figure]:
    """Run four workers of 50 ms on one backlog, the first with a head start; then two of 5 ms, one of which dies."""
    lab, count = plan.lab, plan.size(*EQUAL_MESSAGES)
    ideal_s = count * EQUAL_WORK_S / EQUAL_WORKERS
    with lab.keyspace(DATABASE) as proxy:
        equals = [(EQUAL_WORK_S, None)] * EQUAL_WORKERS
        equal = [_shared(plan, proxy, count, equals) for _ in range(plan.pairs)]
        mortals = [(MORTAL_WORK_S, None), (MORTAL_WORK_S, MORTAL_TAKES)]
        mortal = [_shared(plan, proxy, MORTAL_MESSAGES, mortals) for _ in range(plan.pairs)]
    (seconds, twice), (mortal_s, _) = zip(*equal, strict=True), zip(*mortal, strict=True)
    four, quarter = (
        f"four workers of 50 ms, {count:,} messages",
        "each a quarter, without a pause",
    )
    dies = "a worker dies with what it holds: all 1,000 done after"
    return [
        figure(four, "s", seconds, quarter, [ideal_s] * len(equal), ratio_at_most(1.15)),
        figure("… sent twice", "msg", twice, target=value_at_most(0)),
        figure(dies, "s", mortal_s, target=value_at_most(8)),
    ]


def _shared(
    plan: Plan, proxy: Endpoint, count: int, kinds: Sequence[tuple[float, int | None]]
) -> tuple[float, int]:
    """Return the seconds until everything is acknowledged, and the number of redeliveries.

    kinds: for each worker, the seconds of work per message, and after how many messages it drops its connection.
    """

    def members(table: str) -> list[Work]:
        return [_worker(proxy.port, table, *kind) for kind in kinds]

    filled = messages.backlog(plan.lab, proxy, DATABASE, count)
    facts = drain(plan.lab, proxy, filled, members, count, DATABASE).facts
    plan.say(f"  {facts}")
    return facts["elapsed_s"], facts["duplicates"]


def _worker(port: int, table: str, work_s: float, takes: int | None) -> Work:
    async def work(signals: Signals) -> Received:
        received = Received()
        stream, acks = await open_many(port, DATABASE, 2)
        await signals.start()
        await stream.stream(f"STREAM id, message FROM {table}")

        async def consume() -> None:
            while True:
                for _, rows in await stream.batches():
                    for row in rows:
                        id_ = int(row[0] or 0)
                        received.add([id_], time.time_ns())
                        if len(received.ids) == takes:
                            stream.close()
                            return
                        await asyncio.sleep(work_s)
                        answer = await acks.query(messages.ack(table, [id_], time.time_ns()))
                        received.last_ack_ns = time.time_ns()
                        signals.count(answer.affected)

        await signals.until_stopped(consume())
        for one in (stream, acks):
            one.close()
        return received

    return work
