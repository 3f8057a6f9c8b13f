"""What a client set is its own, on whichever connection its next statement runs."""

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import in_turn
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import refused, rows, run, value
from tests.integration.sessions.crowd import crowd, shuffled_rounds


pytestmark = pytest.mark.db


LEVELS = ("READ COMMITTED", "SERIALIZABLE", "READ UNCOMMITTED", "REPEATABLE READ")
COLLATIONS = ("utf8mb4_bin", "utf8mb4_unicode_ci")
# What client {number} sets, what it is asked for, and what it is told, which it is told at each turn.
OWN: tuple[tuple[str, str, Callable[[int], tuple[Any, ...]]], ...] = (
    (
        "SET time_zone = '+0{number}:00', group_concat_max_len = 100{number}",
        "@@time_zone, @@group_concat_max_len",
        lambda number: (f"+0{number}:00", 1000 + number),
    ),
    (
        "SET @@time_zone = '+0{number}:00', @@autocommit = {odd}",  # without a scope
        "@@time_zone, @@autocommit",
        lambda number: (f"+0{number}:00", number % 2),
    ),
    (
        "SET SESSION TRANSACTION ISOLATION LEVEL {level}; SET autocommit = {odd}",
        "{isolation}, @@autocommit",
        lambda number: (LEVELS[number % 4].replace(" ", "-"), number % 2),
    ),
    (
        "SET NAMES utf8mb4 COLLATE {collation}",
        "@@collation_connection",
        lambda number: (COLLATIONS[number % 2],),
    ),
    (
        "SET sql_mode = '{mode}'",
        "@@sql_mode LIKE '%ANSI_QUOTES%'",
        lambda number: (number % 2,),
    ),
)


class TestVariables:
    @in_turn
    @pytest.mark.parametrize(("sets", "asked", "told"), OWN)
    def test_each_client_keeps_its_own(self, tight, family, sets, asked, told):
        clients = crowd(tight)
        isolation = "@@tx_isolation" if family is Family.MARIADB else "@@transaction_isolation"
        for number, client in enumerate(clients):
            words = {
                "number": number,
                "odd": number % 2,
                "level": LEVELS[number % 4],
                "collation": COLLATIONS[number % 2],
                "mode": "ANSI_QUOTES,NO_ZERO_DATE" if number % 2 else "NO_ZERO_DATE",
            }
            for sql in sets.format(**words).split("; "):
                run(client, sql)
        for number in shuffled_rounds(clients, 4):
            found = rows(clients[number], f"SELECT {asked.format(isolation=isolation)}")
            assert found == (told(number),)
            clients[number].rollback()
        tight.disconnect()

    def test_a_session_begins_with_autocommit_whatever_the_servers_own_is(self, tight, servers):
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

    def test_a_one_shot_isolation_level_is_for_one_transaction(self, tight):
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
