"""What a Python program does with a driver: PyMySQL, mysqlclient, mysql-connector-python, and the asyncio drivers aiomysql and asyncmy.

Usage: dbapi.py DRIVER PORT DATABASE USER TLS PREPARED, the last two 0 or 1. Prints "ok", or raises.
"""

import asyncio
import decimal
import functools
import importlib
import inspect
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any


ROWS = 20_000


def pymysql(tls: bool, **options: Any) -> Any:
    import pymysql

    more = {"ssl_disabled": False, "ssl_verify_cert": False} if tls else {"ssl_disabled": True}
    return pymysql.connect(charset="utf8mb4", autocommit=True, **options, **more)


def mysqlclient(tls: bool, **options: Any) -> Any:
    import MySQLdb

    # Its C library speaks TLS whenever it can, so `ssl` only says that it must.
    more: dict[str, Any] = {"ssl_mode": "REQUIRED" if tls else "DISABLED"}
    return MySQLdb.connect(charset="utf8mb4", autocommit=True, **options, **more)


def connector(tls: bool, use_pure: bool = True, **options: Any) -> Any:
    import mysql.connector

    more = {"use_pure": use_pure, "autocommit": True, "ssl_disabled": not tls}
    return mysql.connector.connect(**more, **options)


def connector_c(tls: bool, **options: Any) -> Any:
    return connector(tls, use_pure=False, **options)


class Blocking:
    """A connection or a cursor of an asyncio driver, each of whose calls waits for its answer."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.inner, self.loop = inner, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self.waiting(found) if callable(found) else found

    def waiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def awaited(result: Any) -> Any:
            return await result if inspect.isawaitable(result) else result

        def call(*args: Any) -> Any:
            result = self.loop.run_until_complete(awaited(function(*args)))
            return Blocking(result, self.loop) if hasattr(result, "fetchone") else result

        return call


def asynchronous(name: str, tls: bool, database: str, **options: Any) -> Any:
    driver = importlib.import_module(name)
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    options |= {"db": database, "charset": "utf8mb4", "autocommit": True, "ssl": context}

    async def crowd() -> None:
        pool = await driver.create_pool(minsize=1, maxsize=8, **options)

        async def ask() -> None:
            async with pool.acquire() as one, one.cursor() as cursor:
                await cursor.execute("SELECT %s", (4,))
                assert await cursor.fetchall() in ([(4,)], ((4,),))

        await asyncio.gather(*(ask() for _ in range(100)))
        pool.close()
        await pool.wait_closed()

    asyncio.run(crowd())
    loop = asyncio.new_event_loop()
    return Blocking(loop.run_until_complete(driver.connect(**options)), loop)


aiomysql = functools.partial(asynchronous, "aiomysql")
asyncmy = functools.partial(asynchronous, "asyncmy")


def unbuffered(connection: Any) -> Any:
    module = type(getattr(connection, "inner", connection)).__module__.split(".")[0]
    if module == "mysql":
        return connection.cursor()
    return connection.cursor(importlib.import_module(f"{module}.cursors").SSCursor)


def main() -> None:
    driver, port, database, user, tls, prepared = sys.argv[1:]
    open_one: Callable[..., Any] = globals()[driver]

    def connect() -> Any:
        return open_one(
            tls == "1",
            host="127.0.0.1",
            port=int(port),
            user=user,
            password="secret" if user != "root" else "",
            database=database,
        )

    cursor_options = {"prepared": True} if prepared == "1" else {}

    def run(connection: Any, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(connection.cursor(**cursor_options)) as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

    db = connect()
    run(db, "INSERT INTO item (id, name, price) VALUES (%s, %s, %s)", 1, "hällo 🎉", "1.50000")
    run(db, "INSERT INTO item (id, name) VALUES (%s, %s), (%s, %s)", 4, None, 7, "")
    found = run(db, "SELECT name, price FROM item WHERE id = %s", 1)
    assert found == [("hällo 🎉", decimal.Decimal("1.50000"))], found
    assert run(db, "SELECT name FROM item WHERE id = %s", 4) == [(None,)]
    run(db, "UPDATE item SET name = %s WHERE id = %s", "changed", 7)
    run(db, "DELETE FROM item WHERE id = %s", 4)
    assert run(db, "SELECT id, name FROM item ORDER BY id") == [(1, "hällo 🎉"), (7, "changed")]

    db.autocommit(False) if callable(db.autocommit) else setattr(db, "autocommit", False)
    run(db, "UPDATE item SET name = %s WHERE id = %s", "undone", 7)
    assert run(db, "SELECT name FROM item WHERE id = %s", 7) == [("undone",)]
    db.rollback()
    assert run(db, "SELECT name FROM item WHERE id = %s", 7) == [("changed",)]
    db.commit()
    db.autocommit(True) if callable(db.autocommit) else setattr(db, "autocommit", True)

    for sql, code in (
        ("INSERT INTO item (id) VALUES (1)", 1062),
        ("SELECT nothing FROM item", 1054),
        ("FROBNICATE 1", 1064),
    ):
        try:
            run(db, sql)
        except Exception as error:
            assert error.args[0] == code, error
        else:
            raise AssertionError(f"{sql} was not refused")
        assert run(db, "SELECT 1") == [(1,)]

    values = ", ".join(f"({number}, '{'x' * 90}')" for number in range(100, 100 + ROWS))
    run(db, f"INSERT INTO item (id, name) VALUES {values}")
    count = 0
    with closing(unbuffered(db)) as rows:
        rows.execute("SELECT id, name FROM item WHERE id >= 100")
        while rows.fetchone() is not None:
            count += 1
    assert count == ROWS, count

    stream(connect, run, db)

    thread = db.thread_id() if hasattr(db, "thread_id") else db.connection_id
    other = connect()
    run(other, f"KILL {thread}")
    try:
        run(db, "SELECT 1")
    except Exception:
        db = connect()
    assert run(db, "SELECT COUNT(*) FROM item") == [(ROWS + 2,)]
    print("ok")


def stream(connect: Callable[[], Any], run: Callable[..., Any], db: Any) -> None:
    """Receive messages on one connection and acknowledge them on another."""
    run(db, "INSERT INTO my_message (id, message) VALUES (1, 'one'), (4, 'four')")
    reader = connect()
    # A driver may read on to the end of a stream that it is to close: the end is this.
    number = reader.thread_id() if hasattr(reader, "thread_id") else reader.connection_id
    rows = unbuffered(reader)
    rows.execute("STREAM id, message FROM my_message")
    seen = {}
    if type(rows).__module__.startswith("mysql.connector"):
        # It gives a row when it has the next one; without this that is message 4, once more.
        soon = time.time_ns() + 1_000_000_000
        run(db, f"INSERT INTO my_message (id, message, time_next) VALUES (6, 'six', {soon})")
    while len(seen) < 2:
        message_id, message = rows.fetchone()
        seen[message_id] = message
        run(
            db,
            "UPDATE my_message SET time_acked = NOW() WHERE id = %s AND time_acked IS NULL",
            message_id,
        )
    assert seen == {1: "one", 4: "four"}, seen
    acked = run(db, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NOT NULL")
    assert acked == [(2,)], acked
    killer = threading.Timer(0.2, run, (db, f"KILL QUERY {number}"))
    killer.start()
    try:
        rows.fetchone()
    except Exception as error:
        assert error.args[0] == 1317, error
    killer.join()


if __name__ == "__main__":
    main()
