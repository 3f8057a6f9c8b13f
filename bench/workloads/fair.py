"""A tenant with few messages next to the flood of another, where keys take turns: how long its messages wait."""

import asyncio
import time
from typing import Final

from bench import messages
from bench.clients import Received, open_many
from bench.fleet import Fleet, Signals, Work
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most


DATABASE = "fair"
SETTINGS: Final = "key = tenant, fair = on, ack_wait = 600, batch_size = 100"
FLOOD: Final = (1_000_000, 300_000)
ROUNDS: Final = (20, 10)
PAUSE_S: Final = 0.3
OF_THE_SMALL: Final = 10
ACK_BATCH: Final = 10
WAIT_MS_MAX: Final = 50
END_S: Final = 120.0


def fair(plan: Plan) -> list[Figure]:
    """Ten messages of a small tenant every 300 ms, while a consumer drains a flood: from COMMIT to the last of the ten."""
    lab, flood, rounds = plan.lab, plan.size(*FLOOD), plan.size(*ROUNDS)
    waits: list[list[float]] = []
    with lab.keyspace(DATABASE) as proxy:
        for _ in range(plan.pairs):
            table = messages.tenant_queue(lab, proxy, DATABASE, SETTINGS, "1", flood)
            with Fleet() as fleet:
                worker = fleet.add(_beside(proxy.port, table, flood, rounds))
                fleet.start()
                found, received = fleet.finish([worker], rounds, END_S)[0]
            small = range(flood + 1, flood + 1 + rounds * OF_THE_SMALL)
            messages.audited(
                lab, DATABASE, table, sorted({*received.ids, *small}), received.ids
            )
            plan.say(f"  {[round(one, 1) for one in found]} ms, {len(received.ids):,} in all")
            waits.append(sorted(found))
            proxy.execute(f"DROP QUEUE {table}", DATABASE)
    return [
        figure(
            f"ten messages next to a flood of {flood:,}: the longest wait of {rounds} rounds",
            "ms",
            (each[-1] for each in waits),
            target=value_at_most(WAIT_MS_MAX),
        ),
        figure("… the middle one", "ms", (each[len(each) // 2] for each in waits)),
    ]


def _beside(port: int, table: str, flood: int, rounds: int) -> Work:
    async def tenants(signals: Signals) -> tuple[list[float], Received]:
        received, waits = Received(), []
        arrived: asyncio.Queue[int] = asyncio.Queue()
        work: asyncio.Queue[int | None] = asyncio.Queue()
        stream, acks, producer = await open_many(port, DATABASE, 3)
        await signals.start()
        await stream.stream(f"STREAM id, message FROM {table}")
        is_over = asyncio.Event()

        async def receive() -> None:
            # What arrives is noted at once, whatever is still to be acknowledged.
            while not is_over.is_set():
                for _, rows in await stream.batches():
                    now_ns = time.time_ns()
                    for row in rows:
                        id_ = int(row[0] or 0)
                        work.put_nowait(id_)
                        received.add([id_], now_ns)
                        if id_ > flood:
                            arrived.put_nowait(now_ns)
            work.put_nowait(None)

        async def acknowledge() -> None:
            while (id_ := await work.get()) is not None:
                ids = [id_]
                while len(ids) < ACK_BATCH and not work.empty():
                    if (more := work.get_nowait()) is None:
                        work.put_nowait(None)
                        break
                    ids.append(more)
                answer = await acks.query(messages.ack(table, ids, time.time_ns()))
                received.note_ack(answer.affected)

        async def produce() -> None:
            await asyncio.sleep(1)
            for number in range(rounds):
                first = flood + 1 + number * OF_THE_SMALL
                values = ", ".join(
                    f"({first + each}, 2, 'small')" for each in range(OF_THE_SMALL)
                )
                await producer.query(
                    f"INSERT INTO {table} (id, tenant, message) VALUES {values}"
                )
                committed_ns = time.time_ns()
                last_ns = max([await arrived.get() for _ in range(OF_THE_SMALL)])
                waits.append((last_ns - committed_ns) / 1e6)
                await asyncio.sleep(PAUSE_S)
            is_over.set()

        await asyncio.gather(receive(), acknowledge(), produce())
        signals.count(rounds)
        await signals.stopping.wait()
        for one in (stream, acks, producer):
            one.close()
        return waits, received

    return tenants
