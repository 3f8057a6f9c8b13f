"""What a client set is its own, on whichever connection its next statement runs."""

import threading
from typing import Any

import pymysql
import pytest

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import WAIT_S, refused, rows, run, value
from tests.integration.sessions.crowd import CLIENTS, crowd, shuffled_rounds


pytestmark = pytest.mark.db


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

    def test_variables_set_without_a_scope_follow_their_client_too(
        self, tight: RunningProxy
    ) -> None:
        clients = crowd(tight, 4)
        for number, client in enumerate(clients[1:], 1):
            run(client, f"SET @@time_zone = '+0{number}:00', @@autocommit = {number % 2}")
        for number in shuffled_rounds(clients, 4):
            zone = f"+0{number}:00" if number else "SYSTEM"
            found = rows(clients[number], "SELECT @@time_zone, @@autocommit")
            assert found == ((zone, number % 2 if number else 1),)
            if number == 2:
                clients[number].rollback()

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

    def test_a_session_begins_with_autocommit_whatever_the_servers_own_is(
        self, tight: RunningProxy, servers: tuple[DatabaseServer, DatabaseServer]
    ) -> None:
        for server in servers:
            execute(server, "SET GLOBAL autocommit = 0")
        try:
            # Nobody else here asks for this: its connections are opened for it.
            flag = pymysql.constants.CLIENT.IGNORE_SPACE
            for _ in range(2):
                client = tight.connect(database="commerce", autocommit=None, client_flag=flag)
                assert value(client, "SELECT @@autocommit") == 1
                run(
                    client,
                    "INSERT INTO customer (id) VALUES (1), (4) ON DUPLICATE KEY UPDATE n = 1",
                )
                # The next one gets a connection that was reset.
                run(client, "SET @a = 1")
                client.close()
            other = tight.connect(database="commerce")
            assert value(other, "SELECT COUNT(*) FROM customer WHERE id IN (1, 4)") == 2
        finally:
            for server in servers:
                execute(server, "SET GLOBAL autocommit = 1")

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
            thread.join(WAIT_S)
        assert not failures


def tight_version(client: Any) -> str:
    return str(value(client, "SELECT VERSION()"))
