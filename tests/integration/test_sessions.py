"""A session is the client's own, although its connections to the servers are not.

Most tests run on a proxy with two connections to each server and more clients than that, so
that every statement may find a connection that somebody else has just used.
"""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT, COMMAND

from proxy.embedded.servers import Family
from tests.fixtures.fix_proxy import (
    RunningProxy,
    StartProxy,
    keyspace_toml,
    proxies_of,
    write_vschema,
)
from tests.fixtures.fix_servers import DatabaseServer, Farm, execute, names
from tests.fixtures.fix_streams import (
    Consume,
    eventually,
    message_table,
    refused,
    rows,
    run,
    value,
)
from tests.integration.conftest import FAULTS, SETTINGS, VSCHEMA, House


pytestmark = pytest.mark.db

CLIENTS = 8
LOW, HIGH = 1, 4


@pytest.fixture(scope="module")
def tight_house(
    farm: Farm, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningProxy, str]]:
    """The proxy, and its sharded keyspace's database; that of the other one ends in _plain."""
    servers = farm.server(family, 0), farm.server(family, 1)
    database = next(names)
    for server in servers:
        execute(server, f"CREATE DATABASE {database}")
        execute(server, f"CREATE TABLE {database}.customer (id BIGINT PRIMARY KEY, n INT)")
    execute(servers[1], f"CREATE DATABASE {database}_plain")
    folder = tmp_path_factory.mktemp("tight")
    vschema = write_vschema(folder, VSCHEMA)
    keyspaces = keyspace_toml("commerce", servers, database, vschema)
    keyspaces += keyspace_toml("plain", servers[1:], f"{database}_plain")
    config = folder / "proxy.toml"
    config.write_text(
        SETTINGS + "pool_timeout = 3\n" + keyspaces.replace("primary", "pool_size = 2\nprimary")
    )
    proxy = RunningProxy(config, {})
    yield proxy, database
    proxy.close()
    for server in servers:
        execute(server, f"DROP DATABASE {database}")
    execute(servers[1], f"DROP DATABASE {database}_plain")


@pytest.fixture
def sharded_database(tight_house: tuple[RunningProxy, str]) -> str:
    """The database of keyspace commerce on both servers."""
    return tight_house[1]


@pytest.fixture
def tight(
    tight_house: tuple[RunningProxy, str],
    servers: tuple[DatabaseServer, DatabaseServer],
    request: pytest.FixtureRequest,
) -> Iterator[RunningProxy]:
    """A proxy with two connections to each server; keyspaces plain and commerce."""
    proxy, database = tight_house
    request.node.stash[proxies_of] = [proxy]
    logged = len(proxy.log())
    yield proxy
    proxy.disconnect()
    patience = "SET lock_wait_timeout = 10, innodb_lock_wait_timeout = 10"
    for server, schema in (
        *((server, database) for server in servers),
        (servers[1], f"{database}_plain"),
    ):
        for (table,) in execute(server, f"SHOW TABLES FROM {schema}"):
            verb = "TRUNCATE" if table == "customer" else "DROP"
            execute(server, f"{verb} TABLE {schema}.{table}", init_command=patience)
    news = proxy.log()[logged:]
    assert not any(fault in news for fault in FAULTS), news


def crowd(proxy: RunningProxy, count: int = CLIENTS, **options: Any) -> list[Any]:
    return [
        proxy.connect(**{"database": "plain", "autocommit": True} | options)
        for _ in range(count)
    ]


def shuffled_rounds(clients: list[Any], rounds: int) -> Iterator[int]:
    dice = random.Random(7)
    for _ in range(rounds):
        order = list(range(len(clients)))
        dice.shuffle(order)
        yield from order


# --- variables ---------------------------------------------------------------------------------


class TestVariables:
    def test_each_client_keeps_its_own(self, tight: RunningProxy) -> None:
        clients = crowd(tight)
        for number, client in enumerate(clients):
            run(
                client,
                f"SET time_zone = '+0{number}:00', group_concat_max_len = {1000 + number}",
            )
            if number % 2:
                run(client, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                run(client, "SET sql_mode = 'ANSI_QUOTES,NO_ZERO_DATE'")
        for number in shuffled_rounds(clients, 5):
            found = rows(
                clients[number], "SELECT @@time_zone, @@group_concat_max_len, @@sql_mode"
            )[0]
            assert found[:2] == (f"+0{number}:00", 1000 + number)
            assert ("ANSI_QUOTES" in found[2]) == bool(number % 2)

    def test_isolation_and_autocommit(self, tight: RunningProxy) -> None:
        clients = crowd(tight)
        variable = (
            "@@tx_isolation"
            if "MariaDB" in tight_version(clients[0])
            else "@@transaction_isolation"
        )
        levels = ["READ-COMMITTED", "SERIALIZABLE", "READ-UNCOMMITTED", "REPEATABLE-READ"]
        for number, client in enumerate(clients):
            level = levels[number % 4].replace("-", " ")
            run(client, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            run(client, f"SET autocommit = {number % 2}")
        for number in shuffled_rounds(clients, 4):
            found = rows(clients[number], f"SELECT {variable}, @@autocommit")
            assert found == ((levels[number % 4], number % 2),)
            if number % 2 == 0:
                clients[number].rollback()

    def test_character_sets(self, tight: RunningProxy) -> None:
        clients = [
            tight.connect(database="plain", autocommit=True, charset=charset)
            for charset in ("utf8mb4", "latin1", "utf8mb4", "latin1", "ascii")
        ]
        for number in shuffled_rounds(clients, 5):
            client = clients[number]
            assert value(client, "SELECT @@character_set_client") == client.charset
            if client.charset != "ascii":
                run(client, f"SET NAMES {client.charset}")  # and once more in mid-session
                assert rows(client, "SELECT 'é', HEX('é')")[0] == (
                    "é",
                    "E9" if client.charset == "latin1" else "C3A9",
                )

    def test_set_names_and_collation_come_back_after_a_reset(self, tight: RunningProxy) -> None:
        clients = crowd(tight, 4)
        for number, client in enumerate(clients):
            collation = ("utf8mb4_bin", "utf8mb4_unicode_ci")[number % 2]
            run(client, f"SET NAMES utf8mb4 COLLATE {collation}")
        for number in shuffled_rounds(clients, 4):
            collation = ("utf8mb4_bin", "utf8mb4_unicode_ci")[number % 2]
            assert value(clients[number], "SELECT @@collation_connection") == collation

    def test_a_one_shot_isolation_level_is_for_one_transaction(
        self, tight: RunningProxy
    ) -> None:
        first, *others = crowd(tight, 4)
        run(first, "CREATE TABLE t (id INT PRIMARY KEY)")
        run(first, "SET TRANSACTION READ ONLY")
        for other in others:
            run(other, f"INSERT INTO t VALUES ({others.index(other)})")
        run(first, "BEGIN")
        assert refused(first, "INSERT INTO t VALUES (9)")[0] == 1792
        run(first, "COMMIT")
        run(first, "INSERT INTO t VALUES (9)")

    def test_what_one_client_set_the_next_does_not_see(self, tight: RunningProxy) -> None:
        fresh = tight.connect(database="plain", autocommit=True)
        names = (
            "@@sql_mode, @@time_zone, @@foreign_key_checks, @@sql_safe_updates, @@autocommit"
        )
        before = rows(
            fresh, f"SELECT {names}, @@character_set_results, @secret, @@lc_time_names"
        )
        fresh.close()
        for _ in range(3):
            client = tight.connect(database="plain")
            run(client, "SET sql_mode = '', time_zone = '+05:00', foreign_key_checks = 0")
            run(client, "SET sql_safe_updates = 1, lc_time_names = 'de_DE', @secret = 'mine'")
            run(client, "SET NAMES latin1")
            run(client, "SELECT @other := 5")
            run(client, "CREATE TEMPORARY TABLE leaked (n INT)")
            value(client, "SELECT GET_LOCK('leaked', 0)")
            run(client, "BEGIN")
            client.close()
        for client in crowd(tight, 3):
            after = rows(
                client, f"SELECT {names}, @@character_set_results, @secret, @@lc_time_names"
            )
            assert after == before
            assert value(client, "SELECT @other") is None
            assert refused(client, "SELECT * FROM leaked")[0] == 1146
            client.close()

    def test_database_follows(self, tight: RunningProxy, sharded_database: str) -> None:
        clients = crowd(tight, 4)
        for client in clients[2:]:
            client.select_db("commerce:80-")
        run(clients[0], "CREATE TABLE here (n INT)")
        for number in shuffled_rounds(clients, 4):
            if number < 2:
                assert rows(clients[number], "SELECT * FROM here") == ()
            else:
                assert refused(clients[number], "SELECT * FROM here")[0] == 1146

    def test_a_crowd_at_once(self, tight: RunningProxy) -> None:
        failures: list[Any] = []

        def work(number: int) -> None:
            try:
                client = pymysql.connect(
                    host="127.0.0.1",
                    port=tight.port,
                    user="root",
                    database="plain",
                    autocommit=True,
                )
                with client:
                    run(client, f"SET time_zone = '+0{number}:00'")
                    expected = 0
                    for turn in range(60):
                        if turn % 7 == 0:
                            run(
                                client,
                                f"SET group_concat_max_len = {5000 + number * 100 + turn}",
                            )
                            expected = 5000 + number * 100 + turn
                        found = rows(
                            client, f"SELECT @@time_zone, @@group_concat_max_len, {turn}"
                        )
                        assert found == ((f"+0{number}:00", expected, turn),)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures


def tight_version(client: Any) -> str:
    return str(value(client, "SELECT VERSION()"))


# --- state that only its connection has --------------------------------------------------------


class TestHeldState:
    """Two connections, so two clients at most may hold state; a third shares what is left."""

    def test_user_variables(self, tight: RunningProxy) -> None:
        first, *others = crowd(tight, 4)
        run(first, "SET @a = 1, @b := 'x'")
        run(first, "SELECT @c := 7")
        for _ in range(3):
            for other in others:
                assert value(other, "SELECT 1") == 1
            assert rows(first, "SELECT @a, @b, @c") == ((1, "x", 7),)

    def test_temporary_tables(self, tight: RunningProxy) -> None:
        first, *others = crowd(tight, 4)
        run(first, "CREATE TEMPORARY TABLE scratch (n INT)")
        run(first, "INSERT INTO scratch VALUES (1), (2)")
        for other in others:
            assert refused(other, "SELECT * FROM scratch")[0] == 1146
        assert rows(first, "SELECT n FROM scratch") == ((1,), (2,))
        run(first, "DROP TEMPORARY TABLE scratch")
        run(first, "CREATE TEMPORARY TABLE scratch (n INT)")
        assert rows(first, "SELECT n FROM scratch") == ()

    def test_advisory_locks(self, tight: RunningProxy) -> None:
        first, *others = crowd(tight, 4)
        assert value(first, "SELECT GET_LOCK('mine', 0)") == 1
        assert value(others[0], "SELECT IS_FREE_LOCK('mine')") == 0
        assert value(first, "SELECT RELEASE_LOCK('mine')") == 1
        assert value(others[0], "SELECT IS_FREE_LOCK('mine')") == 1

    def test_an_advisory_lock_goes_with_its_client(self, tight: RunningProxy) -> None:
        first, second = crowd(tight, 2)
        assert value(first, "SELECT GET_LOCK('mine', 0)") == 1
        first._force_close()
        assert value(second, "SELECT GET_LOCK('mine', 5)") == 1

    def test_lock_tables(self, tight: RunningProxy) -> None:
        first, second = crowd(tight, 2)
        run(first, "CREATE TABLE locked (n INT)")
        run(first, "LOCK TABLES locked WRITE")
        run(second, "SET lock_wait_timeout = 1")
        assert refused(second, "INSERT INTO locked VALUES (1)")[0] == 1205
        run(first, "INSERT INTO locked VALUES (2)")
        run(first, "UNLOCK TABLES")
        run(second, "INSERT INTO locked VALUES (3)")

    def test_last_insert_id_is_the_clients_own(self, tight: RunningProxy) -> None:
        clients = crowd(tight)
        run(clients[0], "CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, who INT)")
        expected: dict[int, int] = {}
        for number in shuffled_rounds(clients, 4):
            client = clients[number]
            if number in expected:
                assert value(client, "SELECT LAST_INSERT_ID()") == expected[number]
            with client.cursor() as cursor:
                cursor.execute("INSERT INTO numbered (who) VALUES (%s)", (number,))
                expected[number] = cursor.lastrowid
        for number in shuffled_rounds(clients, 1):
            assert value(clients[number], "SELECT LAST_INSERT_ID()") == expected[number]
            found = rows(
                clients[number], "SELECT who FROM numbered WHERE id = LAST_INSERT_ID()"
            )
            assert found == ((number,),)
            run(clients[number], "INSERT INTO numbered (who) SELECT LAST_INSERT_ID()")

    @pytest.mark.parametrize(
        "sql", ["SET last_insert_id = 5", "SET @@identity = 5", "SELECT LAST_INSERT_ID(5)"]
    )
    def test_an_insert_id_that_the_client_sets_itself_stays(
        self, tight: RunningProxy, sql: str
    ) -> None:
        clients = crowd(tight, 3)
        run(clients[0], sql)
        for client in clients[1:]:
            run(client, "SELECT 1")
            assert value(client, "SELECT LAST_INSERT_ID()") == 0
        assert value(clients[0], "SELECT LAST_INSERT_ID()") == 5

    def test_warnings_are_those_of_the_clients_last_statement(
        self, tight: RunningProxy
    ) -> None:
        clients = crowd(tight, 4)
        for turn in range(3):
            for number, client in enumerate(clients):
                with client.cursor() as cursor:
                    cursor.execute(f"SELECT CAST('{number}-{turn}x' AS SIGNED)")
                    cursor.fetchall()
            for number, client in enumerate(clients):
                ((level, code, text),) = rows(client, "SHOW WARNINGS")
                assert (level, code) == ("Warning", 1292)
                assert f"{number}-{turn}x" in text

    def test_found_rows_and_row_count(self, tight: RunningProxy) -> None:
        clients = crowd(tight, 4)
        run(clients[0], "CREATE TABLE counted (n INT)")
        run(clients[0], "INSERT INTO counted VALUES (1), (2), (3), (4), (5)")
        for number, client in enumerate(clients):
            run(client, f"SELECT n FROM counted WHERE n <= {number + 1}")
        for number, client in enumerate(clients):
            assert value(client, "SELECT FOUND_ROWS()") == number + 1
        for number, client in enumerate(clients):
            run(client, f"UPDATE counted SET n = n + 10 WHERE n = {number + 1}")
        for client in clients:
            assert value(client, "SELECT ROW_COUNT()") == 1

    def test_a_client_is_told_who_it_is_itself(self, tight: RunningProxy) -> None:
        first, second = crowd(tight, 2)
        number = value(first, "SELECT CONNECTION_ID() FROM DUAL")
        assert number == first.thread_id() != value(second, "SELECT CONNECTION_ID() + 0")
        run(first, "SET @who = CURRENT_USER")
        ((account, login),) = rows(first, "SELECT @who, USER()")
        assert account == "root@%"
        assert login.startswith("root@")
        listed = {row[0]: row for row in rows(first, "SHOW FULL PROCESSLIST")}
        assert {first.thread_id(), second.thread_id()} <= set(listed)
        assert listed[number][3:5] == ("plain", "Query")
        assert listed[number][7] == "SHOW FULL PROCESSLIST"
        assert listed[second.thread_id()][4] == "Sleep"

    def test_more_holders_than_connections_is_a_clear_error(self, tight: RunningProxy) -> None:
        first, second, third = crowd(tight, 3)
        run(first, "SET @a = 1")
        run(second, "SET @a = 2")
        code, text = refused(third, "SELECT 1")
        assert code == 1105
        assert "no free connection to shard '-' of keyspace 'plain' within 3 s" in text
        first.close()
        assert value(third, "SELECT 1") == 1

    def test_prepare_as_text(self, tight: RunningProxy) -> None:
        first, *others = crowd(tight, 4)
        run(first, "PREPARE p FROM 'SELECT ? + 1'")
        run(first, "SET @n = 41")
        for other in others:
            assert value(other, "SELECT 1") == 1
        assert value(first, "EXECUTE p USING @n") == 42


# --- transactions ------------------------------------------------------------------------------


class TestLoadData:
    """LOAD DATA LOCAL INFILE: the client's file goes to the server through the proxy."""

    @pytest.fixture
    def loaded(
        self, tight: RunningProxy, servers: tuple[DatabaseServer, DatabaseServer]
    ) -> Iterator[RunningProxy]:
        ((before,),) = execute(servers[1], "SELECT @@global.local_infile")
        execute(servers[1], "SET GLOBAL local_infile = ON")
        yield tight
        execute(servers[1], f"SET GLOBAL local_infile = {before}")

    def test_a_file_larger_than_all_buffers_arrives(
        self, loaded: RunningProxy, tmp_path: Path
    ) -> None:
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT, t VARCHAR(200))")
        file = tmp_path / "rows.csv"
        file.write_text("".join(f"{n},{'x' * 150}\n" for n in range(20_000)))
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled FIELDS TERMINATED BY ','"
        with client.cursor() as cursor:
            assert cursor.execute(load) == 20_000
        assert rows(client, "SELECT COUNT(*), SUM(n) FROM filled") == (
            (20_000, 19_999 * 10_000),
        )

    def test_an_empty_file_and_a_missing_one_leave_the_connection_in_step(
        self, loaded: RunningProxy, tmp_path: Path
    ) -> None:
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT)")
        file = tmp_path / "rows.csv"
        file.write_text("")
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled"
        run(client, load)
        file.unlink()
        code, _ = refused(client, load)
        assert code == 1017
        client.ping(reconnect=False)
        assert value(client, "SELECT COUNT(*) FROM filled") == 0

    def test_an_error_in_the_middle_is_the_servers(
        self, loaded: RunningProxy, tmp_path: Path
    ) -> None:
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT PRIMARY KEY)")
        file = tmp_path / "rows.csv"
        file.write_text("1\n" * 100_000)
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE nowhere"
        assert refused(client, load)[0] == 1146
        assert value(client, "SELECT COUNT(*) FROM filled") == 0

    def test_a_client_that_gives_no_files_is_refused(self, loaded: RunningProxy) -> None:
        (client,) = crowd(loaded, 1)
        run(client, "CREATE TABLE filled (n INT)")
        assert refused(client, "LOAD DATA LOCAL INFILE '/x' INTO TABLE filled")[0] == 3948


class TestTransactions:
    def ids(self, house_or_proxy: Any, servers: Any, database: str) -> list[list[int]]:
        return [
            [ident for (ident,) in execute(server, f"SELECT id FROM {database}.customer")]
            for server in servers
        ]

    def test_on_one_shard(
        self, tight: RunningProxy, servers: Any, sharded_database: str
    ) -> None:
        clients = crowd(tight, 4, database="commerce", autocommit=False)
        for number, client in enumerate(clients[:2]):
            run(client, f"INSERT INTO customer (id) VALUES ({(1, 2)[number]})")
        assert rows(clients[0], "SELECT id FROM customer WHERE id IN (1, 2)") == ((1,),)
        clients[0].commit()
        clients[1].rollback()
        assert self.ids(tight, servers, sharded_database) == [[1], []]

    @pytest.mark.parametrize("way", ["BEGIN", "START TRANSACTION", "autocommit"])
    @pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
    def test_on_several_shards(
        self, tight: RunningProxy, servers: Any, sharded_database: str, way: str, end: str
    ) -> None:
        client = tight.connect(database="commerce", autocommit=way != "autocommit")
        if way != "autocommit":
            run(client, way)
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
        assert self.ids(tight, servers, sharded_database) == [[], []]
        assert len(rows(client, "SELECT id FROM customer")) == 2
        run(client, end)
        expected = [[LOW], [HIGH]] if end == "COMMIT" else [[], []]
        assert self.ids(tight, servers, sharded_database) == expected
        # Nothing is open any more: another client may have the connections.
        for other in crowd(tight, 4, database="commerce"):
            assert len(rows(other, "SELECT id FROM customer")) == sum(map(len, expected))

    def test_savepoints_on_several_shards(
        self, tight: RunningProxy, servers: Any, sharded_database: str
    ) -> None:
        client = tight.connect(database="commerce")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, "SAVEPOINT a")
        run(client, "INSERT INTO customer (id) VALUES (2)")
        run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
        run(client, "ROLLBACK TO SAVEPOINT a")
        run(client, "INSERT INTO customer (id) VALUES (6)")
        assert refused(client, "ROLLBACK TO nosuch")[0] == 1305
        run(client, "RELEASE SAVEPOINT a")
        client.commit()
        assert self.ids(tight, servers, sharded_database) == [[LOW], [6]]

    @pytest.mark.parametrize(
        "what", ["SET autocommit = 1", "CREATE TABLE other (id INT)", "BEGIN"]
    )
    def test_what_commits_implicitly_commits_everywhere(
        self, tight: RunningProxy, servers: Any, sharded_database: str, what: str
    ) -> None:
        client = tight.connect(database="commerce")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
        run(client, what)
        assert self.ids(tight, servers, sharded_database) == [[LOW], [HIGH]]

    def test_a_client_that_leaves_rolls_back_everywhere(
        self, tight: RunningProxy, servers: Any, sharded_database: str
    ) -> None:
        client = tight.connect(database="commerce")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})")
        client.close()
        other = tight.connect(database="commerce", autocommit=True)
        run(other, f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})")
        assert self.ids(tight, servers, sharded_database) == [[LOW], [HIGH]]

    def test_a_deadlock_rolls_back_everywhere(
        self, tight: RunningProxy, servers: Any, sharded_database: str
    ) -> None:
        setup = tight.connect(database="commerce", autocommit=True)
        run(setup, "INSERT INTO customer (id, n) VALUES (1, 0), (2, 0), (4, 0)")
        first, second = crowd(tight, 2, database="commerce", autocommit=False)
        run(first, "UPDATE customer SET n = 1 WHERE id = 4")
        run(first, "UPDATE customer SET n = 1 WHERE id = 1")
        for ident in range(100, 130):
            # The one that has changed less is the victim.
            run(second, f"INSERT IGNORE INTO customer (id) VALUES ({ident})")
        run(second, "UPDATE customer SET n = 2 WHERE id = 2")
        waiting = threading.Thread(
            target=lambda: run(second, "UPDATE customer SET n = 2 WHERE id = 1"), daemon=True
        )
        waiting.start()
        eventually(
            lambda: any(
                row[0] and "n = 2 WHERE id = 1" in row[0]
                for row in execute(
                    servers[0], "SELECT info FROM information_schema.processlist"
                )
            ),
            "the second waits",
        )
        code, _ = refused(first, "UPDATE customer SET n = 1 WHERE id = 2")
        assert code == 1213
        waiting.join(10)
        # What the first did on the other shard is gone too, whatever it says now.
        try:
            first.commit()
        except pymysql.MySQLError:
            first.rollback()
        second.commit()
        assert rows(setup, "SELECT n FROM customer WHERE id = 4") == ((0,),)
        assert rows(setup, "SELECT n FROM customer WHERE id = 1") == ((2,),)
        run(first, "UPDATE customer SET n = 3 WHERE id = 4")
        first.commit()
        assert rows(setup, "SELECT n FROM customer WHERE id = 4") == ((3,),)

    def test_transaction_mode_single_refuses_a_second_shard(
        self,
        start_proxy: StartProxy,
        servers: Any,
        sharded_database: str,
        tmp_path: Path,
        tight: RunningProxy,
    ) -> None:
        config = SETTINGS + 'transaction_mode = "single"\n'
        config += keyspace_toml(
            "commerce", servers, sharded_database, write_vschema(tmp_path, VSCHEMA)
        )
        proxy = start_proxy(config)
        for autocommit in (True, False):
            client = proxy.connect(database="commerce", autocommit=autocommit)
            if autocommit:
                run(client, "BEGIN")
            run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
            code, text = refused(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
            assert code == 1105
            assert 'transaction_mode is "single"' in text
            run(client, "INSERT INTO customer (id) VALUES (2)")
            client.rollback()
        assert self.ids(proxy, servers, sharded_database) == [[], []]


@pytest.mark.slow
def test_a_commit_that_reached_one_shard_only_says_which(
    start_proxy: StartProxy,
    breakable_servers: tuple[DatabaseServer, DatabaseServer],
    breakable_database: str,
    tmp_path: Path,
) -> None:
    vschema = write_vschema(tmp_path, VSCHEMA)
    proxy = start_proxy(
        keyspace_toml("commerce", breakable_servers, breakable_database, vschema)
    )
    setup = proxy.connect(database="commerce", autocommit=True)
    run(setup, "CREATE TABLE customer (id BIGINT PRIMARY KEY)")
    client = proxy.connect(database="commerce")
    run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
    run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
    # The second server stops answering; it dies while its COMMIT is under way.
    second = breakable_servers[1]
    process = second.pid  # type: ignore[attr-defined]
    os.kill(process, signal.SIGSTOP)
    outcome: list[Any] = []
    thread = threading.Thread(
        target=lambda: outcome.append(refused(client, "COMMIT")), daemon=True
    )
    thread.start()
    eventually(
        lambda: execute(breakable_servers[0], f"SELECT id FROM {breakable_database}.customer"),
        "the first has committed",
    )
    os.kill(process, signal.SIGKILL)
    thread.join(20)
    ((code, text),) = outcome
    assert code == 1105
    assert text.startswith("partial commit: committed on commerce/-80; not on commerce/80- (")
    second.stop()
    second.start()
    client.rollback()
    assert rows(client, "SELECT id FROM customer") == ((LOW,),)


# --- commands ----------------------------------------------------------------------------------


def command(client: Any, code: int, argument: bytes = b"") -> bytes:
    client._execute_command(code, argument)
    return bytes(client._read_packet()._data)


class TestCommands:
    def test_reset_connection_forgets_the_session_and_keeps_the_database(
        self, tight: RunningProxy
    ) -> None:
        client = tight.connect(database="commerce:-80", autocommit=True)
        run(client, "SET time_zone = '+03:00', @a = 5")
        run(client, "CREATE TEMPORARY TABLE scratch (n INT)")
        value(client, "SELECT GET_LOCK('mine', 0)")
        run(client, "BEGIN")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        assert (
            command(
                client,
                0x1F,
            )[:1]
            == b"\0"
        )
        assert value(client, "SELECT @a") is None
        assert value(client, "SELECT @@time_zone") != "+03:00"
        assert refused(client, "SELECT * FROM scratch")[0] == 1146
        assert rows(client, "SELECT id FROM customer") == ()
        other = tight.connect(database="commerce:-80")
        assert value(other, "SELECT GET_LOCK('mine', 5)") == 1

    def test_change_user_makes_a_new_session(self, tight: RunningProxy) -> None:
        client = tight.connect(database="commerce", autocommit=True)
        run(client, "SET @a = 5")
        run(client, "BEGIN")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        argument = b"root\0\0plain\0\x2d\x00mysql_native_password\0"
        client._execute_command(0x11, argument)
        packet = client._read_packet()
        while not packet.is_ok_packet():
            client.write_packet(b"")
            packet = client._read_packet()
        assert value(client, "SELECT @a") is None
        assert refused(client, "SELECT * FROM customer")[0] == 1146
        other = tight.connect(database="commerce", autocommit=True)
        assert run(other, f"INSERT INTO customer (id) VALUES ({LOW})") == 1

    def test_a_change_user_that_is_refused_ends_the_connection(
        self, tight: RunningProxy
    ) -> None:
        client = tight.connect(database="plain")
        client._execute_command(0x11, b"nobody\0\0plain\0\x2d\x00mysql_native_password\0")
        client._read_packet()
        client.write_packet(b"")
        with pytest.raises(pymysql.MySQLError) as caught:
            client._read_packet()
        assert caught.value.args[0] == 1045
        with pytest.raises(pymysql.MySQLError):
            value(client, "SELECT 1")

    def test_init_db(self, tight: RunningProxy) -> None:
        client = tight.connect(autocommit=True)
        client.select_db("commerce:-80")
        assert rows(client, "SELECT id FROM customer") == ()
        with pytest.raises(pymysql.MySQLError, match="Unknown database 'nosuch'"):
            client.select_db("nosuch")
        assert rows(client, "SELECT id FROM customer") == ()
        client.select_db("plain")
        assert refused(client, "SELECT id FROM customer")[0] == 1146

    def test_field_list(self, tight: RunningProxy) -> None:
        client = tight.connect(database="commerce", autocommit=True)
        client._execute_command(0x04, b"customer\0%")
        names = []
        while True:
            packet = client._read_packet()
            if packet.is_eof_packet():
                break
            names.append(bytes(packet._data))
        assert [b"id" in data for data in names] == [True, False]
        assert value(client, "SELECT 1") == 1
        client._execute_command(0x04, b"nosuch\0")
        with pytest.raises(pymysql.MySQLError):
            client._read_packet()
        assert value(client, "SELECT 1") == 1

    def test_statistics_ping_and_debug(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain", autocommit=True)
        assert command(client, 0x09).startswith(b"Uptime: ")
        client.ping(reconnect=False)
        assert command(client, 0x0D)[:1] == b"\xfe"
        assert value(client, "SELECT 1") == 1

    def test_set_option_switches_multi_statements(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain", autocommit=True)
        assert refused(client, "SELECT 1; SELECT 2")[0] == 1064
        assert command(client, 0x1B, b"\x00\x00")[:1] == b"\xfe"
        assert multi(client, "SELECT 1; SELECT 2") == [((1,),), ((2,),)]
        assert command(client, 0x1B, b"\x01\x00")[:1] == b"\xfe"
        assert refused(client, "SELECT 1; SELECT 2")[0] == 1064


def multi(client: Any, sql: str) -> list[Any]:
    """Run several statements and return the rows, or the affected rows, of each."""
    results = []
    with client.cursor() as cursor:
        cursor.execute(sql)
        while True:
            results.append(tuple(cursor.fetchall()) if cursor.description else cursor.rowcount)
            if not cursor.nextset():
                return results


class TestMultiStatements:
    @pytest.fixture
    def client(self, tight: RunningProxy) -> Any:
        return tight.connect(
            database="commerce", autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS
        )

    def test_each_has_its_own_answer(self, client: Any) -> None:
        assert multi(
            client,
            "INSERT INTO customer (id, n) VALUES (1, 1), (4, 4); SELECT n FROM customer WHERE id = 4;"
            " UPDATE customer SET n = 9; BEGIN; DELETE FROM customer WHERE id = 1; ROLLBACK;"
            " /* c; */ SELECT 'a;b', n FROM customer WHERE id = 1; DO 0;",
        ) == [2, ((4,),), 2, 0, 1, 0, (("a;b", 9),), 0]

    def test_an_error_ends_them(self, client: Any) -> None:
        with pytest.raises(pymysql.MySQLError) as caught:
            multi(
                client,
                "INSERT INTO customer (id) VALUES (1); SELECT * FROM customer WHERE nosuch = 1;"
                " INSERT INTO customer (id) VALUES (2)",
            )
        assert caught.value.args[0] == 1054
        assert rows(client, "SELECT id FROM customer") == ((1,),)

    def test_a_stream_may_come_last(
        self, tight: RunningProxy, client: Any, consume: Consume
    ) -> None:
        run(client, message_table())
        client._execute_command(
            COMMAND.COM_QUERY,
            "INSERT INTO my_message (id) VALUES (1); STREAM id FROM my_message",
        )
        assert client._read_packet().is_ok_packet()
        assert client._read_packet()._data[:1] == b"\x01"
        client._read_packet()
        assert client._read_packet().is_eof_packet()
        assert bytes(client._read_packet()._data) == b"\x011"


# --- KILL --------------------------------------------------------------------------------------


class TestKill:
    def sleeping(self, client: Any) -> Callable[[], Any]:
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append(rows(client, "SELECT SLEEP(30), 'killable'"))
            except pymysql.MySQLError as error:
                outcome.append(error.args)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def result() -> Any:
            thread.join(10)
            assert outcome, "it still runs"
            return outcome[0]

        return result

    @pytest.mark.parametrize("sql", ["KILL QUERY %d", "KILL HARD QUERY %d"])
    def test_kill_query_stops_the_statement_and_the_session_goes_on(
        self, tight: RunningProxy, servers: Any, sql: str
    ) -> None:
        if "HARD" in sql and "MariaDB" not in servers[0].version:
            pytest.skip("MariaDB's own word")
        client, other = crowd(tight, 2)
        result = self.sleeping(client)
        eventually(lambda: killable(servers), "it runs")
        started = time.monotonic()
        run(other, sql % client.thread_id())
        outcome = result()
        # SLEEP says 1 when it is interrupted, on some servers.
        assert outcome[0] == 1317 or outcome == ((1, "killable"),), outcome
        assert time.monotonic() - started < 5
        assert value(client, "SELECT 1") == 1

    def test_kill_query_stops_a_write_on_several_shards_and_undoes_it(
        self, tight: RunningProxy, servers: Any
    ) -> None:
        client, other = crowd(tight, 2, database="commerce")
        run(client, "INSERT INTO customer (id, n) VALUES (1, 0), (4, 0)")
        outcome: list[Any] = []
        sql = "UPDATE customer SET n = 1 + SLEEP(30) /* 'killable' */"
        thread = threading.Thread(
            target=lambda: outcome.append(refused(client, sql)), daemon=True
        )
        thread.start()
        eventually(lambda: killable(servers), "it runs")
        run(other, f"KILL QUERY {client.thread_id()}")
        thread.join(10)
        assert outcome[0][0] == 1317
        assert rows(other, "SELECT n FROM customer") == ((0,), (0,))
        assert value(client, "SELECT 1") == 1

    def test_kill_ends_the_connection(self, tight: RunningProxy, servers: Any) -> None:
        client, other = crowd(tight, 2)
        result = self.sleeping(client)
        eventually(lambda: killable(servers), "it runs")
        run(other, f"KILL {client.thread_id()}")
        assert result()[0] in (2006, 2013)
        eventually(lambda: not killable(servers), "the server stopped too")

    def test_kill_of_oneself(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain", autocommit=True)
        with contextlib.suppress(pymysql.MySQLError):
            run(client, f"KILL {client.thread_id()}")
        with pytest.raises(pymysql.MySQLError):
            value(client, "SELECT 1")

    def test_kill_query_on_an_idle_session_harms_nothing(self, tight: RunningProxy) -> None:
        client, other = crowd(tight, 2)
        run(other, f"KILL QUERY {client.thread_id()}")
        assert value(client, "SELECT 1") == 1

    def test_an_unknown_id(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain")
        assert refused(client, "KILL 987654321") == (1094, "Unknown thread id: 987654321")
        assert refused(client, "KILL QUERY 987654321")[0] == 1094

    def test_a_stream_ends_with_1317_and_its_session_goes_on(
        self, tight: RunningProxy, consume: Consume
    ) -> None:
        producer = tight.connect(database="commerce", autocommit=True)
        run(producer, message_table())
        stream = consume(tight, database="commerce")
        run(producer, f"KILL QUERY {stream.id}")
        assert stream.error() == (1317, "Query execution was interrupted")
        run(producer, "INSERT INTO my_message (id) VALUES (1)")
        assert value(stream.connection, "SELECT id FROM my_message") == 1

    def test_kill_ends_a_stream_and_its_connection(
        self, tight: RunningProxy, consume: Consume
    ) -> None:
        producer = tight.connect(database="commerce", autocommit=True)
        run(producer, message_table())
        stream = consume(tight, database="commerce")
        run(producer, f"KILL {stream.id}")
        assert stream.is_closed()


def killable(servers: Any) -> bool:
    return any(
        row[0] and "'killable'" in row[0]
        for server in servers
        for row in execute(server, "SELECT info FROM information_schema.processlist")
    )


# --- users -------------------------------------------------------------------------------------


USERS = """
[[users]]
name = "writer"
password = "w"
[[users]]
name = "reader"
password = "r"
role = "readonly"
[[users]]
name = "guest"
password = "g"
keyspaces = ["plain"]
"""
WRITES = (
    "INSERT INTO customer (id) VALUES (1)",
    "UPDATE customer SET n = 1",
    "DELETE FROM customer",
    "REPLACE INTO customer (id) VALUES (1)",
    "CREATE TABLE x (n INT)",
    "DROP TABLE customer",
    "TRUNCATE customer",
    "STREAM * FROM my_message",
    "SELECT * FROM customer FOR UPDATE",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "CALL p()",
    "LOCK TABLES customer WRITE",
    "SET GLOBAL read_only = 1",
    "LOAD DATA INFILE '/x' INTO TABLE customer",
    "PREPARE p FROM 'DELETE FROM customer'",
    "WITH c AS (SELECT 1) DELETE FROM customer",
    "/*! DELETE */ FROM customer",
    "ANALYZE DELETE FROM customer",
    "DO SLEEP(0)",
    "HANDLER customer OPEN",
    "XA START 'x'",
    "GRANT ALL ON *.* TO x",
)


class TestUsers:
    @pytest.fixture
    def proxy(
        self,
        start_proxy: StartProxy,
        servers: Any,
        sharded_database: str,
        tight: RunningProxy,
        tmp_path: Path,
    ) -> RunningProxy:
        vschema = write_vschema(tmp_path, VSCHEMA)
        return start_proxy(
            SETTINGS
            + USERS
            + keyspace_toml("commerce", servers, sharded_database, vschema)
            + keyspace_toml("plain", servers[1:], f"{sharded_database}_plain")
        )

    def connect(self, proxy: RunningProxy, name: str, **options: Any) -> Any:
        return proxy.connect(user=name, password=name[0], autocommit=True, **options)

    def test_a_reader_reads(self, proxy: RunningProxy) -> None:
        run(self.connect(proxy, "writer", database="commerce"), message_table())
        reader = self.connect(proxy, "reader", database="commerce")
        for sql in WRITES:
            code, text = refused(reader, sql)
            assert code in (1142, 1064), (sql, text)
        assert rows(reader, "SELECT id FROM customer") == ()
        assert rows(reader, "SHOW TABLES LIKE 'customer'") == (("customer",),)
        # The session's own business.
        reader.select_db("commerce:-80")
        run(reader, "SET @a = 1")
        assert value(reader, "SELECT GET_LOCK('x', 0) + @a") == 2

    def test_a_guest_sees_its_keyspaces_only(
        self, proxy: RunningProxy, sharded_database: str
    ) -> None:
        guest = self.connect(proxy, "guest", database="plain")
        why = "Access denied for user 'guest'@'127.0.0.1' to database 'commerce'"
        assert refused(guest, "USE commerce") == (1044, why)
        assert refused(guest, "SELECT * FROM commerce.customer") == (1044, why)
        assert refused(guest, "STREAM * FROM commerce.my_message") == (1044, why)
        assert refused(guest, "INSERT INTO commerce.customer (id) VALUES (1)") == (1044, why)
        assert refused(guest, "DROP TABLE commerce.customer") == (1044, why)
        assert refused(guest, "USE `commerce:-80`")[0] == 1044
        with pytest.raises(pymysql.MySQLError, match="Access denied"):
            self.connect(proxy, "guest", database="commerce")
        # Nor by the real name of the database, which its server would know.
        assert refused(guest, f"SELECT * FROM {sharded_database}.customer")[0] in (1044, 1049)
        names = [name for (name,) in rows(guest, "SHOW DATABASES")]
        assert "plain" in names
        assert "commerce" not in names
        assert sharded_database not in names

    def test_kill_is_for_ones_own(self, proxy: RunningProxy) -> None:
        writer = self.connect(proxy, "writer", database="plain")
        guest = self.connect(proxy, "guest", database="plain")
        assert refused(guest, f"KILL {writer.thread_id()}") == (
            1095,
            f"You are not owner of thread {writer.thread_id()}",
        )
        assert value(writer, "SELECT 1") == 1


def test_sessions_leave_nothing_behind(house: House) -> None:
    """After everybody has left, the pool's connections are idle and in no transaction."""
    for number in range(20):
        client = house.proxy.connect(database=("plain", "commerce")[number % 2])
        run(client, "SELECT 1")
        client._force_close()
    open_transactions = "SELECT COUNT(*) FROM information_schema.innodb_trx"
    for server in house.servers:
        eventually(lambda: execute(server, open_transactions) == ((0,),), "all is closed")  # noqa: B023
