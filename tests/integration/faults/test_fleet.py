"""Two proxies before one server: one dispatches, and the other follows it."""

import os
import signal
import time

import pytest

from streamfrom.engine.fleet.lock_connection import dispatcher_lock
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import StartProxy, keyspace_toml
from tests.fixtures.streams import Consume, eventually, message_table, run


pytestmark = pytest.mark.db

DISPATCHED = "is dispatched from here"


def config(database: str, server: DatabaseServer) -> str:
    return keyspace_toml(database, [server]) + '[fleet]\nname = "shop"\n'


def test_one_dispatches_and_the_other_takes_over(
    server: DatabaseServer, database: str, start_proxy: StartProxy, consume: Consume
) -> None:
    execute(server, message_table(poller_interval=1), database=database)
    first = start_proxy(config(database, server))
    first.wait_for_log(DISPATCHED)
    second = start_proxy(config(database, server))
    at_first, at_second = (consume(proxy, database=database) for proxy in (first, second))
    producer = second.connect(database=database, autocommit=True)
    run(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert at_first.ids(1) == [1]
    assert at_second.poll(0.1) is None

    first.kill()
    killed_s = time.monotonic()
    run(producer, "INSERT INTO my_message (id) VALUES (2)")
    assert at_second.ids(1) == [2]
    took_s = time.monotonic() - killed_s
    assert took_s < 5, "a killed process closes its connections: its successor is there at once"
    (terms,) = execute(server, f"SELECT COUNT(*), MAX(term) FROM {database}.streamfrom_members")
    assert terms == (2, 2)


def test_a_proxy_that_stops_hands_over(
    server: DatabaseServer, database: str, start_proxy: StartProxy, consume: Consume
) -> None:
    execute(server, message_table(poller_interval=1), database=database)
    first = start_proxy(config(database, server))
    first.wait_for_log(DISPATCHED)
    second = start_proxy(config(database, server))
    stream = consume(second, database=database)
    assert first.stop() == 0
    run(
        second.connect(database=database, autocommit=True),
        "INSERT INTO my_message (id) VALUES (1)",
    )
    assert stream.ids(1) == [1]


def test_a_paused_dispatcher_delivers_nothing_once_it_goes_on(
    server: DatabaseServer, database: str, start_proxy: StartProxy, consume: Consume
) -> None:
    execute(server, message_table(poller_interval=1), database=database)
    first = start_proxy(config(database, server))
    first.wait_for_log(DISPATCHED)
    at_first = consume(first, database=database)
    second = start_proxy(config(database, server))
    at_second = consume(second, database=database)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second.wait_for_log(DISPATCHED, 10)
        producer = second.connect(database=database, autocommit=True)
        for ident in range(1, 21):
            run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
        assert sorted(at_second.ids(20)) == list(range(1, 21))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    first.wait_for_log("is withheld")
    run(producer, "INSERT INTO my_message (id) VALUES (21)")
    assert at_second.ids(1) == [21]
    assert at_first.poll(0.3) is None


def test_a_killed_lock_connection_is_elected_again(
    server: DatabaseServer, database: str, start_proxy: StartProxy, consume: Consume
) -> None:
    execute(server, message_table(poller_interval=1), database=database)
    proxy = start_proxy(config(database, server))
    proxy.wait_for_log(DISPATCHED)
    stream = consume(proxy, database=database)
    lock = dispatcher_lock(database).decode()
    ((holder,),) = execute(server, f"SELECT IS_USED_LOCK('{lock}')")
    execute(server, f"KILL {holder}")
    eventually(lambda: proxy.log().count(DISPATCHED) == 2)
    run(
        proxy.connect(database=database, autocommit=True),
        "INSERT INTO my_message (id) VALUES (1)",
    )
    assert stream.ids(1) == [1]
