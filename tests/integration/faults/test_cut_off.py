"""A server that dies or hangs in the middle of a statement, an answer, a transaction, a claim."""

import subprocess
import time
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer
from tests.fixtures.streams import Consume, eventually, refused, rows, run, value
from tests.integration.faults.breaking import (
    HIGH,
    LOW,
    SECOND_NS,
    Servers,
    StartFaulty,
    create,
    in_thread,
    insert,
    running,
)


pytestmark = [pytest.mark.db, pytest.mark.slow]


def test_a_read_that_a_restart_cut_off_is_read_again(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    reader = create(proxy)
    insert(reader, LOW)
    server = breakable_servers[0]
    answer = in_thread(
        lambda: rows(reader, "SELECT id, SLEEP(1.5) FROM my_message WHERE id = 1")
    )
    eventually(lambda: running(server, "SLEEP"), "the query runs")
    server.kill()
    server.start()
    assert answer() == ((LOW, 0),)


def test_a_prepared_read_that_goes_as_text_is_read_again(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    driver = pytest.importorskip("mysql.connector", reason="no mysql-connector-python here")
    proxy = start()
    insert(create(proxy), LOW)
    reader = driver.connect(
        host="127.0.0.1", port=proxy.port, user="root", database="commerce:-80", use_pure=True
    )
    cursor = reader.cursor(prepared=True)

    def read() -> Any:
        # With ROW_COUNT() in it a SELECT asks back, and is sent as text.
        sql = "SELECT id, SLEEP(1.5), ROW_COUNT() FROM my_message WHERE id = %s"
        cursor.execute(sql, (LOW,))
        return cursor.fetchall()

    answer = in_thread(read)
    server = breakable_servers[0]
    eventually(lambda: running(server, "SLEEP"), "the query runs")
    server.kill()
    server.start()
    assert answer()[0][:2] == (LOW, 0)
    reader.close()


def test_from_its_begin_on_nothing_of_a_transaction_waits(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start(failover_buffer=600)  # so long a statement outside a transaction waits
    create(proxy)
    connection = proxy.connect(database="commerce", autocommit=True)
    breakable_servers[0].kill()
    for sql in (
        "SELECT id FROM my_message WHERE id = 1",
        "SELECT COUNT(*) FROM my_message",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id FROM my_message) AS t",
        "INSERT INTO my_message (id) VALUES (1), (4)",
    ):
        run(connection, "BEGIN")
        assert refused(connection, sql)[0] == 1105
        run(connection, "ROLLBACK")


def test_a_write_that_was_cut_off_is_reported_and_not_sent_twice(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    writer = create(proxy)
    insert(writer, LOW)
    server = breakable_servers[0]
    write = "UPDATE my_message SET tenant_id = IFNULL(tenant_id, 0) + 1 + SLEEP(1) WHERE id = 1"
    answer = in_thread(lambda: refused(writer, write))
    eventually(lambda: running(server, "SLEEP"), "the update runs")
    server.kill()
    server.start()
    code, text = answer()
    assert code == 1105
    assert "lost the connection to shard '-80'" in text
    assert "whether it took effect is unknown" in text
    assert value(writer, "SELECT tenant_id FROM my_message WHERE id = 1") is None


def test_a_result_that_breaks_off_ends_with_an_error_and_the_session_goes_on(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    connection = create(proxy)
    insert(connection, LOW)
    reader = proxy.connect(
        database="commerce:-80", autocommit=True, cursorclass=pymysql.cursors.SSCursor
    )
    numbers = "(SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3)"
    sql = f"SELECT a.n, REPEAT('x', 100000), SLEEP(0.05) FROM {numbers} a" + "".join(
        f", {numbers} {name}" for name in "bcdef"
    )
    with reader.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.fetchone()
        breakable_servers[0].kill()
        with pytest.raises(pymysql.MySQLError, match="lost the connection to shard '-80'"):
            cursor.fetchall()
    breakable_servers[0].start()
    assert value(reader, "SELECT id FROM my_message") == LOW


@pytest.mark.parametrize("way", ["BEGIN", "autocommit off"])
@pytest.mark.parametrize("target", ["commerce", "commerce:-80"])
def test_a_transaction_whose_server_restarted_cannot_be_committed(
    start: StartFaulty, breakable_servers: Servers, target: str, way: str
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database=target, autocommit=way == "BEGIN")
    if way == "BEGIN":
        run(connection, "BEGIN")
    insert(connection, LOW)
    if target == "commerce":
        insert(connection, HIGH)
    breakable_servers[0].kill()
    breakable_servers[0].start()
    code, text = refused(connection, "COMMIT")
    assert code == 1105
    assert "lost" in text
    connection.rollback()
    assert not rows(connection, "SELECT id FROM my_message")
    insert(connection, 2)
    connection.commit()
    assert rows(connection, "SELECT id FROM my_message") == ((2,),)


def test_after_a_lost_branch_nothing_runs_outside_the_transaction(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database="commerce")
    insert(connection, LOW, HIGH)
    breakable_servers[0].kill()
    breakable_servers[0].start()
    for sql in (
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (6)",
        "SELECT * FROM my_message WHERE id = 4",
    ):
        assert (
            "rolled back because shard 'commerce/-80' lost its" in refused(connection, sql)[1]
        )
    connection.rollback()
    assert not rows(connection, "SELECT id FROM my_message")


def test_state_that_died_with_its_server_ends_the_session(
    start: StartFaulty, breakable_servers: Servers
) -> None:
    proxy = start()
    create(proxy)
    connection = proxy.connect(database="commerce:-80", autocommit=True)
    run(connection, "CREATE TEMPORARY TABLE scratch (n INT)")
    breakable_servers[0].kill()
    breakable_servers[0].start()
    code, text = refused(connection, "SELECT * FROM scratch")
    assert code == 2013
    assert "connect again" in text


def test_a_claim_that_hangs_on_a_stopped_server_delivers_once_it_goes_on(
    start: StartFaulty, breakable_servers: Servers, consume: Consume
) -> None:
    server = breakable_servers[0]
    assert isinstance(server, EmbeddedServer)
    proxy = start()
    producer = create(proxy)
    stream = consume(proxy, database="commerce")
    moment_ns = time.time_ns() + 2 * SECOND_NS
    run(producer, f"INSERT INTO my_message (id, time_next) VALUES ({LOW}, {moment_ns})")
    assert server.pid is not None
    subprocess.run(["kill", "-STOP", str(server.pid)], check=True)
    try:
        insert(producer, HIGH)
        assert stream.next()[0] == HIGH
        stream.nothing(2.2)
    finally:
        subprocess.run(["kill", "-CONT", str(server.pid)], check=True)
    assert stream.next()[0] == LOW
