"""Sends messages: python examples/producer.py [how many].

A message is a row. Insert it in the same transaction as your own data: both are committed, or
neither. The proxy generates the ids, because the table has vt_auto_id=on.
"""

import json
import os
import sys

import pymysql


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    connection = pymysql.connect(
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "15306")),
        user=os.environ.get("USER_NAME", "app"),
        password=os.environ.get("PASSWORD", "app-password"),
        database="commerce",
    )
    with connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO my_message (message) VALUES (%s)",
            [json.dumps({"number": n}) for n in range(count)],
        )
        connection.commit()
    print(f"sent {count} messages")


if __name__ == "__main__":
    main()
