"""Packets that no client should send end their own connection, or are an error on it."""

import pymysql
import pytest

from tests.cases import in_turn
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import run, value
from tests.integration.bad_input.raw_client import frame
from tests.integration.conftest import SETTINGS


pytestmark = [pytest.mark.db, pytest.mark.one_server]


class TestPackets:
    def test_statements_sent_ahead_are_answered_in_order(self, cluster, raw):
        client = raw(cluster.proxy)
        client.log_in()
        client.socket.sendall(b"".join(frame(b"\x03SELECT %d" % n, 0) for n in range(200)))
        for number in range(200):
            answer = [client.read() for _ in range(5)]
            assert answer[3] == (4, bytes([len(str(number))]) + b"%d" % number)

    def test_a_packet_over_the_limit_is_refused_before_it_is_read(
        self, start_proxy, cluster, raw
    ):
        proxy = start_proxy(
            SETTINGS
            + "max_allowed_packet = 1048576\n"
            + keyspace_toml("plain", cluster.servers[:1], cluster.databases["plain"])
        )
        client = raw(proxy)
        client.log_in()
        client.socket.sendall((2 << 20).to_bytes(3, "little") + b"\x00" + b"\x03SELECT '")
        assert client.error() == (1153, "Got a packet bigger than 'max_allowed_packet' bytes")
        assert client.is_closed()
        connection = proxy.connect(database="plain")
        assert value(connection, f"SELECT LENGTH('{'x' * 1_000_000}')") == 1_000_000
        with pytest.raises(pymysql.MySQLError) as caught:
            run(connection, f"SELECT LENGTH('{'x' * 3_000_000}')")
        assert caught.value.args[0] in (1153, 2006, 2013)

    def test_a_statement_that_is_not_utf_8_reaches_the_server_as_it_is(self, cluster, raw):
        client = raw(cluster.proxy)
        client.log_in()
        client.query(b"SELECT HEX(_binary'\xff\xfe\x80')")
        answer = [client.read()[1] for _ in range(5)]
        assert answer[3] == b"\x06FFFE80"
        client.query(b"SELECT \xff\xfe FROM \xc3\x28")
        assert client.read()[1][:1] == b"\xff"
        client.query(b"STREAM * FROM \xff\xfe")
        assert client.read()[1][:1] == b"\xff"
        client.query(b"USE \xff\xfe")
        assert client.read()[1][:1] == b"\xff"
        client.query(b"SELECT 1")
        assert client.read()[1] == b"\x01"

    @in_turn
    @pytest.mark.parametrize("sql", ["/* nothing */", "-- nothing", "# nothing", "/**/ ;"])
    def test_a_comment_alone_is_answered_as_by_a_server(self, cluster, sql):
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        assert run(connection, sql) == 0
