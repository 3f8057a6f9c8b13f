"""Logins that are late, cut, wrong or too many are refused, and nobody else notices."""

import contextlib
import time

import pymysql
import pytest

from tests.cases import in_turn
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import value
from tests.integration.bad_input.raw_client import frame, login, works
from tests.integration.conftest import SETTINGS, SharedCluster


pytestmark = [pytest.mark.db, pytest.mark.one_server]


class TestLogin:
    def test_an_unknown_database_is_refused(self, cluster: SharedCluster) -> None:
        for name in ("nosuch", cluster.databases["plain"], "", "plain:nosuch", "commerce:-40"):
            if name:
                with pytest.raises(pymysql.MySQLError) as caught:
                    cluster.proxy.connect(database=name)
                assert caught.value.args[0] in (1049, 1105), caught.value.args

    def test_half_a_handshake_is_closed_when_its_time_is_over(self, cluster, start_proxy, raw):
        settings = SETTINGS.replace("connect_timeout = 60", "connect_timeout = 2")
        keyspace = keyspace_toml("plain", cluster.servers[:1], cluster.databases["plain"])
        proxy = start_proxy(settings + keyspace)
        started = time.monotonic()
        clients = [raw(proxy) for _ in range(3)]
        for client, size in zip(clients, (0, 3, 40), strict=True):
            client.read()
            with contextlib.suppress(OSError):  # on a busy machine its time is over by now
                client.socket.sendall(frame(login("plain"), 1)[:size])
        assert all(client.is_closed() for client in clients)
        assert time.monotonic() - started >= 1.9

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
    def test_garbage_closes_its_own_connection_only(self, cluster, raw, data):
        other = cluster.proxy.connect(database="plain")
        client = raw(cluster.proxy)
        client.read()
        client.socket.sendall(data)
        assert client.is_closed()
        assert value(other, "SELECT 2") == 2
        assert works(cluster)

    def test_a_login_larger_than_64_kib_is_refused(self, cluster, raw):
        client = raw(cluster.proxy)
        client.read()
        client.socket.sendall((1 << 20).to_bytes(3, "little") + b"\x01" + bytes(100))
        assert client.error()[0] == 1153
        assert client.is_closed()
