"""What a Python program does with an asyncio driver: aiomysql, asyncmy.

Usage: aio.py DRIVER PORT DATABASE USER TLS PREPARED. Neither has prepared statements. Prints "ok".
"""

import asyncio
import importlib
import ssl
import sys
from typing import Any


ROWS = 20_000


async def main() -> None:
    name, port, database, user, tls, _ = sys.argv[1:]
    driver = importlib.import_module(name)
    cursors = importlib.import_module(f"{name}.cursors")
    context = None
    if tls == "1":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    options: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": int(port),
        "user": user,
        "password": "secret" if user != "root" else "",
        "db": database,
        "charset": "utf8mb4",
        "autocommit": True,
        "ssl": context,
    }

    async def run(connection: Any, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        async with connection.cursor() as cursor:
            await cursor.execute(sql, values or None)
            return list(await cursor.fetchall()) if cursor.description else []

    db = await driver.connect(**options)
    await run(
        db, "INSERT INTO item (id, name) VALUES (%s, %s), (%s, %s)", 1, "hällo 🎉", 4, None
    )
    assert await run(db, "SELECT name FROM item ORDER BY id") == [("hällo 🎉",), (None,)]
    await db.begin()
    await run(db, "UPDATE item SET name = %s WHERE id = %s", "undone", 1)
    await db.rollback()
    assert await run(db, "SELECT name FROM item WHERE id = 1") == [("hällo 🎉",)]
    for sql, code in (
        ("INSERT INTO item (id) VALUES (1)", 1062),
        ("SELECT nothing FROM item", 1054),
    ):
        try:
            await run(db, sql)
        except Exception as error:
            assert error.args[0] == code, error
        else:
            raise AssertionError(f"{sql} was not refused")

    values = ", ".join(f"({number}, '{'x' * 90}')" for number in range(100, 100 + ROWS))
    await run(db, f"INSERT INTO item (id, name) VALUES {values}")
    count = 0
    async with db.cursor(cursors.SSCursor) as rows:
        await rows.execute("SELECT id, name FROM item WHERE id >= 100")
        while await rows.fetchone() is not None:
            count += 1
    assert count == ROWS, count

    await run(db, "INSERT INTO my_message (id, message) VALUES (1, 'one'), (4, 'four')")
    reader = await driver.connect(**options)
    rows = (
        await reader.cursor(cursors.SSCursor)
        if name == "aiomysql"
        else reader.cursor(cursors.SSCursor)
    )
    await rows.execute("STREAM id, message FROM my_message")
    seen = {}
    while len(seen) < 2:
        message_id, message = await rows.fetchone()
        seen[message_id] = message
        await run(db, "UPDATE my_message SET time_acked = NOW() WHERE id = %s", message_id)
    assert seen == {1: "one", 4: "four"}, seen
    reader.close()

    pool = await driver.create_pool(minsize=1, maxsize=8, **options)

    async def ask() -> None:
        async with pool.acquire() as one:
            assert await run(one, "SELECT id FROM item WHERE id = %s", 4) == [(4,)]

    await asyncio.gather(*(ask() for _ in range(100)))
    pool.close()
    await pool.wait_closed()

    other = await driver.connect(**options)
    await run(other, f"KILL {db.thread_id()}")
    try:
        await run(db, "SELECT 1")
    except Exception:
        db = await driver.connect(**options)
    assert await run(db, "SELECT COUNT(*) FROM item") == [(ROWS + 2,)]
    for connection in (db, other):
        connection.close()
    print("ok")


if __name__ == "__main__":
    asyncio.run(main())
