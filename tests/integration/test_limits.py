"""The limits of clients, as seen from outside."""

import struct
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import running
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, message_table, refused, rows, run
from tests.integration.conftest import VSCHEMA


pytestmark = pytest.mark.db

SETTINGS = """[server]
listen = "127.0.0.1:0"
statement_timeout = 1
idle_timeout = 5
auth_backoff = 1
[[users]]
name = "app"
account = "shared"
password = "sesame"
"""


@pytest.fixture
def limited(servers, sharded_database, start_proxy, tmp_path):
    vschema = write_vschema(tmp_path, VSCHEMA)
    return start_proxy(SETTINGS + keyspace_toml("commerce", servers, sharded_database, vschema))


def connect(proxy: RunningProxy, user: str = "app", **options: Any) -> Any:
    options = {"password": "sesame", "database": "commerce", "autocommit": True} | options
    return proxy.connect(user=user, **options)


def test_a_statement_that_takes_too_long_is_stopped_on_its_server(
    limited, servers, sharded_database
):
    for server, ident in zip(servers, (1, 4), strict=True):
        execute(server, f"CREATE TABLE {sharded_database}.customer (id BIGINT PRIMARY KEY)")
        execute(server, f"INSERT INTO {sharded_database}.customer VALUES ({ident})")
    client = connect(limited)
    too_long = "Query execution was interrupted, maximum statement execution time exceeded"
    for sql in (
        "SELECT SLEEP(600)",
        "SELECT id, SLEEP(600) FROM customer WHERE id = 4",
        "SELECT id, SLEEP(600) FROM customer ORDER BY id",
        "DELETE FROM customer WHERE SLEEP(600) = 0",
    ):
        assert refused(client, sql) == (3024, too_long), sql
    assert rows(client, "SELECT id FROM customer ORDER BY id") == ((1,), (4,))
    for server in servers:
        eventually(lambda: not running(server, "SLEEP(600)"), "it sleeps no more")  # noqa: B023


@pytest.mark.one_server
def test_a_silent_client_is_left_and_a_consumer_is_not(limited, consume):
    setup = connect(limited)
    run(setup, message_table("my_message"))
    consumer = consume(limited, user="app", password="sesame", database="commerce")
    setup._sock.settimeout(60)
    # Unasked: the code of the error stands behind the packet's header and 0xFF.
    told = setup._sock.recv(1 << 12)
    assert int.from_bytes(told[5:7], "little") == 4031
    assert setup._sock.recv(1) == b""
    run(connect(limited), """INSERT INTO my_message (id, message) VALUES (1, '"hello"')""")
    assert consumer.next()[0] == 1


# --- what clients make the proxy hold -----------------------------------------------------------

HOLDING = """[server]
listen = "127.0.0.1:0"
max_allowed_packet = 1048576
connection_memory = 2097152
user_memory = 3145728
[[users]]
name = "app"
account = "shared"
password = "sesame"
[[users]]
name = "other"
account = "shared"
password = "sesame"
"""


@pytest.fixture
def holding(servers, sharded_database, start_proxy, tmp_path):
    """A proxy that holds little for its clients, with a table that has one row."""
    vschema = write_vschema(tmp_path, VSCHEMA)
    proxy = start_proxy(HOLDING + keyspace_toml("commerce", servers, sharded_database, vschema))
    client = connect(proxy)
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY)")
    run(client, "INSERT INTO customer (id) VALUES (1)")
    return proxy


def send(client: Any, payload: bytes) -> None:
    client._sock.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)
    client._next_seq_id = 1


def prepare(client: Any, sql: bytes) -> int:
    """Return the id of a statement without columns or parameters to read. Raises as pymysql."""
    send(client, b"\x16" + sql)
    head = client._read_packet().get_all_data()
    statement, columns, parameters = struct.unpack_from("<IHH", head, 1)
    for count in (parameters, columns):
        for _ in range(count + 1 if count else 0):
            client._read_packet()
    return int(statement)


@pytest.mark.one_server
def test_statements_beyond_the_budget_are_refused_and_the_transaction_goes_on(holding):
    client = connect(holding)
    run(client, "BEGIN")
    run(client, "INSERT INTO customer (id) VALUES (4)")
    known: list[int] = []

    def prepare_many() -> None:
        known.extend(
            prepare(client, b"SELECT %d /* %b */" % (n, b"x" * 50_000)) for n in range(99)
        )

    with pytest.raises(pymysql.MySQLError) as caught:
        prepare_many()
    assert caught.value.args[0] == 4082
    assert "(connection_memory)" in caught.value.args[1]
    assert 15 < len(known) < 21
    send(client, struct.pack("<BI", 0x19, known.pop()))
    known.append(prepare(client, b"SELECT 'again'"))
    run(client, "COMMIT")
    assert rows(client, "SELECT id FROM customer ORDER BY id") == ((1,), (4,))
    # A session that begins anew holds nothing.
    send(client, b"\x1f")
    client._read_packet()
    assert len([prepare(client, b"SELECT %d /* %b */" % (n, b"y" * 50_000)) for n in range(15)])


@pytest.mark.one_server
def test_half_commands_of_one_users_connections_are_bounded_and_given_back(holding):
    other = connect(holding, "other")
    half = (1_000_000).to_bytes(3, "little") + b"\0\x03" + b"x" * 900_000
    # Six times as much as a user may hold, three connections at a time.
    for _ in range(6):
        clients = [connect(holding) for _ in range(3)]
        for client in clients:
            client._sock.sendall(half)
        one_more = connect(holding)
        one_more._next_seq_id = 1
        one_more._sock.sendall(half)
        with pytest.raises(pymysql.MySQLError) as caught:
            one_more._read_packet()
        assert caught.value.args[0] == 1226
        assert "'app' has exceeded the 'user_memory' resource" in caught.value.args[1]
        assert rows(other, "SELECT id FROM customer") == ((1,),)
        for client in clients:
            client._force_close()

        def is_given_back() -> bool:
            client = connect(holding)
            client._sock.sendall(half + b"x" * 99_999)
            client._next_seq_id = 1
            try:
                client._read_packet()
            except pymysql.MySQLError as error:
                return int(error.args[0]) == 1064
            return False

        eventually(is_given_back, "what was held is given back")
