"""What a client set or left is its own, on whichever connection, shard or keyspace its next statement runs, or holds its connection."""

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import in_turn
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster
from tests.integration.sessions.crowd import crowd, shuffled_rounds


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
                insert = (
                    "INSERT INTO customer (id) VALUES (1), (4) ON DUPLICATE KEY UPDATE n = 1"
                )
                run(client, insert)
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
        asked = f"SELECT {names}, @@character_set_results, @secret, @@lc_time_names"
        before = rows(fresh, asked)
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
            assert rows(client, asked) == before
            assert value(client, "SELECT @other") is None
            assert refused(client, "SELECT * FROM leaked")[0] == 1146
            client.close()


VALUES = [
    "1", "18446744073709551615", "CAST(-9223372036854775808 AS SIGNED)", "1.50",
    "CAST(5 AS DECIMAL(10,0))", "99999999999999999999999999", "1/3", "0.1e0 + 0.2e0", "1e300", "-0e0",
    "'abc'", "''", r"'a\\'", "_latin1 x'E9' COLLATE latin1_german1_ci", "_utf16 x'0041'", "x'00FF'",
    "NULL", "CAST(NULL AS SIGNED)", "CAST(NULL AS DECIMAL)", "NULL + 0e0", "CONVERT(NULL USING latin1)",
    "NOW(6)", "JSON_OBJECT('a', 1)", "POINT(1, 1)", "UUID()", "@@sql_mode", "@a",
]  # fmt: skip


def described(client: Any) -> Any:
    """Return what a client may see of @a: its value, and what its type does."""
    with client.cursor() as cursor:
        cursor.execute(
            "SELECT @a, COLLATION(@a), HEX(@a), COERCIBILITY(@a), COLLATION(CONCAT(@a, 'x'))"
        )
        field = cursor._result.fields[0]
        shown = field.type_code, field.charsetnr, field.length, field.flags, field.scale
        return cursor.fetchall(), shown


def test_values_go_along_exactly_as_they_are(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    for expression in VALUES:
        client.select_db("plain")
        run(client, f"SET @a = {expression}")
        here = described(client)
        for target in ("commerce:80-", "commerce", "plain"):
            client.select_db(target)
            assert described(client) == here, (expression, target)


def test_a_variable_is_the_same_in_all_keyspaces(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "SET @x = 1, @`a b` = 'both'")
    client.select_db("commerce:80-")
    assert rows(client, "SELECT @X, @`A B`, @nothing") == ((1, "both", None),)
    run(client, "SET @x = @x + 1")
    client.select_db("plain")
    assert value(client, "SELECT @x") == 2
    run(client, "SET @x = 1, @@max_sort_length = @x + 100")
    # What it sets, its text alone does not name.
    run(client, "PREPARE s FROM 'SELECT @c := 3'")
    run(client, "EXECUTE s")
    for limit, target in enumerate(("commerce:80-", "commerce:-80")):
        run(client, f"SET sql_select_limit = {limit}")
        client.select_db(target)
        assert rows(client, "SELECT @x, @c LIMIT 1") == ((1, 3),)


def test_statements_of_several_shards_read_one_value(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="commerce", autocommit=True)
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, n DOUBLE)")
    run(client, "SET @r = RAND(), @by = 10")
    low, high = LOW_IDS[0], HIGH_IDS[0]
    run(client, f"INSERT INTO customer VALUES ({low}, @r), ({high}, @r)")
    assert set(rows(client, "SELECT id FROM customer WHERE n = @r")) == {(low,), (high,)}
    run(client, "UPDATE customer SET n = @by")
    run(client, f"SELECT n + id INTO @n FROM customer WHERE id = {high}")
    assert value(client, "SELECT @n") == 10 + high
    assert value(client, f"SELECT @n := n FROM customer WHERE id = {low}") == 10
    run(client, f"UPDATE customer SET n = @n + 1 WHERE id = {high}")
    assert value(client, f"SELECT n FROM customer WHERE id = {high}") == 11
    refuses(client, "SELECT @n := n FROM customer", 1235, "over several shards")


def test_what_triggers_and_procedures_do_is_seen_elsewhere(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "CREATE TABLE audited (n INT)")
    run(
        client,
        "CREATE TRIGGER audit BEFORE INSERT ON audited"
        " FOR EACH ROW SET NEW.n = NEW.n + @actor, @last = NEW.n",
    )
    run(client, "CREATE PROCEDURE sets(OUT told INT) BEGIN SET @hidden = 7; SET told = 8; END")
    try:
        client.select_db("commerce:80-")
        run(client, "SET @actor = 100")
        client.select_db("plain")
        run(client, "INSERT INTO audited VALUES (1)")
        run(client, "CALL sets(@told)")
        run(client, "PREPARE s FROM 'SELECT @prepared := 9'")
        run(client, "EXECUTE s")
        client.select_db("commerce:80-")
        assert rows(client, "SELECT @last, @hidden, @told, @prepared") == ((101, 7, 8, 9),)
    finally:
        client.select_db("plain")
        run(client, "DROP PROCEDURE sets")


class TestHeldState:
    """Two connections, so two clients at most may hold state; a third shares what is left."""

    def test_what_only_a_connection_has_is_its_clients_and_ends_with_it(self, tight):
        first, *others = crowd(tight, 4)
        for sets, asked in (
            ("SET @a = 1, @b := 'x'", "SELECT CONCAT(@a, @b) = '1x'"),
            ("CREATE TEMPORARY TABLE scratch (n INT)", "SELECT COUNT(*) = 0 FROM scratch"),
            ("DO GET_LOCK('mine', 0)", "SELECT IS_USED_LOCK('mine') = CONNECTION_ID()"),
        ):
            run(first, sets)
            for other in others:
                assert refused(other, "SELECT * FROM scratch")[0] == 1146
            assert value(first, asked) == 1
        assert value(others[0], "SELECT IS_FREE_LOCK('mine')") == 0
        first._force_close()
        assert value(others[0], "SELECT GET_LOCK('mine', 60)") == 1

    def test_behind_use_no_row_is_counted(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain", autocommit=True)
        run(client, "CREATE TABLE counted (id INT)")
        for others in (0, 4):
            run(client, "SELECT 1 UNION SELECT 2")
            run(client, "INSERT INTO counted VALUES (1), (2), (3)")
            run(client, "USE plain")
            crowd(tight, others)
            assert rows(client, "SELECT ROW_COUNT(), FOUND_ROWS()")[0][0] == 0
            run(client, "INSERT INTO counted VALUES (1), (2)")
            assert value(client, "SELECT ROW_COUNT()") == 2

    def test_what_is_asked_with_the_insert_id_is_of_the_statement_before(self, tight):
        client = tight.connect(database="plain", autocommit=True)
        asked = "SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()"
        run(client, "SELECT 1 UNION SELECT 2")
        assert rows(client, asked) == ((0, -1, 2),)
        run(client, "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY)")
        others = crowd(tight, 4)
        run(client, "INSERT INTO counted VALUES (7), (8)")
        for other in others:
            run(other, "SELECT 1 UNION SELECT 2 UNION SELECT 3")
            run(other, "UPDATE counted SET id = id + 100 WHERE id < 0")
        assert rows(client, asked)[0][1] == 2
        run(client, "INSERT INTO counted VALUES (NULL), (NULL), (NULL)")
        for other in others:
            run(other, "SELECT 1 UNION SELECT 2 UNION SELECT 3")
        assert rows(client, asked)[0][:2] == (9, 3)

    def test_found_rows_is_never_that_of_another_client(self, tight, sharded_database):
        """Each client's count, though writes of others come between on its connection."""
        clients = crowd(tight)
        run(clients[0], "CREATE TABLE written (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
        wanted: dict[int, int] = {}
        for turn, number in enumerate(shuffled_rounds(clients, 6)):
            client = clients[number]
            if turn % 3 == 0:
                wanted[number] = count = 1 + turn % 7
                run(client, " UNION ALL ".join(f"SELECT {each}" for each in range(count)))
            elif turn % 3 == 1:
                # A write leaves FOUND_ROWS() as it is.
                run(client, f"INSERT INTO written (n) VALUES ({number})")
            elif number in wanted:
                assert value(client, "SELECT FOUND_ROWS()") == wanted[number]
                wanted[number] = 1

    @pytest.mark.one_server
    def test_more_holders_than_connections_get_an_error(self, server, database, start_proxy):
        keyspace = keyspace_toml("plain", [server], database)
        head = '[server]\nlisten = "127.0.0.1:0"\npool_timeout = 2\n'
        proxy = start_proxy(head + keyspace.replace("primary", "pool_size = 2\nprimary"))
        first, second, third = crowd(proxy, 3)
        run(first, "SET @a = 1")
        run(second, "SET @a = 2")
        refuses(
            third,
            "SELECT 1",
            1105,
            "no free connection to shard '-' of keyspace 'plain' within 2 s",
        )
        first.close()
        assert value(third, "SELECT 1") == 1
