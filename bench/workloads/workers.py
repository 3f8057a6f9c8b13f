"""Workers that take their time: whether they share a backlog fairly, and what the death of one costs."""

import asyncio
import time
from typing import Final

from bench import messages
from bench.clients import Received, open_many
from bench.fleet import Fleet, FleetError, Signals, Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target


DATABASE = "workers"
END_S: Final = 120.0
EQUAL_WORKERS: Final = 4
EQUAL_WORK_S: Final = 0.05
EQUAL_MESSAGES: Final = (2_000, 400)
# One of two drops its connection after ten messages.
MORTAL_WORK_S: Final = 0.005
MORTAL_MESSAGES: Final = 1_000
MORTAL_TAKES: Final = 10


def workers(plan: Plan) -> list[Figure]:
    """Four workers of 50 ms on one backlog, the first with a head start; two of 5 ms, one of which dies."""
    lab, count = plan.lab, plan.size(*EQUAL_MESSAGES)
    ideal_s = count * EQUAL_WORK_S / EQUAL_WORKERS
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):
        equal = [
            shared(plan, proxy, DATABASE, count, [(EQUAL_WORK_S, None)] * EQUAL_WORKERS)
            for _ in range(plan.pairs)
        ]
        mortal = [
            shared(
                plan,
                proxy,
                DATABASE,
                MORTAL_MESSAGES,
                [(MORTAL_WORK_S, None), (MORTAL_WORK_S, MORTAL_TAKES)],
            )
            for _ in range(plan.pairs)
        ]
    return [
        Figure(
            f"four workers of 50 ms, {count:,} messages",
            "s",
            Series.of(seconds for seconds, _ in equal),
            "each a quarter, without a pause",
            Series.of(ideal_s for _ in equal),
            Target(Goal.AT_MOST, 1.15),
        ),
        Figure(
            "… sent twice",
            "msg",
            Series.of(twice for _, twice in equal),
            target=Target(Goal.AT_MOST, 0, of_ratio=False),
        ),
        Figure(
            "a worker dies with what it holds: all 1,000 done after",
            "s",
            Series.of(seconds for seconds, _ in mortal),
            target=Target(Goal.AT_MOST, 8, of_ratio=False),
        ),
    ]


def shared(
    plan: Plan,
    proxy: Endpoint,
    database: str,
    count: int,
    kinds: list[tuple[float, int | None]],
) -> tuple[float, int]:
    """Return after how many seconds all is acknowledged, and how many deliveries were not the first.

    kinds: of each worker, how long it works on a message, and after how many it drops its connection.
    """
    lab = plan.lab
    with messages.fresh_table(lab, proxy, database) as table, Fleet() as fleet:
        messages.load(lab, database, table, count)
        members = [fleet.add(_worker(proxy.port, database, table, *kind)) for kind in kinds]
        start_ns = fleet.start()
        if not fleet.wait_for(members, count, END_S):
            raise FleetError(f"{count} messages were not done in {END_S:.0f} s")
        results: list[Received] = fleet.stop(members)
        received = [id_ for result in results for id_ in result.ids]
        outcome = messages.audited(lab, database, table, range(1, count + 1), received)
    seconds = (max(result.last_ack_ns for result in results) - start_ns) / messages.NS_PER_S
    shares = [len(result.ids) for result in results]
    plan.say(f"  {shares} messages: {seconds:.2f} s, {outcome.duplicates} sent twice")
    return seconds, outcome.duplicates


def _worker(port: int, database: str, table: str, work_s: float, takes: int | None) -> Work:
    async def work(signals: Signals) -> Received:
        received = Received()
        stream, acks = await open_many(port, database, 2)
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
                        received.note_ack(answer.affected)
                        signals.count(answer.affected)

        await signals.until_stopped(consume())
        for one in (stream, acks):
            one.close()
        return received

    return work
