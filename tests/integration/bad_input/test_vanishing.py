"""Clients that do not read, or leave in the middle, hold up nobody and leave nothing behind."""

import time

import pymysql
import pytest
from pymysql.constants import COMMAND

from tests.fixtures.background import running
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import eventually, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


READS_NOTHING_S = 0.3
pytestmark = pytest.mark.db


class TestVanishing:
    def test_a_client_that_never_reads_its_stream_costs_nobody_anything(self, plain):
        # What was sent is counted by what the rows show.
        producer = plain.create(
            columns="message LONGTEXT", batch_size=5, more=",vt_lease=written"
        )
        plain.stream()
        before = memory_bytes(plain.proxy)
        for ident in range(1, 101):
            run(
                producer,
                f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', 1000000))",
            )
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

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT SLEEP(600)",
            "SELECT SLEEP(600), id FROM my_message",
            "UPDATE my_message SET tenant_id = SLEEP(600)",
            "INSERT INTO my_message (id) SELECT SLEEP(600) + 5",
        ],
    )
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
        sql = f"SELECT 'sleeper', REPEAT('x', 1000) FROM {ten} a" + "".join(
            f", {ten} {name}" for name in "bcdefghij"
        )
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
