"""A producer with PyMySQL: python examples/producers/producer_pymysql.py < messages, one message per line.

Each message is sent once, even if the connection breaks. The program chooses the id, so it can repeat an INSERT whose
outcome is unknown: if the first one took effect, the second one is a duplicate.
"""

import os
import random
import secrets
import sys
import time
from typing import Any

import pymysql


SILENCE_S = 30  # then a connection is replaced
PATIENCE_S = 60  # then a message fails with the error
DUPLICATE = 1062
# Temporary errors: a full or stopping proxy, an unavailable shard, a lock, a deadlock, a lost connection.
PASSING = {1040, 1053, 1105, 1205, 1213, 4031, *range(2000, 3000)}


class Producer:
    """One connection, reopened whenever it breaks."""

    connection: Any = None

    def send(self, message: str) -> int:
        """Send a message, commit it and return its id."""
        ident = 1 + secrets.randbelow(2**53 - 1)  # every driver keeps 53 bits
        pause, end_s = 0.1, time.monotonic() + PATIENCE_S
        is_repeated = False
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
                    sql = "INSERT INTO my_message (id, message) VALUES (%s, %s)"
                    cursor.execute(sql, (ident, message))
                return ident
            except (pymysql.MySQLError, OSError) as error:
                number = error.args[0] if isinstance(error, pymysql.MySQLError) else 2013
                if number == DUPLICATE and is_repeated:
                    return ident
                if number not in PASSING or time.monotonic() > end_s:
                    raise
                print("again in a moment:", error, file=sys.stderr)
                self.connection = None
                is_repeated = True
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 10)


if __name__ == "__main__":
    producer = Producer()
    for line in sys.stdin:
        print("sent", producer.send(line.rstrip("\n")), flush=True)
