"""KILL and SHOW PROCESSLIST are the fleet's: clients of two proxies, and of two workers of one."""

from typing import Any

import pytest
from pymysql.connections import Connection

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer
from tests.fixtures.running_proxy import keyspace_toml, user_toml
from tests.fixtures.streams import eventually, refused, rows, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

USERS = user_toml("boss", account="shared", role="admin")
USERS += user_toml("eve", account="shared") + user_toml("root", account="shared")


def config(database: str, server: DatabaseServer, fleet: str = "") -> str:
    return keyspace_toml(database, [server]) + f"[fleet]\n{fleet}\n" + USERS


def listed(client: "Connection[Any]") -> dict[int, str]:
    return {row[0]: row[1] for row in rows(client, "SHOW PROCESSLIST")}


def error_of(client: "Connection[Any]", sql: str) -> int:
    return refused(client, sql)[0]


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
    outcome = in_thread(lambda: rows(eve, "SELECT SLEEP(1000)"))
    eventually(lambda: "SLEEP(1000)" in str(rows(boss, "SHOW FULL PROCESSLIST")))
    run(eve_here, f"KILL QUERY {eve.thread_id()}")
    ended = outcome()
    assert ended == ((1,),) or ended.args[0] == 1317  # MySQL, MariaDB
    run(eve, "SELECT 1")
    run(eve_here, f"KILL {eve.thread_id()}")
    assert error_of(eve, "SELECT 1") in (2006, 2013)

    again = two.connect(user="eve", database=database)
    assert run(boss, "KILL USER eve") == 2
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
