"""Servers that are not there yet, restart, stay away, turn read-only, die or hang in the middle: nothing is lost, all waits are bounded."""

import contextlib
import os
import signal
import subprocess
import time
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer
from tests.fixtures.background import in_thread, running
from tests.fixtures.database_servers import execute
from tests.fixtures.relay import Relay
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import (
    eventually,
    message_table,
    refused,
    refuses,
    rows,
    run,
    tried,
    value,
)
from tests.integration.faults.breaking import (
    HIGH,
    LOW,
    SECOND_NS,
    create,
    insert,
    ordinary_user,
)


pytestmark = pytest.mark.slow


# What any shard answers: drivers' first statements, pings of pools, definitions, and rows of the second shard.
_OF_ANY = (
    "SELECT 1",
    "SELECT @@version, CONNECTION_ID(), NOW(), DATABASE()",
    "DO 1",
    "SET autocommit = 1, sql_mode = ''",
    "SHOW VARIABLES LIKE 'version'",
    "SHOW STATUS LIKE 'Uptime'",
    "SHOW TABLES",
    "SHOW CREATE TABLE my_message",
    "DESCRIBE my_message",
    "EXPLAIN SELECT * FROM my_message",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'commerce'",
    f"SELECT COUNT(*) FROM my_message WHERE id = {HIGH}",
    "SELECT queue FROM streamfrom.queues",
)


@pytest.mark.one_server
def test_a_first_server_that_hangs_holds_up_nothing_that_another_one_answers(
    start, breakable_servers
):
    """Connections are there already, and the server falls silent while the first statement is under way."""
    proxy, hanging = start(), breakable_servers[0].pid
    create(proxy).close()
    there = proxy.connect(database="commerce", autocommit=True)
    prepares = proxy.connector("commerce")
    for sql in _OF_ANY:
        run(there, sql)
    os.kill(hanging, signal.SIGSTOP)
    try:
        assert value(there, "SELECT 1") == 1
        for client in (there, proxy.connect(autocommit=True)):
            client.ping(reconnect=False)
            client.select_db("commerce")
            for sql in _OF_ANY:
                run(client, sql)
            run(client, "SET @a = 1")
            run(client, "PREPARE s FROM 'SELECT @a'")
            assert value(client, "EXECUTE s") == 1
            run(client, "USE information_schema")
            assert value(client, "SELECT COUNT(*) FROM tables") > 0
        for cursor in (prepares.cursor(prepared=True), proxy.connector("commerce").cursor()):
            for sql in _OF_ANY:
                cursor.execute(sql)
                if cursor.with_rows:
                    cursor.fetchall()
    finally:
        os.kill(hanging, signal.SIGCONT)


@pytest.mark.one_server
def test_a_proxy_starts_before_its_servers_and_then_serves(start, breakable_servers, consume):
    proxy = start()
    create(proxy)
    proxy.stop()
    for server in breakable_servers:
        server.stop()
    proxy = start(failover_buffer=0.3)
    with pytest.raises(pymysql.MySQLError, match="of keyspace 'commerce' is not available"):
        proxy.connect(database="commerce")  # the driver's own SET NAMES
    for server in breakable_servers:
        server.start()

    def inserted() -> Any:
        with contextlib.suppress(pymysql.MySQLError):
            connection = proxy.connect(database="commerce", autocommit=True)
            return tried(connection, "INSERT INTO my_message (id) VALUES (1), (4)") is not None

    eventually(inserted, "an INSERT works")

    def opened() -> Any:
        with contextlib.suppress(pymysql.MySQLError):
            return consume(proxy, database="commerce")

    stream = eventually(opened, "the stream opens")
    assert sorted(stream.ids(2)) == [LOW, HIGH]


@pytest.mark.one_server
def test_a_server_killed_under_load_loses_and_repeats_nothing(start, breakable_servers, audit):
    proxy = start()
    connection = create(proxy, ack_wait=3600, poller_interval=1)
    audit.produce(proxy.port)
    audit.receive(proxy.port)
    holder = audit.receive(proxy.port, acks=False)
    eventually(lambda: bool(holder.received), "a message for who acks none")
    for server in breakable_servers:
        audit.sends_more()
        # What came within the last second has no lease in its row.
        held = {ident for ident, _ in holder.received}
        counts = [(receiver, len(receiver.received)) for receiver in audit.receivers]
        server.kill()
        server.start()
        audit.sends_more()
        again = {ident for one, count in counts for ident, _ in one.received[count:]} & held
        assert held
        assert not again
    assert holder.failures == []
    holder.stopping.set()
    audit.check(connection)
    assert proxy.process.poll() is None


@pytest.mark.one_server
def test_an_answer_with_an_end_is_of_the_shards_that_are_up(start, breakable_servers):
    proxy = start(stream_grace=1)
    producer = create(proxy)
    insert(producer, LOW, HIGH)
    breakable_servers[0].stop()
    take = "STREAM id FROM my_message LIMIT 5 WAIT 0"
    assert rows(producer, take) == ((HIGH,),)
    # Whether nothing is due nobody can tell now: an empty answer would be a lie.
    code, text = refused(producer, take)
    assert code == 1105
    assert text.startswith("message stream from commerce/-80 has repeatedly failed for longer")
    breakable_servers[0].start()
    assert eventually(lambda: tried(producer, take), "the shard is back") == ((LOW,),)
    assert rows(producer, take) == ()


def test_a_transaction_waits_with_its_first_statement_alone(start, breakable_servers):
    proxy = start()
    connection = create(proxy)
    low = breakable_servers[0]
    low.stop()
    run(connection, "BEGIN")
    answer = in_thread(lambda: insert(connection, LOW))
    low.start()
    answer()
    low.stop()
    low.start()
    with pytest.raises(pymysql.MySQLError):
        insert(connection, LOW)
    run(connection, "ROLLBACK")
    assert rows(connection, "SELECT id FROM my_message") == ()


def test_a_write_waits_out_read_only(start, breakable_servers, breakable_database, consume):
    user = ordinary_user(breakable_servers, breakable_database)
    proxy = start(user=user)
    producer = create(proxy, ack_wait=1, poller_interval=0.5)
    stream = consume(proxy, database="commerce")
    insert(producer, LOW, HIGH)
    stream.take(2)
    for server in breakable_servers:
        execute(server, "SET GLOBAL read_only = 1")
    answer = in_thread(lambda: insert(producer, 2))
    other = proxy.connect(database="commerce", autocommit=True)
    split = in_thread(lambda: insert(other, 3, 6))
    # Nothing is delivered, although both messages are due again.
    stream.nothing_new(proxy.connect(database="commerce", autocommit=True), 2.5)
    for server in breakable_servers:
        execute(server, "SET GLOBAL read_only = 0")
    assert answer() is None
    assert split() is None
    stream.comes(1, 2, 3, 4, 6)


def with_queue(servers, database):
    """Make a queue on each of *servers*; return an account that a read-only server keeps from writing."""
    user = ordinary_user(servers, database)
    for server in servers:
        execute(server, message_table(poller_interval=0.5), database=database)
    return user


def check_all_is_at(new, old, client, stream, user, database):
    """Send messages 2, by *client*, and 3, which only a poll of *new* finds; *old* loses all connections."""
    insert(client, 2)
    stream.comes(2)
    assert execute(new, "SELECT id FROM my_message", database=database) == ((2,),)
    execute(new, "INSERT INTO my_message (id) VALUES (3)", database=database)
    stream.comes(3)
    left = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{user}'"
    eventually(lambda: execute(old, left) == ((0,),), "all connections have moved")


def test_a_new_primary_behind_the_address_is_used_while_the_old_one_lives_on(
    start_proxy, breakable_servers, breakable_database, consume
):
    database, (old, new) = breakable_database, breakable_servers
    user = with_queue(breakable_servers, database)
    with contextlib.closing(Relay(old.port)) as way:
        toml = keyspace_toml(database, [way]).replace("//root@", f"//{user}@")
        proxy = start_proxy(toml)
        client = proxy.connect(database=database, autocommit=True)
        stream = consume(proxy, database=database)
        insert(client, 1)
        stream.comes(1)
        way.target_port = new.port
        execute(old, "SET GLOBAL read_only = 1")
        check_all_is_at(new, old, client, stream, user, database)


def test_shards_move_to_the_addresses_of_a_configuration_that_is_read_again(
    start_proxy, breakable_servers, breakable_database, consume
):
    """The old primary lives on and can be written, so only the configuration says that it is none any more."""
    database, (old, new) = breakable_database, breakable_servers
    user = with_queue(breakable_servers, database)
    before, after = (
        keyspace_toml(database, [each]).replace("//root@", f"//{user}@")
        for each in breakable_servers
    )
    first, second = members = [start_proxy(before), start_proxy(before)]
    stream = consume(first, database=database)
    client = second.connect(database=database, autocommit=True)
    insert(client, 1)
    stream.comes(1)
    for member in members:
        member.config.write_text(member.config.read_text().replace(before, after))
        os.kill(member.pid, signal.SIGHUP)
        member.wait_for_log("configuration reloaded")
    check_all_is_at(new, old, client, stream, user, database)
    third = start_proxy(after)
    insert(third.connect(database=database, autocommit=True), 4)
    stream.comes(4)
    for member in (*members, third):
        assert "members differ" not in member.log()


def test_a_write_in_vain_gets_the_servers_error(start, breakable_servers, breakable_database):
    user = ordinary_user(breakable_servers, breakable_database)
    proxy = start(user=user, failover_buffer=0.5)
    producer = create(proxy)
    execute(breakable_servers[0], "SET GLOBAL read_only = 1")
    refuses(producer, "INSERT INTO my_message (id) VALUES (1)", 1290, "read-only")
    # Reads are not affected, and neither is the other shard.
    assert rows(producer, "SELECT id FROM my_message") == ()
    insert(producer, HIGH)


@pytest.mark.one_server
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

    asked = "SELECT id, SLEEP(1.5) FROM my_message WHERE id = 1"
    answers = [in_thread(lambda: rows(reader, asked)), in_thread(read_prepared)]
    server = breakable_servers[0]
    eventually(lambda: len(running(server, "SLEEP")) == 2, "the queries run")
    server.kill()
    server.start()
    for answer in answers:
        assert answer()[0][:2] == (LOW, 0)
    client.close()


@pytest.mark.one_server
def test_what_died_with_a_server_is_an_error_until_a_rollback(start, breakable_servers):
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
    refuses(holding, "SELECT * FROM scratch", 1927, "connect again")
    assert not rows(setup, "SELECT id FROM my_message")
    for ident, client in enumerate(committing, 1):
        insert(client, ident)
        run(client, "COMMIT")
    assert len(rows(setup, "SELECT id FROM my_message")) == len(committing)


@pytest.mark.one_server
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


@pytest.mark.one_server
def test_a_claim_that_hangs_delivers_once_its_server_goes_on(start, breakable_servers, consume):
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
