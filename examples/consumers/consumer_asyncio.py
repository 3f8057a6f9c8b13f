"""A consumer with asyncio: python examples/consumers/consumer_asyncio.py, stopped by SIGTERM or Ctrl-C.

Each worker takes a message, does the work and acknowledges, over its own connection. Running work is
finished and acknowledged, also after the signal and while the proxy restarts. A heartbeat extends the
lease of long work. Failed work is retried, each time later.
"""

import asyncio
import os
import random
import signal
from typing import Any

import asyncmy
from asyncmy.errors import MySQLError


WORKERS = 4
HEARTBEAT_S = 10  # well below the lease, vt_ack_wait
SILENCE_S = 30  # then a connection is replaced; well above WAIT
TAKE = "STREAM id, message FROM my_message LIMIT 1 WAIT 5"
MINE = "WHERE id = %s AND time_acked IS NULL"
HEARTBEAT = (
    f"UPDATE my_message SET time_next = time_next + INTERVAL {HEARTBEAT_S} SECOND {MINE}"
)
ACK = f"UPDATE my_message SET time_acked = NOW() {MINE}"
# Permanent errors: a wrong password, a missing right, database, table or column, wrong or unsupported SQL.
PERMANENT = {1044, 1045, 1049, 1054, 1064, 1142, 1146, 1235}

stopping = asyncio.Event()


async def work(message: str) -> None:
    print("working on", message)  # your work; a message may come twice


class Session:
    """One connection, reopened whenever it breaks."""

    connection: Any = None

    async def run(self, sql: str, *values: object) -> Any:
        """Return rows, or the number of changed rows; while the proxy is away, try again."""
        pause = 0.1
        while True:
            try:
                self.connection = self.connection or await asyncmy.connect(
                    host=os.environ.get("HOST", "127.0.0.1"),
                    port=int(os.environ.get("PORT", "15306")),
                    user=os.environ.get("USER_NAME", "app"),
                    password=os.environ.get("PASSWORD", "app-password"),
                    db="commerce",
                    autocommit=True,
                    read_timeout=SILENCE_S,
                )
                async with self.connection.cursor() as cursor:
                    changed = await cursor.execute(sql, values or None)
                    return await cursor.fetchall() if cursor.description else changed
            except (MySQLError, OSError, EOFError) as error:
                self.connection = None
                if error.args and error.args[0] in PERMANENT:
                    raise
                if stopping.is_set() and sql is TAKE:
                    return ()
                print("again in a moment:", error)
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 10)


async def consume() -> None:
    session = Session()
    while not stopping.is_set():
        for ident, message in await session.run(TAKE):
            job = asyncio.create_task(work(message))
            while not (await asyncio.wait([job], timeout=HEARTBEAT_S))[0]:
                await session.run(HEARTBEAT, ident)
            if error := job.exception():
                print(ident, "failed:", repr(error))
            elif not await session.run(ACK, ident):
                print(ident, "was acknowledged before")


async def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(consume())


if __name__ == "__main__":
    asyncio.run(main())
