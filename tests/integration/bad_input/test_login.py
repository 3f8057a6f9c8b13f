"""Logins that are late, cut, wrong or too many are refused, and nobody else notices."""

import pymysql
import pytest

from tests.cases import in_turn
from tests.fixtures.streams import value
from tests.integration.bad_input.raw_client import OpenRaw, frame, login, works
from tests.integration.conftest import SharedCluster


pytestmark = [pytest.mark.db, pytest.mark.one_server]


class TestLogin:
    def test_an_unknown_database_is_refused(self, cluster: SharedCluster) -> None:
        for name in ("nosuch", cluster.databases["plain"], "", "plain:nosuch", "commerce:-40"):
            if name:
                with pytest.raises(pymysql.MySQLError) as caught:
                    cluster.proxy.connect(database=name)
                assert caught.value.args[0] in (1049, 1105), caught.value.args

    @in_turn
    @pytest.mark.parametrize(
        "data",
        [
            b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
            b"\x00" * 64,
            b"\xff" * 64,
            frame(b"", 1),
            frame(b"\x00" * 10, 1),
            frame(login("plain")[:40], 1),
            frame(login("plain"), 7),
            frame(b"\x85\xa6\xff\x01" + b"\xff" * 60, 1),
        ],
    )
    def test_garbage_closes_its_own_connection_only(
        self, cluster: SharedCluster, raw: OpenRaw, data: bytes
    ) -> None:
        other = cluster.proxy.connect(database="plain")
        client = raw(cluster.proxy)
        client.read()
        client.socket.sendall(data)
        assert client.is_closed()
        assert value(other, "SELECT 2") == 2
        assert works(cluster)

    def test_a_login_larger_than_64_kib_is_refused(
        self, cluster: SharedCluster, raw: OpenRaw
    ) -> None:
        client = raw(cluster.proxy)
        client.read()
        client.socket.sendall((1 << 20).to_bytes(3, "little") + b"\x01" + bytes(100))
        assert client.error()[0] == 1153
        assert client.is_closed()
