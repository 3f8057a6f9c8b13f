"""The opponents: the tuned SKIP LOCKED loop that every team would write, and pollers.

The loop gets the best conditions: READ COMMITTED, a claim by the poller index, both writes by primary
key, no round trip for BEGIN or COMMIT (they travel with their statements), and the lean client in
as many processes as make it fastest (`bench.workloads.drain` tries several). Its table has the
poller index in ascending order: backward scans with SKIP LOCKED are slow, on MySQL up to 15 times.
"""

import asyncio
import time
from typing import Final

from bench import messages
from bench.clients import Received, open_many
from bench.connection import Connection
from bench.fleet import Signals, Work


LEASE_NS: Final = 120 * messages.NS_PER_S
POLL_S: Final = 0.1
POLL_BATCH: Final = 500


def loops(
    port: int,
    database: str,
    table: str,
    *,
    workers: int,
    batch: int = POLL_BATCH,
    poll: bool = False,
) -> Work:
    """Return *workers* loops that claim *batch* rows and ack them. Without rows they return or, with *poll*, retry every 100 ms."""

    enough = batch if poll else 1

    async def work(signals: Signals) -> Received:
        received = Received()
        pool = await open_many(port, database, workers)
        for connection in pool:
            await connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        await signals.start()

        async def drain(connection: Connection) -> None:
            while await _turn(connection, table, batch, received, signals) >= enough:
                pass

        async def look(number: int, connection: Connection) -> None:
            # Spread over the interval, like workers started at random moments.
            await asyncio.sleep(POLL_S * number / workers)
            while True:
                # A poll that finds nothing is one statement and locks nothing.
                if (await connection.query(_select("1", table, 1))).rows:
                    await drain(connection)
                await asyncio.sleep(POLL_S)

        if poll:
            await signals.until_stopped(*(look(*one) for one in enumerate(pool)))
        else:
            await asyncio.gather(*map(drain, pool))
        for connection in pool:
            connection.close()
        return received

    return work


async def _turn(
    connection: Connection, table: str, batch: int, received: Received, signals: Signals
) -> int:
    """Claim, receive and acknowledge up to *batch* messages; return their number."""
    select = _select("id, message", table, batch)
    answer = await connection.query(f"BEGIN; {select} FOR UPDATE SKIP LOCKED")
    if not answer.rows:
        # It may still have locked index records of skipped rows.
        await connection.query("COMMIT")
        return 0
    ids = [int(row[0] or 0) for row in answer.rows]
    await connection.query(
        f"UPDATE {table} SET time_next = {time.time_ns() + LEASE_NS}, epoch = epoch + 1"
        f" WHERE id IN ({','.join(map(str, ids))}); COMMIT"
    )
    received.add(ids, time.time_ns())
    acked = await connection.query(messages.ack(table, ids, time.time_ns()))
    received.last_ack_ns = time.time_ns()
    signals.count(acked.affected)
    return len(ids)


def _select(columns: str, table: str, limit: int) -> str:
    return (
        f"SELECT {columns} FROM {table} WHERE time_acked IS NULL AND priority = 50"
        f" AND time_next <= {time.time_ns()} ORDER BY time_next LIMIT {limit}"
    )
