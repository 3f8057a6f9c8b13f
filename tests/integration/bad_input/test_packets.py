"""Packets that no client should send end their own connection, or are an error on it."""

import time

import pytest

from tests.cases import in_turn
from tests.fixtures.streams import refused, run, value
from tests.integration.bad_input.raw_client import OpenRaw, frame, works
from tests.integration.conftest import SharedCluster


pytestmark = [pytest.mark.db, pytest.mark.one_server]


class TestPackets:
    def test_headers_and_statements_may_be_cut_anywhere(
        self, cluster: SharedCluster, raw: OpenRaw
    ) -> None:
        client = raw(cluster.proxy)
        client.log_in()
        statement = frame(b"\x03SELECT 'abc'", 0)
        for cut in range(1, len(statement)):
            client.socket.sendall(statement[:cut])
            time.sleep(0.002)  # so that the pieces travel apart
            client.socket.sendall(statement[cut:])
            answer = [client.read()[1] for _ in range(5)]
            assert answer[3] == b"\x03abc", (cut, answer)

    def test_a_wrong_sequence_number_ends_the_connection(
        self, cluster: SharedCluster, raw: OpenRaw
    ) -> None:
        client = raw(cluster.proxy)
        client.log_in()
        client.send(b"\x03SELECT 1", 5)
        assert client.error() == (1156, "Got packets out of order")
        assert client.is_closed()
        assert works(cluster)

    @in_turn
    @pytest.mark.parametrize(
        "payload", [b"", b"\x0c", b"\x02", b"\x1b", b"\x11", b"\x11root\0", b"\x16", b"\x17"]
    )
    def test_a_command_that_breaks_off_is_an_error(
        self, cluster: SharedCluster, raw: OpenRaw, payload: bytes
    ) -> None:
        client = raw(cluster.proxy)
        client.log_in()
        client.send(payload)
        assert client.error()[0] in (1835, 1049, 1065, 1045, 1243, 1047), payload
        assert works(cluster)

    def test_a_command_without_an_answer_that_breaks_off_ends_its_connection_only(
        self, cluster: SharedCluster, raw: OpenRaw
    ) -> None:
        client = raw(cluster.proxy)
        client.log_in()
        client.send(b"\x19\x01")
        assert client.is_closed()
        assert works(cluster)

    def test_a_statement_that_is_not_utf_8_reaches_the_server_as_it_is(
        self, cluster: SharedCluster, raw: OpenRaw
    ) -> None:
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
    @pytest.mark.parametrize(
        "sql",
        [
            "",
            "  ",
            ";",
            "'",
            "`",
            '"',
            "/*",
            "SELECT",
            "(",
            "\0",
        ],
    )
    def test_what_is_no_statement_is_a_plain_error(
        self, cluster: SharedCluster, sql: str
    ) -> None:
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        code, _ = refused(connection, sql)
        assert code in (1064, 1065), code
        assert value(connection, "SELECT 1") == 1

    @in_turn
    @pytest.mark.parametrize("sql", ["/* nothing */", "-- nothing", "# nothing", "/**/ ;"])
    def test_a_comment_alone_is_answered_as_by_a_server(
        self, cluster: SharedCluster, sql: str
    ) -> None:
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        assert run(connection, sql) == 0

    def test_deep_nesting_harms_nobody(self, cluster: SharedCluster) -> None:
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        for depth in (500, 20_000):
            refused(connection, "SELECT " + "(" * depth + "1")
        code, _ = refused(
            connection, "SELECT * FROM t WHERE " + " AND ".join(["a = 1"] * 50_000)
        )
        assert code in (1146, 1436, 1064, 3170)  # 3170: max_statement_tokens
        assert works(cluster)
