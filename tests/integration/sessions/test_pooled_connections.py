"""What a connection keeps from its login or its last session, and quick reads of many clients on one: each gets its own answer.

The proxy learns which reads are quick while these tests run; that they are sent together is seen
by the server, which has fewer connections than clients.
"""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import eventually, rows, run, tried, value
from tests.integration.conftest import SharedCluster


LOW_BYTES = 1 << 20


@pytest.fixture
def server(breakable_servers, breakable_database):
    """A server whose global variables a test may change."""
    found = breakable_servers[0]
    before = [
        (name, execute(found, f"SELECT @@global.{name}")[0][0])
        for name in ("max_allowed_packet", "init_connect", "wait_timeout")
    ]
    execute(found, f"CREATE TABLE {breakable_database}.large (a LONGBLOB)")
    yield found
    for name, old in before:
        execute(found, f"SET GLOBAL {name} = {old!r}")


@pytest.fixture
def proxy(server, breakable_database, start_proxy):
    return start_proxy(keyspace_toml(breakable_database, [server]))


def sessions(proxy: RunningProxy, number: int, database: str) -> list[Any]:
    """Return clients that have used a connection to the server each."""
    found = [proxy.connect(database=database, **OPTIONS) for _ in range(number)]
    for client in found:
        run(client, "BEGIN")
        run(client, "SELECT COUNT(*) FROM large")
    for client in found:
        run(client, "COMMIT")
    return found


OPTIONS = {"autocommit": True, "max_allowed_packet": 1 << 30}
LARGE = f"INSERT INTO large VALUES ('{'x' * (2 * LOW_BYTES)}')"


def test_a_raised_limit_of_packets_is_that_of_all_new_sessions(proxy, breakable_database):
    admin = proxy.connect(database=breakable_database, **OPTIONS)
    before = value(admin, "SELECT @@global.max_allowed_packet")
    run(admin, f"SET GLOBAL max_allowed_packet = {LOW_BYTES}")
    for client in sessions(proxy, 6, breakable_database):
        client.close()
    run(admin, f"SET GLOBAL max_allowed_packet = {before}")
    for client in sessions(proxy, 8, breakable_database):
        assert run(client, LARGE) == 1


def test_a_change_past_the_proxy_is_noticed(proxy, server, breakable_database):
    (before,) = execute(server, "SELECT @@global.max_allowed_packet")[0]

    def takes() -> bool:
        with proxy.connect(database=breakable_database, **OPTIONS) as client:
            return tried(client, LARGE) is not None

    for limit, is_taken in ((LOW_BYTES, False), (before, True)):
        execute(server, f"SET GLOBAL max_allowed_packet = {limit}")
        eventually(lambda: takes() is is_taken)  # noqa: B023


CLIENTS = 12
ROWS = 100
LONG = 200_000


def text(number: int) -> str:
    return f"row {number} " + "x" * (LONG if number == 7 else number)


@pytest.fixture
def table(cluster: SharedCluster) -> str:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "CREATE TABLE readable (id INT PRIMARY KEY, v MEDIUMTEXT)")
    for number in range(ROWS):
        run(client, f"INSERT INTO readable VALUES ({number}, '{text(number)}')")
    return "readable"


class AddressCounts:
    """Clients that read rows by id until they are stopped, each in a thread of its own.

    Attributes:
        asks_back: they also ask what a read has left, which goes with a connection that is killed.
    """

    def __init__(self, cluster: SharedCluster, table: str) -> None:
        self._cluster = cluster
        self._table = table
        self._is_over = False
        self.faults: list[str] = []
        self.reads = 0
        self.asks_back = True
        self._results = [in_thread(partial(self._read, number)) for number in range(CLIENTS)]

    def _read(self, number: int) -> None:
        dice = random.Random(number)
        client = self._cluster.proxy.connect(database="plain", autocommit=True)
        try:
            while not self._is_over:
                self._one(client, dice)
        except Exception as error:
            self.faults.append(repr(error))

    def _one(self, client: Any, dice: random.Random) -> None:
        number = dice.randrange(ROWS + 10)
        found = rows(client, f"SELECT v, id FROM {self._table} WHERE id = {number}")
        expected = ((text(number), number),) if number < ROWS else ()
        if found != expected:
            self.faults.append(f"{number}: {str(found)[:100]}")
        match dice.randrange(60) if self.asks_back else None:
            case 0:
                if value(client, "SELECT FOUND_ROWS()") != len(expected):
                    self.faults.append(f"{number}: rows were not counted")
            case 1 if expected:  # MariaDB has no warning where it finds no row
                rows(client, f"SELECT v, id FROM {self._table} WHERE id = '{number}x'")
                if len(rows(client, "SHOW WARNINGS")) != 1:
                    self.faults.append(f"{number}: no warning")
            case 2:
                try:
                    rows(client, f"SELECT nothing FROM {self._table} WHERE id = {number}")
                except pymysql.MySQLError as error:
                    if error.args[0] != 1054:
                        self.faults.append(repr(error))
            case _:
                pass
        self.reads += 1

    def go_on(self, count: int) -> None:
        """Wait until they have read *count* times more."""
        wanted = self.reads + count
        eventually(lambda: self.faults or self.reads >= wanted, f"{count} reads")

    def stop(self) -> None:
        self._is_over = True
        assert [result() for result in self._results] == [None] * CLIENTS
        assert self.faults == []


@pytest.fixture
def crowd(cluster: SharedCluster, table: str) -> Iterator[AddressCounts]:
    reading = AddressCounts(cluster, table)
    yield reading
    reading.stop()


def test_a_locked_table_holds_up_its_readers_and_loses_nothing(cluster, crowd):
    other = cluster.proxy.connect(database="plain", autocommit=True)
    run(other, "CREATE TABLE beside (id INT PRIMARY KEY)")
    run(other, "INSERT INTO beside VALUES (1)")
    crowd.go_on(3000)
    for _ in range(3):
        blocker = cluster.proxy.connect(database="plain", autocommit=True)
        run(blocker, "LOCK TABLES readable WRITE")
        # Who does not want the table goes on meanwhile, though it may have been behind the others.
        for _ in range(20):
            assert rows(other, "SELECT id FROM beside WHERE id = 1") == ((1,),)
        run(blocker, "UNLOCK TABLES")
        blocker.close()
        crowd.go_on(300)


def test_connections_that_a_server_kills_are_nobodys_trouble(cluster, crowd):
    asked = f"SELECT id FROM information_schema.processlist WHERE db = '{cluster.databases['plain']}' AND id <> CONNECTION_ID()"
    dice = random.Random(1)
    crowd.asks_back = False
    for _ in range(5):
        crowd.go_on(200)
        (victim,) = dice.choice(execute(cluster.servers[0], asked))
        try:
            execute(cluster.servers[0], f"KILL {victim}")
        except pymysql.MySQLError as error:
            assert error.args[0] == 1094, error  # noqa: PT017 - it was gone already
    crowd.go_on(200)
