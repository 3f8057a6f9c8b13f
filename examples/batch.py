"""Runs a batch with a last step: python examples/batch.py [how many parts].

One transaction inserts the parts and the last step. Two workers take due messages. The last step is due only
when every part is acknowledged, by either worker.
"""

import os
import sys
import threading
import uuid

import pymysql


QUEUE = """
CREATE QUEUE IF NOT EXISTS import_step (
  tenant BIGINT NOT NULL, batch VARCHAR(36), finishes VARCHAR(36), job VARCHAR(100)
) SHARD BY (tenant) WITH (group = batch, after = finishes)
"""
TENANT = 7  # all messages of a batch are on one shard, that of the tenant


def connect() -> "pymysql.Connection[pymysql.cursors.Cursor]":
    return pymysql.connect(
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "15306")),
        user=os.environ.get("USER_NAME", "app"),
        password=os.environ.get("PASSWORD", "app-password"),
        database="commerce",
        autocommit=True,
    )


def work(name: str, batch: str, is_done: threading.Event) -> None:
    with connect() as connection, connection.cursor() as cursor:
        while not is_done.is_set():
            cursor.execute("STREAM id, finishes, job FROM import_step LIMIT 1 WAIT 1")
            for ident, finishes, job in cursor.fetchall():
                print(f"{name}: {job}\n", end="", flush=True)
                cursor.execute(
                    "UPDATE import_step SET time_acked = NOW() WHERE id = %s", (ident,)
                )
                if finishes == batch:
                    is_done.set()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    batch = str(uuid.uuid4())
    parts = [(TENANT, batch, None, f"part {n} of {count}") for n in range(1, count + 1)]
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(QUEUE)
        connection.begin()
        cursor.executemany(
            "INSERT INTO import_step (tenant, batch, finishes, job) VALUES (%s, %s, %s, %s)",
            [*parts, (TENANT, None, batch, "mail the report")],
        )
        connection.commit()
    is_done = threading.Event()
    workers = [
        threading.Thread(target=work, args=(name, batch, is_done)) for name in ("ada", "bob")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
