"""The proxy itself is told to stop, is killed under load, or is one of two."""

import signal

import pymysql
import pytest

from tests.fixtures.database_servers import free_port
from tests.fixtures.running_proxy import STOP_S
from tests.fixtures.streams import WAIT_S, eventually, rows
from tests.integration.faults.breaking import HIGH, LOW, create, in_thread, insert, running


pytestmark = [pytest.mark.db, pytest.mark.one_server, pytest.mark.slow]


def test_sigterm_ends_streams_with_1053_lets_statements_end_and_exits_0(
    start, breakable_servers, consume
):
    proxy = start(shutdown_grace=5)
    connection = create(proxy)
    insert(connection, LOW, HIGH)
    stream = consume(proxy, database="commerce")
    stream.take(2)
    idle = proxy.connect(database="commerce")
    insert(idle, 2)  # in a transaction that nobody ends
    statement = in_thread(
        lambda: rows(connection, "SELECT id, SLEEP(1) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    proxy.process.send_signal(signal.SIGTERM)
    assert stream.error() == (1053, "Server shutdown in progress")
    assert stream.is_closed()
    assert statement() == ((LOW, 0),)
    assert proxy.process.wait(STOP_S) == 0
    with pytest.raises(pymysql.MySQLError):
        proxy.connect()
    proxy = start()
    assert (
        rows(proxy.connect(database="commerce"), "SELECT id FROM my_message WHERE id = 2") == ()
    )


def test_sigterm_waits_for_acks_of_what_was_sent_and_no_longer(start, consume):
    proxy = start(shutdown_grace=600)
    connection = create(proxy, more=",vt_release_after=never")
    insert(connection, LOW, HIGH)
    stream = consume(proxy, database="commerce")
    stream.take(2)
    proxy.process.send_signal(signal.SIGTERM)
    assert stream.error()[0] == 1053
    for ident in (LOW, HIGH):
        assert proxy.process.poll() is None, "it waits for this"
        rows(connection, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
    assert proxy.process.wait(WAIT_S) == 0


def test_sigterm_does_not_wait_longer_than_the_grace(start, breakable_servers):
    proxy = start(shutdown_grace=0.5)
    connection = create(proxy)
    insert(connection, LOW)
    statement = in_thread(
        lambda: rows(connection, "SELECT id, SLEEP(60) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    assert proxy.stop() == 0
    assert isinstance(statement(), pymysql.MySQLError)
    eventually(lambda: not running(breakable_servers[0], "SLEEP"), "the server stopped too")


def test_a_proxy_that_is_killed_under_load_loses_nothing(start, audit):
    port = free_port()
    proxy = start(port)
    create(proxy, ack_wait=1, poller_interval=1, more=",vt_max_backoff=2")
    for _ in range(2):
        audit.produce(port)
        audit.receive(port)
    for _ in range(2):
        audit.sends_more()
        proxy.kill()
        proxy = start(port)
    audit.sends_more()
    audit.check(proxy.connect(database="commerce", autocommit=True))


def test_two_proxies_on_one_table_deliver_each_attempt_once(start, audit):
    proxies = [start(), start()]
    connection = create(proxies[0], ack_wait=0.5, poller_interval=0.2, batch_size=3)
    eventually(
        lambda: rows(proxies[1].connect(database="commerce"), "SHOW TABLES"), "both know it"
    )
    for proxy in proxies:
        audit.produce(proxy.port)
        audit.receive(proxy.port, acks=False)
        audit.receive(proxy.port, acks=False)
    eventually(
        lambda: sum(len(r.received) for r in audit.receivers) > 1500, "many attempts", 600
    )
    for receiver in audit.receivers:
        receiver.acks = True
    audit.check(connection)
    attempts = [attempt for receiver in audit.receivers for attempt in receiver.received]
    assert len(attempts) == len(set(attempts))
    assert max(epoch for _, epoch in attempts) >= 1
    assert all(receiver.received for receiver in audit.receivers)
