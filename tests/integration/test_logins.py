"""What happens before a login: silent connections, and guesses, of one address and of another."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.passwords.sha256_crypt import in_one_go, sha256_crypt
from tests.fixtures.database_servers import DatabaseServer
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml
from tests.fixtures.streams import WAIT_S, eventually, value
from tests.proxy.wire.accounts import SALT


pytestmark = [pytest.mark.db, pytest.mark.one_server]

ELSEWHERE = "127.0.0.2"  # an address of this machine that is not the attacker's
CRYPT = b"$A$005$" + SALT + in_one_go(sha256_crypt(b"sesame", SALT, 5000))
USERS = f"""
[[users]]
name = "app"
account = "shared"
password_hash = '{"0x" + CRYPT.hex()}'
[[users]]
name = "plain"
account = "shared"
password = "sesame"
"""


def start(
    start_proxy: StartProxy, server: DatabaseServer, database: str, *settings: str
) -> RunningProxy:
    head = "\n".join(["[server]", 'listen = "127.0.0.1:0"', *settings])
    return start_proxy(head + USERS + keyspace_toml(database, [server]))


@contextmanager
def silent(proxy: RunningProxy, number: int) -> Iterator[list[socket.socket]]:
    held = []
    try:
        for _ in range(number):
            one = socket.create_connection(("127.0.0.1", proxy.port))
            one.recv(1)
            held.append(one)
        yield held
    finally:
        for one in held:
            one.close()


def let_in(proxy: RunningProxy) -> Any:
    try:
        return proxy.connect(user="plain", password="sesame")
    except pymysql.MySQLError:
        return None


def test_silent_connections_of_one_address_leave_places_for_others(
    server, database, start_proxy
):
    proxy = start(
        start_proxy, server, database, "max_connections = 300", "connect_timeout = 60"
    )
    with silent(proxy, 300):
        with pytest.raises(pymysql.MySQLError, match="max_logins_per_address = 150") as refused:
            proxy.connect(user="plain", password="sesame")
        assert refused.value.args[0] == 1040
        other = proxy.connect(user="plain", password="sesame", bind_address=ELSEWHERE)
        assert value(other, "SELECT 1") == 1
    # All places are free again.
    connection = eventually(lambda: let_in(proxy), "the places are free")
    assert value(connection, "SELECT 1") == 1


@pytest.mark.parametrize("user", ["app", pytest.param("plain", marks=pytest.mark.thorough)])
def test_guesses_at_once_are_judged_one_after_another_and_delay_nobody_elsewhere(
    server, database, start_proxy, user
):
    proxy = start(start_proxy, server, database, "connect_timeout = 3", "auth_backoff = 0.5")
    denied: list[float] = []
    came_in: list[float] = []
    began = time.monotonic()

    def guess(password: str) -> None:
        try:
            pymysql.connect(
                host="127.0.0.1", port=proxy.port, user=user, password=password
            ).close()
            came_in.append(time.monotonic() - began)
        except pymysql.OperationalError as error:
            if error.args[0] == 1045:
                denied.append(time.monotonic() - began)

    # The right one is the last of them: if guesses took effect side by side, it would be in at once.
    words = [f"wrong{number}" for number in range(60)]
    threads = [threading.Thread(target=guess, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    eventually(lambda: len(denied) >= 4, "the free ones are over")
    last = threading.Thread(target=guess, args=("sesame",))
    last.start()
    other = proxy.connect(user=user, password="sesame", bind_address=ELSEWHERE)
    assert value(other, "SELECT 1") == 1
    assert last.is_alive() or not came_in, "another address does not wait"
    for thread in (*threads, last):
        thread.join(WAIT_S)
    # Of the others, one is judged every half second at most, until their time is over.
    assert len(denied) < 25 + 2 * (time.monotonic() - began), sorted(denied)
    assert not came_in or min(came_in) > 1
