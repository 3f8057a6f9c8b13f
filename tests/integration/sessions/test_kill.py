"""KILL and KILL QUERY by the ids that the proxy gave."""

import threading
from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import WAIT_S, eventually, message_table, refused, rows, run, value
from tests.integration.sessions.crowd import crowd


pytestmark = pytest.mark.db


class TestKill:
    def sleeping(self, client: Any) -> Callable[[], Any]:
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append(rows(client, "SELECT SLEEP(600), 'killable'"))
            except pymysql.MySQLError as error:
                outcome.append(error.args)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def result() -> Any:
            thread.join(WAIT_S)
            assert outcome, "it still runs"
            return outcome[0]

        return result

    @pytest.mark.parametrize("sql", ["KILL QUERY %d", "KILL HARD QUERY %d"])
    def test_kill_query_stops_the_statement_and_the_session_goes_on(self, tight, servers, sql):
        if "HARD" in sql and "MariaDB" not in servers[0].version:
            pytest.skip("MariaDB's own word")
        client, other = crowd(tight, 2)
        result = self.sleeping(client)
        eventually(lambda: killable(servers), "it runs")
        run(other, sql % client.thread_id())
        outcome = result()
        # SLEEP says 1 when it is interrupted, on some servers.
        assert outcome[0] == 1317 or outcome == ((1, "killable"),), outcome
        assert value(client, "SELECT 1") == 1

    def test_kill_query_stops_a_write_on_several_shards_and_undoes_it(self, tight, servers):
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
        thread.join(WAIT_S)
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
        code, _ = refused(client, "KILL CONNECTION_ID()")
        assert code == (1927 if "MariaDB" in client.get_server_info() else 1317)
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

    def test_a_stream_ends_with_1317_and_its_session_goes_on(self, tight, consume):
        producer = tight.connect(database="commerce", autocommit=True)
        run(producer, message_table())
        stream = consume(tight, database="commerce")
        run(producer, f"KILL QUERY {stream.id}")
        assert stream.error() == (1317, "Query execution was interrupted")
        run(producer, "INSERT INTO my_message (id) VALUES (1)")
        assert value(stream.connection, "SELECT id FROM my_message") == 1

    def test_kill_ends_a_stream_and_its_connection(self, tight, consume):
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
