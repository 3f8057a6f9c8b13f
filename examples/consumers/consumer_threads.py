"""A consumer with threads: python examples/consumers/consumer_threads.py, stopped by SIGTERM or Ctrl-C.

Each worker takes a message, does the work and acknowledges, over its own connection. Running work is
finished and acknowledged, also after the signal and while the proxy restarts. A heartbeat extends the
lease of long work. Failed work is retried, each time later.
"""

import os
import random
import signal
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import pymysql


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

stopping = threading.Event()


def work(message: str) -> None:
    print("working on", message)  # your work; a message may come twice


class Session:
    """One connection, reopened whenever it breaks."""

    connection: Any = None

    def run(self, sql: str, *values: object) -> Any:
        """Return rows, or the number of changed rows; while the proxy is away, try again."""
        pause = 0.1
        while True:
            try:
                self.connection = self.connection or pymysql.connect(
                    host=os.environ.get("HOST", "127.0.0.1"),
                    port=int(os.environ.get("PORT", "15306")),
                    user=os.environ.get("USER_NAME", "app"),
                    password=os.environ.get("PASSWORD", "app-password"),
                    database="commerce",
                    autocommit=True,
                    read_timeout=SILENCE_S,
                )
                with self.connection.cursor() as cursor:
                    changed = cursor.execute(sql, values)
                    return cursor.fetchall() if cursor.description else changed
            except (pymysql.MySQLError, OSError) as error:
                self.connection = None
                if error.args and error.args[0] in PERMANENT:
                    raise
                if stopping.is_set() and sql is TAKE:
                    return ()
                print("again in a moment:", error)
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 10)


def consume() -> None:
    session = Session()
    with ThreadPoolExecutor(1) as thread:
        while not stopping.is_set():
            for ident, message in session.run(TAKE):
                job = thread.submit(work, message)
                while not wait([job], HEARTBEAT_S).done:
                    session.run(HEARTBEAT, ident)
                if error := job.exception():
                    print(ident, "failed:", repr(error))
                elif not session.run(ACK, ident):
                    print(ident, "was acknowledged before")


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(consume) for _ in range(WORKERS)]
        wait(workers, return_when=FIRST_EXCEPTION)
        stopping.set()  # one that failed ends all, with its error
    for worker in workers:
        worker.result()
