"""How precisely scheduled messages are delivered while a million others are parked far in the future."""

import random
import time

from bench import messages
from bench.clients import Received, consumers, open_many
from bench.fleet import Fleet, LabError, Signals, Work
from bench.lab import Endpoint, Lab
from bench.plan import Plan
from bench.report import Figure, figure, percentile, value_at_most


DATABASE = "lateness"
PARKED = (1_000_000, 100_000)
DUE_PER_SECOND = 500
HEAD_START_S = 3.0
DUE_S = (20, 8)
REST_S = 30.0
ROWS_PER_INSERT = 100
CONSUMERS = 4
SEED = 20_260_801


def lateness(plan: Plan) -> list[Figure]:
    """Send messages due at random moments; measure how late they are, and that none is early."""
    lab = plan.lab
    parked = plan.size(*PARKED)
    due_s = plan.size(*DUE_S)
    count = due_s * DUE_PER_SECOND
    late_ms: list[list[float]] = []
    with lab.keyspace(DATABASE) as proxy, messages.fresh_table(lab, proxy, DATABASE) as table:
        plan.say(f"  parking {parked:,} messages")
        park(lab, DATABASE, table, parked)
        received: list[int] = []
        for run in range(plan.pairs):
            first_id = run * count + 1
            result, due_ns = _round(proxy, table, first_id, count, due_s)
            received += result.ids
            late_ms.append(
                sorted(
                    (arrived - due_ns[id_ - first_id]) / 1e6
                    for id_, arrived in zip(result.ids, result.arrived_ns, strict=True)
                )
            )
            most_ms = {
                f"p{each}": round(percentile(late_ms[-1], each), 2) for each in (50, 99, 100)
            }
            plan.say(f"  {count:,} due, ms: {most_ms}")
        messages.audited(lab, DATABASE, table, range(1, plan.pairs * count + 1), received)
    early = [sum(late < 0 for late in one) for one in late_ms]
    name, most = f"lateness, {parked:,} parked", value_at_most(2)
    return [
        figure(f"{name}, p99", "ms", (percentile(one, 99) for one in late_ms), target=most),
        figure(f"{name}, max", "ms", (one[-1] for one in late_ms)),
        figure(f"{name}, delivered early", "msg", early, target=value_at_most(0)),
    ]


def park(lab: Lab, database: str, table: str, count: int) -> None:
    """Insert *count* messages with ids below 0 that are due in a month or later."""
    far_ns = time.time_ns() + 60 * 86_400 * messages.NS_PER_S
    values = f"-n, {far_ns} - n * 1000000, CONCAT('{{\"number\": ', n, '}}')"
    messages.fill(lab, database, table, "id, time_next, message", values, count)


def _round(
    proxy: Endpoint, table: str, first_id: int, count: int, due_s: float
) -> tuple[Received, list[int]]:
    """Send *count* messages, due at random within *due_s* from soon on, and receive them all."""
    with Fleet() as fleet:
        where = proxy.port, DATABASE, table
        many = consumers(*where, count=CONSUMERS, ack_batch=100, stream_first=True)
        reader = fleet.add(many)
        source = fleet.add(_scheduler(proxy.port, table, first_id, count, due_s))
        fleet.start()
        due_ns: list[int] = source.result(HEAD_START_S + REST_S)
        (received,) = fleet.finish([reader], count, HEAD_START_S + due_s + REST_S)
    return received, due_ns


def _scheduler(port: int, table: str, first_id: int, count: int, due_s: float) -> Work:
    dice = random.Random(SEED + first_id)

    async def work(signals: Signals) -> list[int]:
        (connection,) = await open_many(port, DATABASE, 1)
        start_ns = await signals.start() + int(HEAD_START_S * messages.NS_PER_S)
        span_ns = int(due_s * messages.NS_PER_S)
        due_ns = [start_ns + dice.randrange(span_ns) for _ in range(count)]
        for first in range(0, count, ROWS_PER_INSERT):
            some = due_ns[first : first + ROWS_PER_INSERT]
            ids = range(first_id + first, first_id + first + len(some))
            await connection.query(messages.insert(table, ids, some))
        if time.time_ns() > start_ns:
            raise LabError(f"{count} messages could not be sent in {HEAD_START_S} s")
        connection.close()
        return due_ns

    return work
