"""The proxy itself is told to stop, is killed under load, or is one of two: clients finish, nothing is lost, a COMMIT is answered."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import in_thread, running
from tests.fixtures.database_servers import execute, root
from tests.fixtures.load import Audit
from tests.fixtures.running_proxy import STOP_S
from tests.fixtures.streams import WAIT_S, eventually, message_table, rows, run
from tests.integration.faults.breaking import HIGH, LOW, Servers, create, insert


pytestmark = [pytest.mark.one_server, pytest.mark.slow]


@contextmanager
def commits_held(servers: Servers) -> Iterator[list[Any]]:
    """Have every COMMIT on the servers wait, until the yielded connections unlock."""
    holders = [root(server) for server in servers]
    try:
        for holder in holders:
            run(holder, "FLUSH TABLES WITH READ LOCK")
        yield holders
    finally:
        for holder in holders:
            holder.close()


def terminate(proxy: Any) -> None:
    proxy.process.send_signal(signal.SIGTERM)
    proxy.wait_for_log("stopping")


def test_what_is_under_way_ends_well_after_sigterm(start, breakable_servers, consume):
    proxy = start(shutdown_grace=120)
    connection = create(proxy)
    insert(connection, LOW, HIGH)
    stream = consume(proxy, database="commerce")
    stream.take(2)
    acks = proxy.connect(database="commerce", autocommit=True)
    producer = proxy.connect(database="commerce", autocommit=False)
    insert(producer, 2)
    asked = "SELECT id, SLEEP(1) FROM my_message WHERE id = 1"
    statement = in_thread(lambda: rows(connection, asked))
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    terminate(proxy)
    assert stream.error() == (1053, "Server shutdown in progress")
    assert stream.is_closed()
    assert statement() == ((LOW, 0),)
    with pytest.raises(pymysql.MySQLError):
        proxy.connect()
    acked = "UPDATE my_message SET time_acked = NOW() WHERE id IN (%d, %d)"
    assert run(acks, acked % (LOW, HIGH)) == 2
    insert(producer, 5)
    producer.commit()
    for each in (acks, connection, producer):
        each.close()
    assert proxy.process.wait(STOP_S) == 0
    proxy = start()
    connection = proxy.connect(database="commerce")
    unacked = "SELECT id FROM my_message WHERE time_acked IS NULL ORDER BY id"
    assert rows(connection, unacked) == ((2,), (5,))


@pytest.mark.parametrize(
    ("mode", "ids"), [("multi", (LOW,)), ("multi", (LOW, HIGH)), ("twopc", (LOW, HIGH))]
)
def test_a_commit_that_waits_is_answered_after_the_grace(start, breakable_servers, mode, ids):
    proxy = start(shutdown_grace=0.2, failover_buffer=120, transaction_mode=f'"{mode}"')
    run(create(proxy), "DELETE FROM my_message")
    client = proxy.connect(database="commerce", autocommit=False)
    insert(client, *ids)
    with commits_held(breakable_servers) as holders:
        commit = in_thread(client.commit)
        eventually(
            lambda: any(
                running(server, text)
                for server in breakable_servers
                for text in ("COMMIT", "commit", "decisions")
            ),
            "the commit waits",
        )
        terminate(proxy)
        proxy.wait_for_log("waiting for commits")
        for holder in holders:
            run(holder, "UNLOCK TABLES")
    assert commit() is None
    assert proxy.process.wait(STOP_S) == 0
    proxy = start(transaction_mode=f'"{mode}"')
    connection = proxy.connect(database="commerce")
    assert rows(connection, "SELECT id FROM my_message ORDER BY id") == tuple((n,) for n in ids)


def test_a_commit_that_no_server_answers_is_said_to_be_unknown(start, breakable_servers):
    proxy = start(shutdown_grace=0.2, failover_buffer=0.5)
    create(proxy)
    client = proxy.connect(database="commerce", autocommit=False)
    insert(client, LOW)
    with commits_held(breakable_servers):
        commit = in_thread(client.commit)
        eventually(lambda: running(breakable_servers[0], "COMMIT"), "the commit waits")
        terminate(proxy)
        error = commit()
        assert isinstance(error, pymysql.MySQLError)
        assert error.args[0] == 1105
        assert "whether the statement took effect is unknown" in error.args[1]
        assert proxy.process.wait(STOP_S) == 0


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
    asked = "SELECT id, SLEEP(600) FROM my_message WHERE id = 1"
    statement = in_thread(lambda: rows(connection, asked))
    eventually(lambda: running(breakable_servers[0], "SLEEP"), "the statement runs")
    assert proxy.stop() == 0
    assert isinstance(statement(), pymysql.MySQLError)
    eventually(lambda: not running(breakable_servers[0], "SLEEP"), "the server stopped too")


RELEASE_S = 1
# Neither a poll nor the end of a lease brings anything within a test.
SLOW = message_table(poller_interval=600, ack_wait=600, more=f",vt_release_after={RELEASE_S}")


def test_a_rolling_restart_leaves_no_message_to_its_lease(server, database, start_proxy, fleet):
    execute(server, SLOW, database=database)
    members = fleet(3)
    audit = Audit(database)
    try:
        for member in members:
            audit.produce(member.port)
            audit.receive(member.port)
        for number, member in enumerate(members):
            audit.sends_more(100)
            assert member.stop() == 0
            text = member.config.read_text().replace(':0"', f':{member.port}"')
            members[number] = start_proxy(text)
        audit.sends_more(100)
        audit.check(members[0].connect(database=database, autocommit=True))
    finally:
        audit.close()
