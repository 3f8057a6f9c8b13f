"""KILL and SHOW PROCESSLIST are the fleet's: clients of two proxies, and of two workers of one."""

import threading
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from tests.fixtures.database_servers import DatabaseServer
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import eventually, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

USERS = """
[[users]]
name = "boss"
account = "shared"
password = ""
role = "admin"
[[users]]
name = "eve"
account = "shared"
password = ""
[[users]]
name = "root"
account = "shared"
password = ""
"""


def config(database: str, server: DatabaseServer, fleet: str = "") -> str:
    return keyspace_toml(database, [server]) + f"[fleet]\n{fleet}\n" + USERS


def listed(client: "Connection[Any]") -> dict[int, str]:
    with client.cursor() as cursor:
        cursor.execute("SHOW PROCESSLIST")
        return {row[0]: row[1] for row in cursor.fetchall()}


def error_of(client: "Connection[Any]", sql: str) -> int:
    with pytest.raises(pymysql.MySQLError) as refused:
        run(client, sql)
    return int(refused.value.args[0])


def test_clients_of_another_proxy_are_listed_and_killed(server, database, start_proxy):
    one, two = (start_proxy(config(database, server)) for _ in range(2))
    boss = one.connect(user="boss", database=database)
    eve = two.connect(user="eve", database=database)
    eve_here = one.connect(user="eve", database=database)
    root = one.connect(user="root", database=database)
    ids = {client.thread_id(): name for client, name in ((boss, "boss"), (eve, "eve"))}
    assert ids.items() <= listed(boss).items()
    assert listed(eve_here) == {client.thread_id(): "eve" for client in (eve, eve_here)}
    assert listed(eve).keys() == listed(eve_here).keys()

    assert error_of(root, f"KILL {eve.thread_id()}") == 1095
    assert error_of(boss, f"KILL {eve.thread_id() + 99}") == 1094
    ended: list[int] = []

    def sleep() -> None:
        try:
            with eve.cursor() as cursor:
                cursor.execute("SELECT SLEEP(1000)")
                ended.extend(cursor.fetchone() or ())  # MySQL
        except pymysql.MySQLError as error:
            ended.append(error.args[0])

    sleeping = threading.Thread(target=sleep)
    sleeping.start()
    with boss.cursor() as cursor:

        def is_seen() -> bool:
            cursor.execute("SHOW FULL PROCESSLIST")
            return any(b"SLEEP(1000)" in str(row[7]).encode() for row in cursor.fetchall())

        eventually(is_seen)
    run(eve_here, f"KILL QUERY {eve.thread_id()}")
    sleeping.join()
    assert ended in ([1317], [1])
    run(eve, "SELECT 1")
    run(eve_here, f"KILL {eve.thread_id()}")
    assert error_of(eve, "SELECT 1") in (2006, 2013)

    again = two.connect(user="eve", database=database)
    with boss.cursor() as cursor:
        assert cursor.execute("KILL USER eve") == 2
    assert error_of(again, "SELECT 1") in (2006, 2013)
    assert error_of(eve_here, "SELECT 1") in (2006, 2013)


def test_clients_of_another_worker_are_listed_and_killed(server, database, start_proxy):
    proxy = start_proxy(config(database, server, "workers = 2"))
    proxy.wait_for_log("workers serve")
    first = proxy.connect(user="eve", database=database)
    others = (proxy.connect(user="eve", database=database) for _ in range(200))
    other = next(o for o in others if o.thread_id() >> 22 != first.thread_id() >> 22)
    assert other.thread_id() in listed(first)
    run(first, f"KILL {other.thread_id()}")
    assert error_of(other, "SELECT 1") in (2006, 2013)
