"""Receives messages and acknowledges them: python examples/consumer.py, stopped by SIGTERM or Ctrl-C.

You can use any MySQL driver that reads rows one by one, because STREAM returns an endless result set.
It keeps the connection busy, so acknowledge over a second one. You can run several consumers: each
message goes to one of them, and if one crashes, others get its messages. This program ends when the
proxy does; examples/consumers has programs that reconnect.
"""

import os
import signal
from typing import Any

import pymysql
from pymysql.cursors import SSCursor


QUERY_INTERRUPTED = 1317  # ER_QUERY_INTERRUPTED


def connect(**options: Any) -> "pymysql.connections.Connection[Any]":
    return pymysql.connect(
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "15306")),
        user=os.environ.get("USER_NAME", "app"),
        password=os.environ.get("PASSWORD", "app-password"),
        database="commerce",
        autocommit=True,
        **options,
    )


def work(message: Any) -> None:
    print("working on", message)


def main() -> None:
    stream, acks = connect(cursorclass=SSCursor), connect()
    rows, done = stream.cursor(), acks.cursor()

    def stop(*_: object) -> None:
        # Over a third connection: a signal may come while the other two are in use.
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"KILL QUERY {stream.thread_id()}")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    rows.execute("STREAM id, message FROM my_message")
    try:
        for message_id, message in rows:
            work(message)
            # The same message may come twice (a lost connection, a slow worker): an ack counts once.
            newly = done.execute(
                "UPDATE my_message SET time_acked = NOW() WHERE id = %s AND time_acked IS NULL",
                (message_id,),
            )
            if not newly:
                print(message_id, "was acknowledged before")
    except pymysql.MySQLError as error:
        if error.args[0] != QUERY_INTERRUPTED:
            raise
        print("bye")


if __name__ == "__main__":
    main()
