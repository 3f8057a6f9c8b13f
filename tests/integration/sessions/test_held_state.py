"""What the protocol does not show of a session follows its client, or holds its connection."""

import pytest

from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.sessions.crowd import crowd, shuffled_rounds


pytestmark = pytest.mark.db


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
    def test_more_holders_than_connections_is_a_clear_error(
        self, server, database, start_proxy
    ):
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
