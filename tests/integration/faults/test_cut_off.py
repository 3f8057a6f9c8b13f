"""A server that dies or hangs in the middle of a statement, an answer, a transaction, a claim."""

import subprocess
import time
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer
from tests.fixtures.background import in_thread, running
from tests.fixtures.streams import eventually, refused, refuses, rows, run, value
from tests.integration.faults.breaking import HIGH, LOW, SECOND_NS, create, insert


pytestmark = [pytest.mark.db, pytest.mark.slow]


def test_reads_that_a_restart_cut_off_are_read_again(start, breakable_servers):
    proxy = start()
    reader = create(proxy)
    insert(reader, LOW)
    client = proxy.connector("commerce:-80", autocommit=False)
    cursor = client.cursor(prepared=True)

    def read_prepared() -> Any:
        # With ROW_COUNT() in it a SELECT asks back, and is sent as text.
        sql = "SELECT id, SLEEP(1.5), ROW_COUNT() FROM my_message WHERE id = %s"
        cursor.execute(sql, (LOW,))
        return cursor.fetchall()

    answers = [
        in_thread(lambda: rows(reader, "SELECT id, SLEEP(1.5) FROM my_message WHERE id = 1")),
        in_thread(read_prepared),
    ]
    server = breakable_servers[0]
    eventually(lambda: len(running(server, "SLEEP")) == 2, "the queries run")
    server.kill()
    server.start()
    for answer in answers:
        assert answer()[0][:2] == (LOW, 0)
    client.close()


def test_what_died_with_a_server_is_an_error_until_its_session_rolls_back(
    start, breakable_servers
):
    proxy = start()
    setup = create(proxy)
    # On both shards and on one, begun in either way.
    committing = []
    for target, autocommit, idents in (
        ("commerce", True, (1, 4)),
        ("commerce", False, (2, 6)),
        ("commerce:-80", True, (3,)),
        ("commerce:-80", False, (5,)),
    ):
        client = proxy.connect(database=target, autocommit=autocommit)
        if autocommit:
            run(client, "BEGIN")
        for ident in idents:
            insert(client, ident)
        committing.append(client)
    lost = proxy.connect(database="commerce")
    insert(lost, 9, 8)
    holding = proxy.connect(database="commerce:-80", autocommit=True)
    run(holding, "CREATE TEMPORARY TABLE scratch (n INT)")
    breakable_servers[0].kill()
    breakable_servers[0].start()
    for client in committing:
        refuses(client, "COMMIT", 1105, "lost")
        client.rollback()
    # Nothing runs outside the transaction that has lost a shard, whichever shard it is for.
    for sql in (
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (2)",
        "INSERT INTO my_message (id) VALUES (6)",
        "SELECT * FROM my_message WHERE id = 4",
    ):
        assert "rolled back because shard 'commerce/-80' lost its" in refused(lost, sql)[1]
    lost.rollback()
    # State that died with its server ends the session.
    refuses(holding, "SELECT * FROM scratch", 2013, "connect again")
    assert not rows(setup, "SELECT id FROM my_message")
    for ident, client in enumerate(committing, 1):
        insert(client, ident)
        run(client, "COMMIT")
    assert len(rows(setup, "SELECT id FROM my_message")) == len(committing)


def test_a_write_that_was_cut_off_is_reported_and_not_sent_twice(start, breakable_servers):
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


def test_a_claim_that_hangs_on_a_stopped_server_delivers_once_it_goes_on(
    start, breakable_servers, consume
):
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
