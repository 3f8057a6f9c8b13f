"""KILL and KILL QUERY by the ids that the proxy gave."""

from typing import Any

import pymysql
import pytest

from tests.fixtures.background import in_thread, running
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.sessions.crowd import crowd


pytestmark = pytest.mark.db


SLEEP = "SELECT SLEEP(600), 'killable'"


def killable(servers: Any) -> bool:
    return any(running(server, "'killable'") for server in servers)


class TestKill:
    @pytest.mark.parametrize("sql", ["KILL QUERY %d", "KILL HARD QUERY %d"])
    def test_kill_query_stops_the_statement_and_the_session_goes_on(self, tight, servers, sql):
        if "HARD" in sql and "MariaDB" not in servers[0].version:
            pytest.skip("MariaDB's own word")
        client, other = crowd(tight, 2)
        result = in_thread(lambda: rows(client, SLEEP))
        eventually(lambda: killable(servers), "it runs")
        run(other, sql % client.thread_id())
        outcome = result()
        # SLEEP says 1 when it is interrupted, on some servers.
        assert outcome == ((1, "killable"),) or outcome.args[0] == 1317, outcome
        assert value(client, "SELECT 1") == 1

    def test_kill_query_stops_a_write_on_several_shards_and_undoes_it(self, tight, servers):
        client, other = crowd(tight, 2, database="commerce")
        run(client, "INSERT INTO customer (id, n) VALUES (1, 0), (4, 0)")
        sql = "UPDATE customer SET n = 1 + SLEEP(600) /* 'killable' */"
        outcome = in_thread(lambda: refused(client, sql))
        eventually(lambda: killable(servers), "it runs")
        run(other, f"KILL QUERY {client.thread_id()}")
        assert outcome()[0] == 1317
        assert rows(other, "SELECT n FROM customer") == ((0,), (0,))
        assert value(client, "SELECT 1") == 1

    def test_kill_ends_the_connection(self, tight: RunningProxy, servers: Any) -> None:
        client, other = crowd(tight, 2)
        result = in_thread(lambda: rows(client, SLEEP))
        eventually(lambda: killable(servers), "it runs")
        run(other, f"KILL {client.thread_id()}")
        assert result().args[0] in (2006, 2013)
        eventually(lambda: not killable(servers), "the server stopped too")

    def test_kill_of_oneself(self, tight: RunningProxy) -> None:
        client = tight.connect(database="plain", autocommit=True)
        code, _ = refused(client, "KILL CONNECTION_ID()")
        assert code == (1927 if "MariaDB" in client.get_server_info() else 1317)
        with pytest.raises(pymysql.MySQLError):
            value(client, "SELECT 1")
