"""Streams and acks that make no sense, clients that do not read or leave in the middle: nothing is delivered, lost or left behind."""

import ast
import contextlib
import time
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND

from tests.cases import cases, in_turn
from tests.fixtures.background import running
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import answers, eventually, refuses, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


pytestmark = pytest.mark.db


class TestStatements:
    @pytest.fixture
    def connection(self, queue: Queue) -> Any:
        made = queue.create()
        run(made, "CREATE TABLE ordinary (id BIGINT PRIMARY KEY)")
        return made

    @in_turn
    @cases(sql=str, code=ast.literal_eval, words=str)
    def test_a_stream_of_what_cannot_be_streamed(self, connection, sql, code, words):
        refuses(connection, sql, code, words)
        assert value(connection, "SELECT 1") == 1

    @in_turn
    @cases(sql=str)
    def test_a_table_that_is_not_there_is_refused_as_on_one_server(self, connection, sql):
        refuses(connection, sql, 1146, "nosuch' doesn't exist")

    def test_a_table_that_only_the_vschema_does_not_know_is_refused_with_what_to_add(
        self, sharded: Queue
    ) -> None:
        run(client := sharded.connect(), "CREATE TABLE unplaced (id BIGINT PRIMARY KEY)")
        refuses(client, "SELECT * FROM unplaced", 1235, 'add to its tables: "unplaced"')

    def test_an_ack_with_a_string_for_a_number(self, queue: Queue) -> None:
        connection = queue.create(ack_wait=0.4, more=",vt_max_backoff=0.4")
        stream = queue.stream()
        run(connection, "INSERT INTO my_message (id) VALUES (1), (4)")
        stream.comes(1, 4)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN"
        assert run(connection, f"{ack} ('1')") == 1
        stream.comes(4)
        assert run(connection, f"{ack} ('4')") == 1
        stream.nothing_new(connection)
        for nonsense in ("('x')", "('4x')", "(NULL)", "(99)", "(4)", "(-1)", "(1e30)", "('')"):
            # Strict servers refuse some of these in words of their own.
            with contextlib.suppress(pymysql.err.DataError, pymysql.err.OperationalError):
                assert run(connection, f"{ack} {nonsense}") == 0


def test_a_statement_that_is_not_utf_8_reaches_the_server_as_it_is(plain: Queue) -> None:
    client = plain.connect()
    assert answers(client, b"SELECT HEX(_binary'\xff\xfe\x80') AS h") == [(("FFFE80",),)]
    for sql in (b"SELECT \xff\xfe FROM \xc3\x28", b"STREAM * FROM \xff\xfe", b"USE \xff\xfe"):
        (code,) = answers(client, sql)
        assert isinstance(code, int), sql
    assert value(client, "SELECT 1") == 1


def test_a_comment_alone_is_answered_as_by_a_server(plain: Queue) -> None:
    client = plain.connect()
    for sql in ("/* nothing */", "-- nothing", "# nothing", "/**/ ;"):
        assert run(client, sql) == 0, sql


READS_NOTHING_S = 0.3


class TestVanishing:
    def test_a_client_that_never_reads_its_stream_costs_nobody_anything(self, plain):
        # What was sent is counted by what the rows show.
        producer = plain.create(
            columns="message LONGTEXT", batch_size=5, more=",vt_lease=written"
        )
        plain.stream()
        before = memory_bytes(plain.proxy)
        for ident in range(1, 101):
            insert = (
                f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', 1000000))"
            )
            run(producer, insert)
        claimed = "SELECT COUNT(*) FROM my_message WHERE epoch > 0"
        first = eventually(lambda: value(producer, claimed), "some were claimed")
        reader = plain.stream("STREAM id FROM my_message")
        taken = reader.ids(100 - value(producer, claimed) if first else 0)
        # What its socket took, and no more than one batch beyond that, was claimed for it.
        held = {ident for (ident,) in rows(producer, "SELECT id FROM my_message")} - set(taken)
        assert len(held) < 30
        assert memory_bytes(plain.proxy) - before < 60 << 20

    def test_com_quit_in_a_stream_ends_it(self, plain: Queue) -> None:
        plain.create()
        stream = plain.stream()
        stream.connection._sock.sendall(b"\x01\0\0\0\x01")
        assert stream.is_closed()

    @cases(sql=str)
    def test_what_a_vanished_client_was_running_is_killed(self, queue: Queue, sql: str) -> None:
        if queue.keyspace == "commerce" and "INSERT" in sql:
            pytest.skip("refused in a sharded keyspace")
        producer = queue.create()
        run(producer, "INSERT INTO my_message (id) VALUES (1), (4)")
        vanishing = queue.connect()
        vanishing._execute_command(COMMAND.COM_QUERY, sql)
        eventually(lambda: sleeping(queue.cluster), "it runs")
        vanishing._force_close()
        eventually(lambda: not sleeping(queue.cluster), "it is killed")
        assert run(producer, "UPDATE my_message SET tenant_id = 2") >= 2

    def test_a_client_that_vanishes_in_a_result_stops_the_server(self, plain: Queue) -> None:
        plain.create()
        run(plain.connect(), "INSERT INTO my_message (id) VALUES (1)")
        vanishing = plain.connect(cursorclass=pymysql.cursors.SSCursor)
        ten = "(SELECT 1 n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5)"
        head = f"SELECT 'sleeper', REPEAT('x', 1000) FROM {ten} a"
        sql = head + "".join(f", {ten} {name}" for name in "bcdefghij")
        cursor = vanishing.cursor()
        cursor.execute(sql)
        cursor.fetchone()
        eventually(lambda: sleeping(plain.cluster, "sleeper"), "it runs")
        before = memory_bytes(plain.proxy)
        time.sleep(READS_NOTHING_S)  # the server waits meanwhile, the proxy does not hoard
        assert memory_bytes(plain.proxy) - before < 20 << 20
        vanishing._force_close()
        # The driver would read the rest of the rows from its lost connection.
        cursor._result.unbuffered_active = False
        cursor._result = cursor.connection = None
        eventually(lambda: not sleeping(plain.cluster, "sleeper"), "it is stopped")


def memory_bytes(proxy: RunningProxy) -> int:
    with open(f"/proc/{proxy.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def sleeping(cluster: SharedCluster, text: str = "SLEEP(600)") -> bool:
    return any(running(server, text) for server in cluster.servers)
