"""What no client should send, and what must not spread when one does: each case by name.

Most tests speak bytes: a `RawClient` is a socket, a login and as little else as possible.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND

from tests.fixtures.fix_proxy import RunningProxy, StartProxy, keyspace_toml
from tests.fixtures.fix_servers import execute
from tests.fixtures.fix_streams import (
    Consume,
    Consumer,
    eventually,
    message_table,
    refused,
    rows,
    run,
    value,
)
from tests.integration.conftest import SETTINGS, CreateTable, House


pytestmark = pytest.mark.db

CONNECT_TIMEOUT_S = 2  # of the shared proxy
LATE_S = 1.5
# PROTOCOL_41, CONNECT_WITH_DB, SECURE_CONNECTION, PLUGIN_AUTH, TRANSACTIONS.
CAPABILITIES = 1 << 9 | 1 << 3 | 1 << 15 | 1 << 19 | 1 << 13


class RawClient:
    """A socket that speaks frames."""

    def __init__(self, proxy: RunningProxy) -> None:
        self.socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=15)

    def send(self, payload: bytes, sequence: int = 0) -> None:
        self.socket.sendall(frame(payload, sequence))

    def read(self) -> tuple[int, bytes]:
        """Return the number and the payload of the next packet; b"" when there is no more."""
        header = self._exactly(4)
        if not header:
            return -1, b""
        return header[3], self._exactly(int.from_bytes(header[:3], "little"))

    def error(self) -> tuple[int, str]:
        """Return code and text of the error packet that is next."""
        _, payload = self.read()
        assert payload[:1] == b"\xff", payload
        text = payload[3:]
        return int.from_bytes(payload[1:3], "little"), text[6 * (text[:1] == b"#") :].decode()

    def is_closed(self) -> bool:
        """Return True once the other side has hung up, whatever it still said."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def log_in(self, database: str = "plain") -> None:
        self.read()
        self.send(login(database), 1)
        _, payload = self.read()
        while payload[:1] in (b"\xfe", b"\x01"):
            # An empty password, whichever plugin is asked for.
            if payload[:1] == b"\xfe":
                self.send(b"", 3)
            _, payload = self.read()
        assert payload[:1] == b"\x00", payload

    def query(self, sql: bytes) -> None:
        self.send(b"\x03" + sql)

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                return b""
            data += piece
        return data


def frame(payload: bytes, sequence: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def login(database: str, user: str = "root", answer: bytes = b"") -> bytes:
    return (
        struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45)
        + user.encode()
        + b"\0"
        + bytes([len(answer)])
        + answer
        + database.encode()
        + b"\0mysql_native_password\0"
    )


OpenRaw = Callable[[RunningProxy], RawClient]


@pytest.fixture
def raw() -> Iterator[OpenRaw]:
    opened: list[RawClient] = []

    def raw(proxy: RunningProxy) -> RawClient:
        opened.append(RawClient(proxy))
        return opened[-1]

    yield raw
    for client in opened:
        client.close()


def works(house: House) -> bool:
    """Return whether the shared proxy serves a new client."""
    return bool(value(house.proxy.connect(database="plain"), "SELECT 1") == 1)


# --- logins ------------------------------------------------------------------------------------


class TestLogin:
    @pytest.mark.parametrize("password", ["wrong", ""])
    def test_an_unknown_user_and_a_wrong_password_read_alike(
        self, start_proxy: StartProxy, house: House, password: str
    ) -> None:
        config = '[[users]]\nname = "app"\npassword = "secret"\n'
        proxy = start_proxy(
            config + keyspace_toml("plain", house.servers[:1], house.databases["plain"])
        )
        using = "YES" if password else "NO"
        for user in ("app", "nobody"):
            with pytest.raises(pymysql.MySQLError) as caught:
                proxy.connect(user=user, password=password)
            assert caught.value.args == (
                1045,
                f"Access denied for user '{user}'@'127.0.0.1' (using password: {using})",
            )
        assert value(proxy.connect(user="app", password="secret"), "SELECT 1") == 1

    def test_an_unknown_database_is_refused(self, house: House) -> None:
        for name in ("nosuch", house.databases["plain"], "", "plain:nosuch", "commerce:-40"):
            if name:
                with pytest.raises(pymysql.MySQLError) as caught:
                    house.proxy.connect(database=name)
                assert caught.value.args[0] in (1049, 1105), caught.value.args

    @pytest.mark.parametrize("size", [0, 3, 40])
    def test_half_a_handshake_is_closed_when_its_time_is_over(
        self, house: House, raw: OpenRaw, size: int
    ) -> None:
        client = raw(house.proxy)
        client.read()
        started = time.monotonic()
        client.socket.sendall(frame(login("plain"), 1)[:size])
        assert client.is_closed()
        assert CONNECT_TIMEOUT_S - 0.1 <= time.monotonic() - started < CONNECT_TIMEOUT_S + 3

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
        ids=["http", "tls", "zeros", "ones", "empty", "short", "cut", "sequence", "lengths"],
    )
    def test_garbage_closes_its_own_connection_only(
        self, house: House, raw: OpenRaw, data: bytes
    ) -> None:
        other = house.proxy.connect(database="plain")
        client = raw(house.proxy)
        client.read()
        client.socket.sendall(data)
        assert client.is_closed()
        assert value(other, "SELECT 2") == 2
        assert works(house)

    def test_a_refused_client_cannot_go_on(self, house: House, raw: OpenRaw) -> None:
        client = raw(house.proxy)
        client.read()
        nobody = frame(login("plain", "nobody", b"x" * 20), 1)
        client.socket.sendall(nobody + frame(b"", 3) + frame(b"\x03SELECT 1", 0))
        received = b""
        try:
            while data := client.socket.recv(65536):
                received += data
        except ConnectionError:
            pass
        assert b"Access denied" in received
        assert b"def" not in received

    def test_a_login_larger_than_64_kib_is_refused(self, house: House, raw: OpenRaw) -> None:
        client = raw(house.proxy)
        client.read()
        client.socket.sendall((1 << 20).to_bytes(3, "little") + b"\x01" + bytes(100))
        assert client.error()[0] == 1153
        assert client.is_closed()

    def test_more_connections_than_allowed_are_told_so_instead_of_a_greeting(
        self, start_proxy: StartProxy, house: House
    ) -> None:
        proxy = start_proxy(
            SETTINGS
            + "max_connections = 2\n"
            + keyspace_toml("plain", house.servers[:1], house.databases["plain"])
        )
        first = proxy.connect(database="plain")
        proxy.connect(database="plain")
        with pytest.raises(pymysql.MySQLError) as caught:
            proxy.connect(database="plain")
        assert caught.value.args == (1040, "Too many connections")
        first.close()
        eventually(lambda: connects(proxy), "a place is free again")


def connects(proxy: RunningProxy) -> bool:
    try:
        proxy.connect(database="plain")
    except pymysql.MySQLError:
        return False
    return True


# --- packets -----------------------------------------------------------------------------------


class TestPackets:
    def test_headers_and_statements_may_be_cut_anywhere(
        self, house: House, raw: OpenRaw
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        statement = frame(b"\x03SELECT 'abc'", 0)
        for cut in range(1, len(statement)):
            client.socket.sendall(statement[:cut])
            time.sleep(0.002)  # so that the pieces travel apart
            client.socket.sendall(statement[cut:])
            answer = [client.read()[1] for _ in range(5)]
            assert answer[3] == b"\x03abc", (cut, answer)

    def test_statements_sent_ahead_are_answered_in_order(
        self, house: House, raw: OpenRaw
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        client.socket.sendall(b"".join(frame(b"\x03SELECT %d" % n, 0) for n in range(200)))
        for number in range(200):
            answer = [client.read() for _ in range(5)]
            assert answer[3] == (4, bytes([len(str(number))]) + b"%d" % number)

    def test_a_wrong_sequence_number_ends_the_connection(
        self, house: House, raw: OpenRaw
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        client.send(b"\x03SELECT 1", 5)
        assert client.error() == (1156, "Got packets out of order")
        assert client.is_closed()
        assert works(house)

    def test_a_packet_over_the_limit_is_refused_before_it_is_read(
        self, start_proxy: StartProxy, house: House, raw: OpenRaw
    ) -> None:
        proxy = start_proxy(
            SETTINGS
            + "max_allowed_packet = 1048576\n"
            + keyspace_toml("plain", house.servers[:1], house.databases["plain"])
        )
        client = raw(proxy)
        client.log_in()
        client.socket.sendall((2 << 20).to_bytes(3, "little") + b"\x00" + b"\x03SELECT '")
        assert client.error() == (
            1153,
            "Got a packet bigger than 'max_allowed_packet' bytes",
        )
        assert client.is_closed()
        connection = proxy.connect(database="plain")
        assert value(connection, f"SELECT LENGTH('{'x' * 1_000_000}')") == 1_000_000
        with pytest.raises(pymysql.MySQLError) as caught:
            run(connection, f"SELECT LENGTH('{'x' * 3_000_000}')")
        assert caught.value.args[0] in (1153, 2006, 2013)

    @pytest.mark.parametrize("command", [0x00, 0x05, 0x0B, 0x0F, 0x1D, 0x20, 0x7F, 0xFF])
    def test_an_unknown_command_is_an_error_and_no_more(
        self, house: House, raw: OpenRaw, command: int
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        client.send(bytes([command]) + b"\x00\x00\x00\x00\x00")
        assert client.error() == (1047, "Unknown command")
        client.query(b"SELECT 1")
        assert client.read()[1] == b"\x01"

    @pytest.mark.parametrize(
        "payload",
        [b"", b"\x0c", b"\x02", b"\x1b", b"\x11", b"\x11root\0", b"\x16", b"\x17"],
        ids=[
            "nothing",
            "kill",
            "init",
            "option",
            "user",
            "user2",
            "prepare",
            "execute",
        ],
    )
    def test_a_command_that_breaks_off_is_an_error(
        self, house: House, raw: OpenRaw, payload: bytes
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        client.send(payload)
        assert client.error()[0] in (1835, 1049, 1065, 1045, 1243, 1047), payload
        assert works(house)

    def test_a_command_without_an_answer_that_breaks_off_ends_its_connection_only(
        self, house: House, raw: OpenRaw
    ) -> None:
        client = raw(house.proxy)
        client.log_in()
        client.send(b"\x19\x01")
        assert client.is_closed()
        assert works(house)

    def test_a_statement_that_is_not_utf_8_reaches_the_server_as_it_is(
        self, house: House, raw: OpenRaw
    ) -> None:
        client = raw(house.proxy)
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
    def test_what_is_no_statement_is_a_plain_error(self, house: House, sql: str) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        code, _ = refused(connection, sql)
        assert code in (1064, 1065), code
        assert value(connection, "SELECT 1") == 1

    @pytest.mark.parametrize("sql", ["/* nothing */", "-- nothing", "# nothing", "/**/ ;"])
    def test_a_comment_alone_is_answered_as_by_a_server(self, house: House, sql: str) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        assert run(connection, sql) == 0

    def test_deep_nesting_harms_nobody(self, house: House) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        for depth in (500, 20_000):
            refused(connection, "SELECT " + "(" * depth + "1")
        code, _ = refused(
            connection, "SELECT * FROM t WHERE " + " AND ".join(["a = 1"] * 50_000)
        )
        assert code in (1146, 1436, 1064)
        assert works(house)


# --- clients that do not read, or leave --------------------------------------------------------


class TestVanishing:
    def test_a_client_that_never_reads_its_stream_costs_nobody_anything(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", columns="message LONGTEXT", batch_size=5)
        producer = house.proxy.connect(database="plain", autocommit=True)
        consume(house.proxy, database="plain")
        before = memory_bytes(house.proxy)
        for ident in range(1, 101):
            run(
                producer,
                f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', 1000000))",
            )
        claimed = "SELECT COUNT(*) FROM my_message WHERE epoch > 0"
        first = eventually(lambda: value(producer, claimed), "some were claimed")
        reader = consume(house.proxy, "STREAM id FROM my_message", database="plain")
        taken = reader.ids(100 - value(producer, claimed) if first else 0)
        # What its socket took, and no more than one batch beyond that, was claimed for it.
        held = {ident for (ident,) in rows(producer, "SELECT id FROM my_message")} - set(taken)
        assert len(held) < 30
        assert memory_bytes(house.proxy) - before < 60 << 20

    def test_rows_that_never_left_for_a_vanished_consumer_are_due_at_once(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", columns="message LONGTEXT", batch_size=40)
        producer = house.proxy.connect(database="plain", autocommit=True)
        connection = house.proxy.connect(database="plain", autocommit=None)
        connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck = Consumer(connection, "STREAM * FROM my_message")
        run(producer, "BEGIN")
        for ident in range(1, 41):
            run(
                producer,
                f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', 400000))",
            )
        run(producer, "COMMIT")
        claimed = "SELECT COUNT(*) FROM my_message WHERE epoch = 1"
        # Sixteen megabytes do not fit into any socket.
        eventually(lambda: value(producer, claimed) >= 35, "most are claimed")
        stuck.close()
        eventually(lambda: value(producer, claimed) <= 25, "unsent rows are released")
        other = consume(house.proxy, "STREAM id FROM my_message", database="plain")
        assert len(other.ids(15, LATE_S)) == 15

    def test_a_vanished_consumer_is_noticed_while_idle(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        consume(house.proxy, database="plain").close()
        producer = house.proxy.connect(database="plain", autocommit=True)
        stream = consume(house.proxy, database="plain")
        for ident in range(10):
            run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
        assert stream.ids(10, LATE_S) == list(range(10))

    def test_com_quit_in_a_stream_ends_it(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        stream = consume(house.proxy, database="plain")
        stream.connection._sock.sendall(frame(b"\x01", 0))
        assert stream.is_closed()

    def test_statements_sent_behind_a_stream_wait_for_its_end(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        stream = consume(house.proxy, database="plain")
        stream.connection._sock.sendall(frame(b"\x03SELECT 5", 0))
        stream.nothing(0.3)
        run(house.proxy.connect(database="plain"), f"KILL QUERY {stream.id}")
        assert stream.error()[0] == 1317
        stream.connection._result = None
        assert stream.connection._read_query_result() == 1
        assert stream.connection._result.rows == ((5,),)

    def test_a_client_that_vanishes_in_a_transaction_leaves_no_lock(
        self, house: House, create: CreateTable, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        run(producer, "INSERT INTO my_message (id) VALUES (1), (4)")
        vanishing = house.proxy.connect(database=keyspace)
        run(vanishing, "UPDATE my_message SET tenant_id = 1 WHERE id IN (1, 4)")
        vanishing._force_close()
        run(producer, "SET innodb_lock_wait_timeout = 2")
        assert run(producer, "UPDATE my_message SET tenant_id = 2 WHERE id IN (1, 4)") == 2

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT SLEEP(60)",
            "SELECT SLEEP(60), id FROM my_message",
            "UPDATE my_message SET tenant_id = SLEEP(60)",
            "INSERT INTO my_message (id) SELECT SLEEP(60) + 5",
        ],
    )
    def test_what_a_vanished_client_was_running_is_killed(
        self, house: House, create: CreateTable, keyspace: str, sql: str
    ) -> None:
        if keyspace == "commerce" and "INSERT" in sql:
            pytest.skip("refused in a sharded keyspace")
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        run(producer, "INSERT INTO my_message (id) VALUES (1), (4)")
        vanishing = house.proxy.connect(database=keyspace, autocommit=True)
        vanishing._execute_command(COMMAND.COM_QUERY, sql)
        eventually(lambda: sleeping(house), "it runs")
        vanishing._force_close()
        eventually(lambda: not sleeping(house), "it is killed", 5)
        assert run(producer, "UPDATE my_message SET tenant_id = 2") >= 2

    def test_a_client_that_vanishes_in_a_result_stops_the_server(
        self, house: House, create: CreateTable
    ) -> None:
        create("plain")
        run(
            house.proxy.connect(database="plain", autocommit=True),
            "INSERT INTO my_message (id) VALUES (1)",
        )
        vanishing = house.proxy.connect(
            database="plain", autocommit=True, cursorclass=pymysql.cursors.SSCursor
        )
        ten = "(SELECT 1 n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5)"
        sql = f"SELECT 'sleeper', REPEAT('x', 1000) FROM {ten} a" + "".join(
            f", {ten} {name}" for name in "bcdefghij"
        )
        cursor = vanishing.cursor()
        cursor.execute(sql)
        cursor.fetchone()
        eventually(lambda: sleeping(house, "sleeper"), "it runs")
        before = memory_bytes(house.proxy)
        time.sleep(0.3)  # a slow client: the server waits, the proxy does not hoard
        assert memory_bytes(house.proxy) - before < 20 << 20
        vanishing._force_close()
        # The driver would read the rest of the rows from its lost connection.
        cursor._result.unbuffered_active = False
        cursor._result = cursor.connection = None
        eventually(lambda: not sleeping(house, "sleeper"), "it is stopped", 5)


def memory_bytes(proxy: RunningProxy) -> int:
    with open(f"/proc/{proxy.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def sleeping(house: House, text: str = "SLEEP(60)") -> list[Any]:
    return [
        row
        for server in house.servers
        for row in execute(server, "SELECT id, info FROM information_schema.processlist")
        if row[1] and text in row[1] and "processlist" not in row[1]
    ]


# --- streams and acknowledgements --------------------------------------------------------------


class TestStatements:
    @pytest.mark.parametrize(
        ("sql", "code", "words"),
        [
            ("STREAM * FROM nosuch", 1146, "message table 'nosuch' not found in keyspace"),
            ("STREAM * FROM ordinary", 1146, "message table 'ordinary' not found in keyspace"),
            ("STREAM * FROM nosuch.t", 1049, "Unknown database 'nosuch'"),
            ("STREAM nosuch FROM my_message", 1054, "Unknown column 'nosuch' in"),
            ("STREAM FROM my_message", 1064, "syntax"),
            ("STREAM * my_message", 1064, "syntax"),
            ("STREAM * FROM", 1064, "syntax"),
            ("STREAM * FROM my_message WHERE id = 1", 1064, "syntax"),
            ("STREAM * FROM my_message LIMIT 1", 1064, "syntax"),
            ("STREAM *, id FROM my_message", 1064, "syntax"),
            ("STREAM 1 FROM my_message", 1064, "syntax"),
            ("STREAM * FROM my_message; SELECT 1", 1064, "syntax"),
            ("STREAM * FROM my_message m", 1064, "syntax"),
        ],
    )
    def test_a_stream_of_what_cannot_be_streamed(
        self, house: House, create: CreateTable, keyspace: str, sql: str, code: int, words: str
    ) -> None:
        create(keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        run(connection, "CREATE TABLE ordinary (id BIGINT PRIMARY KEY)")
        found, text = refused(connection, sql)
        assert (found, words in text) == (code, True), text
        assert value(connection, "SELECT 1") == 1

    def test_an_ack_with_a_string_for_a_number(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.4, more=",vt_max_backoff=0.4")
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        stream = consume(house.proxy, database=keyspace)
        run(connection, "INSERT INTO my_message (id) VALUES (1), (4)")
        stream.take(2, LATE_S)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN"
        assert run(connection, f"{ack} ('1')") == 1
        assert stream.next(LATE_S)[0] == 4
        assert run(connection, f"{ack} ('4')") == 1
        stream.nothing(0.8)
        for nonsense in ("('x')", "('4x')", "(NULL)", "(99)", "(4)", "(-1)", "(1e30)", "('')"):
            # Strict servers refuse some of these in words of their own.
            with contextlib.suppress(pymysql.err.DataError, pymysql.err.OperationalError):
                assert run(connection, f"{ack} {nonsense}") == 0

    def test_an_ack_of_nothing_known_is_no_error(
        self, house: House, create: CreateTable, keyspace: str
    ) -> None:
        create(keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id"
        assert run(connection, f"{ack} = 12345") == 0
        assert run(connection, f"{ack} IN (12345, 54321)") == 0
        assert run(connection, f"{ack} IS NULL") == 0

    def test_an_insert_without_a_usable_id(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        insert = "INSERT INTO my_message"
        assert refused(connection, f"{insert} (tenant_id) VALUES (1)")[0] == 1364
        assert refused(connection, f"{insert} (id) VALUES (NULL)")[0] == 1048
        assert refused(connection, f"{insert} (id) VALUES ('x')")[0] == 1366
        assert refused(connection, f"{insert} (id) VALUES (99999999999999999999)")[0] in (
            1264,
            1366,
        )
        assert refused(connection, f"{insert} (id, nosuch) VALUES (1, 2)")[0] == 1054
        assert refused(connection, f"{insert} (id, tenant_id) VALUES (1)")[0] == 1136
        assert refused(connection, f"{insert} () VALUES ()")[0] in (1364, 1235)
        run(connection, f"{insert} (id) VALUES (1)")
        assert refused(connection, f"{insert} (id) VALUES (1)")[0] == 1062
        assert stream.ids(1, LATE_S) == [1]
        stream.nothing(0.3)

    def test_a_string_that_is_a_number_is_the_same_id(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        run(connection, "INSERT INTO my_message (id) VALUES ('4')")
        assert stream.next(LATE_S)[0] == 4
        assert rows(connection, "SELECT id FROM my_message WHERE id = 4") == ((4,),)
        assert rows(connection, "SELECT id FROM my_message WHERE id = '4'") == ((4,),)
        assert run(connection, "DELETE FROM my_message WHERE id = 4") == 1


class TestComments:
    @pytest.mark.parametrize("bad", ["missing", "0", "-5", "ten", "", "1e999x", "0.0"])
    @pytest.mark.parametrize(
        "key",
        [
            "vt_ack_wait",
            "vt_purge_after",
            "vt_batch_size",
            "vt_cache_size",
            "vt_poller_interval",
        ],
    )
    def test_each_key_is_named_when_its_value_is_bad(
        self, house: House, key: str, bad: str
    ) -> None:
        if bad not in ("missing", "0") and key not in ("vt_ack_wait", "vt_cache_size"):
            pytest.skip("one of each kind does")
        connection = house.proxy.connect(database="plain", autocommit=True)
        start, _, rest = message_table().partition(f"{key}=")
        digits = len(rest) - len(rest.lstrip("0123456789."))
        new = start + (f"{key}={bad}" if bad != "missing" else "") + rest[digits:]
        run(connection, new)
        code, text = refused(connection, "STREAM * FROM my_message")
        assert code == 1105
        if bad in ("missing", ""):
            why = f"attribute {key} not specified for message table"
        else:
            why = f"{key} must be"
        assert text.startswith(f"message table 'my_message' failed to load: {why}"), text

    @pytest.mark.parametrize("column", ["id", "priority", "epoch", "time_next", "time_acked"])
    def test_a_missing_column_is_named(self, house: House, column: str) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        columns = {"id", "priority", "epoch", "time_next", "time_acked", "message"} - {column}
        comment = message_table().partition("COMMENT")[2]
        definitions = ", ".join(f"{name} BIGINT" for name in sorted(columns))
        run(connection, f"CREATE TABLE my_message ({definitions}) COMMENT {comment}")
        assert refused(connection, "STREAM * FROM my_message") == (
            1105,
            "message table 'my_message' failed to load:"
            f" {column} missing from message table: my_message",
        )

    @pytest.mark.parametrize(
        ("columns", "why"),
        [
            ("message", "vt_message_cols must begin with id: my_message"),
            ("message|id", "vt_message_cols must begin with id: my_message"),
            ("id|nosuch", "nosuch missing from message table: my_message"),
        ],
    )
    def test_bad_message_cols(self, house: House, columns: str, why: str) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        run(connection, message_table(more=f",vt_message_cols={columns}"))
        assert refused(connection, "STREAM * FROM my_message") == (
            1105,
            f"message table 'my_message' failed to load: {why}",
        )

    def test_blanks_do_not_count(self, house: House, consume: Consume) -> None:
        connection = house.proxy.connect(database="plain", autocommit=True)
        run(connection, message_table().replace(",vt_", " , vt_").replace("=", " = "))
        stream = consume(house.proxy, database="plain")
        run(connection, "INSERT INTO my_message (id) VALUES (1)")
        assert stream.next(LATE_S)[0] == 1


class TestVindex:
    @pytest.mark.parametrize(
        ("sql", "code"),
        [
            ("INSERT INTO customer (name) VALUES ('x')", 1364),
            ("INSERT INTO customer (id, name) VALUES (NULL, 'x')", 1048),
            ("INSERT INTO customer (id, name) VALUES (1, 'a'), (NULL, 'b')", 1048),
            ("INSERT INTO customer (id, name) VALUES ('abc', 'x')", 1366),
            ("INSERT INTO customer (id, name) VALUES (1.5, 'x')", 1366),
            ("INSERT INTO customer (id, name) VALUES (1 + 1, 'x')", 1235),
            ("INSERT INTO customer (id, name) VALUES (DEFAULT, 'x')", 1235),
            ("INSERT INTO customer SET name = 'x'", 1364),
            ("INSERT INTO customer SET id = NULL", 1048),
            ("REPLACE INTO customer (name) VALUES ('x')", 1364),
            ("UPDATE customer SET id = 2 WHERE id = 1", 1235),
            ("INSERT INTO customer (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 5", 1235),
            ("INSERT INTO nosuch (id) VALUES (1)", 1235),
            ("SELECT * FROM nosuch", 1235),
        ],
    )
    def test_a_vindex_column_that_cannot_be_used(
        self, house: House, sql: str, code: int
    ) -> None:
        connection = house.proxy.connect(database="commerce", autocommit=True)
        run(connection, "CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20))")
        found, text = refused(connection, sql)
        assert found == code, text
        assert not rows(connection, "SELECT id FROM customer")
