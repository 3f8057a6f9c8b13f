"""Connections that never log in: those of one address leave places for others."""

import contextlib
import socket

import pymysql
import pytest

from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import eventually, value


pytestmark = [pytest.mark.db, pytest.mark.one_server]

ELSEWHERE = "127.0.0.2"  # an address of this machine that is not the attacker's
SETTINGS = '[server]\nlisten = "127.0.0.1:0"\nmax_connections = 300\nconnect_timeout = 60\n'


def test_silent_connections_of_one_address_leave_places_for_others(
    server, database, start_proxy
):
    proxy = start_proxy(SETTINGS + keyspace_toml(database, [server]))
    with contextlib.ExitStack() as silent:
        for _ in range(300):
            one = socket.create_connection(("127.0.0.1", proxy.port))
            silent.enter_context(one).recv(1)
        with pytest.raises(pymysql.MySQLError, match="max_logins_per_address = 150") as refused:
            proxy.connect()
        assert refused.value.args[0] == 1040
        assert value(proxy.connect(bind_address=ELSEWHERE), "SELECT 1") == 1

    def is_let_in() -> bool:
        with contextlib.suppress(pymysql.MySQLError):
            return bool(value(proxy.connect(), "SELECT 1"))
        return False

    eventually(is_let_in, "all places are free again")
