"""A consumer that takes one message at a time, compared with a SELECT on the same connection."""

import time
from typing import Final

from bench import messages
from bench.clients import open_many
from bench.fleet import Fleet, Signals, Work
from bench.plan import Plan
from bench.report import Figure, percentile_figures, ratio_at_most


DATABASE = "dequeue"
MESSAGES: Final = (5_000, 1_500)
WARM_UP: Final = 100
END_S: Final = 120.0

Asked = tuple[list[int], list[float], list[float]]


def dequeue(plan: Plan) -> list[Figure]:
    """Run ``STREAM … LIMIT 1`` on a backlog, a ``SELECT`` of that message by its key, and its ack, in turn."""
    lab, count = plan.lab, plan.size(*MESSAGES)
    streams: list[list[float]] = []
    selects: list[list[float]] = []
    with lab.keyspace(DATABASE) as proxy:
        for _ in range(plan.pairs):
            with messages.backlog(lab, proxy, DATABASE, count) as table, Fleet() as fleet:
                worker = fleet.add(_one_by_one(proxy.port, table, count))
                fleet.start()
                received, streams_ms, selects_ms = worker.result(END_S)
                messages.audited(lab, DATABASE, table, range(1, count + 1), received)
            streams.append(sorted(streams_ms[WARM_UP:]))
            selects.append(sorted(selects_ms[WARM_UP:]))
    against, goals = (
        "SELECT by primary key, same connection",
        ((50, None), (99, ratio_at_most(1.5))),
    )
    return percentile_figures("STREAM … LIMIT 1", streams, against, selects, *goals)


def _one_by_one(port: int, table: str, count: int) -> Work:
    """Return a client that drains *count* messages; its result is their ids and the milliseconds of each STREAM and SELECT."""

    async def work(signals: Signals) -> Asked:
        (connection,) = await open_many(port, DATABASE, 1)
        received: list[int] = []
        streams_ms: list[float] = []
        selects_ms: list[float] = []
        await signals.start()
        while len(received) < count:
            begun = time.perf_counter()
            answer = await connection.query(f"STREAM id, message FROM {table} LIMIT 1 WAIT 1")
            streams_ms.append((time.perf_counter() - begun) * 1000)
            ident = int(answer.rows[0][0] or 0)
            begun = time.perf_counter()
            await connection.query(f"SELECT id, message FROM {table} WHERE id = {ident}")
            selects_ms.append((time.perf_counter() - begun) * 1000)
            await connection.query(messages.ack(table, [ident], time.time_ns()))
            received.append(ident)
        connection.close()
        return received, streams_ms, selects_ms

    return work
