"""The limits of clients, as seen from outside."""

import threading
import time
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.fixtures.fix_proxy import RunningProxy, StartProxy, keyspace_toml, write_vschema
from tests.fixtures.fix_servers import DatabaseServer, execute
from tests.fixtures.fix_streams import Consume, eventually, message_table, refused, rows, run


pytestmark = pytest.mark.db

VSCHEMA = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {
        name: {"column_vindexes": [{"column": "id", "name": "hash"}]}
        for name in ("my_message", "customer")
    },
}
SETTINGS = """[server]
listen = "127.0.0.1:0"
statement_timeout = 0.5
idle_timeout = 1
auth_backoff = 1
[[users]]
name = "app"
password = "sesame"
[[users]]
name = "few"
password = "sesame"
max_connections = 2
"""


@pytest.fixture
def limited(
    servers: tuple[DatabaseServer, DatabaseServer],
    sharded_database: str,
    start_proxy: StartProxy,
    tmp_path: Path,
) -> RunningProxy:
    """A proxy with narrow limits."""
    vschema = write_vschema(tmp_path, VSCHEMA)
    return start_proxy(SETTINGS + keyspace_toml("commerce", servers, sharded_database, vschema))


def connect(proxy: RunningProxy, user: str = "app", **options: Any) -> Any:
    options = {"password": "sesame", "database": "commerce", "autocommit": True} | options
    return proxy.connect(user=user, **options)


def sleeps(server: DatabaseServer) -> bool:
    found = execute(server, "SELECT info FROM information_schema.processlist")
    return any(info and "SLEEP(30)" in info for (info,) in found)


def test_a_statement_that_takes_too_long_is_stopped_on_its_server(
    limited: RunningProxy, servers: tuple[DatabaseServer, DatabaseServer]
) -> None:
    client = connect(limited)
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY)")
    run(client, "INSERT INTO customer (id) VALUES (1), (4)")
    too_long = "Query execution was interrupted, maximum statement execution time exceeded"
    for sql in (
        "SELECT SLEEP(30)",
        "SELECT id, SLEEP(30) FROM customer WHERE id = 4",
        "SELECT id, SLEEP(30) FROM customer ORDER BY id",
        "DELETE FROM customer WHERE SLEEP(30) = 0",
    ):
        assert refused(client, sql) == (3024, too_long), sql
    assert rows(client, "SELECT id FROM customer ORDER BY id") == ((1,), (4,))
    eventually(lambda: not any(map(sleeps, servers)), "nobody sleeps any more")


def test_a_silent_client_is_left_and_a_consumer_is_not(
    limited: RunningProxy, consume: Consume
) -> None:
    setup = connect(limited)
    run(setup, message_table("my_message"))
    consumer = consume(limited, user="app", password="sesame", database="commerce")
    setup._sock.settimeout(30)
    # Unasked: the code of the error stands behind the packet's header and 0xFF.
    told = setup._sock.recv(1 << 12)
    assert int.from_bytes(told[5:7], "little") == 4031
    assert setup._sock.recv(1) == b""
    run(connect(limited), """INSERT INTO my_message (id, message) VALUES (1, '"hello"')""")
    assert consumer.next()[0] == 1


def test_a_user_has_so_many_connections_and_no_more(limited: RunningProxy) -> None:
    first, _ = connect(limited, "few"), connect(limited, "few")
    with pytest.raises(pymysql.MySQLError) as caught:
        connect(limited, "few")
    assert caught.value.args[0] == 1226
    assert "'few' has exceeded the 'max_connections' resource" in caught.value.args[1]
    connect(limited, "app")
    first.close()

    def gets_in() -> bool:
        try:
            connect(limited, "few")
        except pymysql.MySQLError:
            return False
        return True

    eventually(gets_in, "a place is free")


def test_guessing_passwords_gets_slow_and_nobody_else_does(limited: RunningProxy) -> None:
    def guess() -> float:
        began_s = time.monotonic()
        with pytest.raises(pymysql.MySQLError) as caught:
            connect(limited, "few", password="wrong")
        assert caught.value.args[0] == 1045
        return time.monotonic() - began_s

    for _ in range(7):
        guess()
    guesses: list[float] = []
    guessing = threading.Thread(target=lambda: guesses.append(guess()))
    guessing.start()
    assert rows(connect(limited, "app"), "SELECT 1") == ((1,),)
    guessing.join()
    assert guesses[0] >= 1
