"""The wire commands beside queries: several statements in one, query attributes, KILL, and the files of LOAD DATA LOCAL."""

import shutil
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT, COMMAND

from tests.fixtures.background import in_thread, running
from tests.fixtures.database_servers import execute
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, write_vschema
from tests.fixtures.streams import (
    change_user,
    eventually,
    message_table,
    refused,
    reset,
    rows,
    run,
    value,
)
from tests.integration.conftest import VSCHEMA
from tests.integration.sessions.crowd import HIGH, LOW, crowd


def command(client: Any, code: int, argument: bytes = b"") -> bytes:
    client._execute_command(code, argument)
    return bytes(client._read_packet()._data)


class TestCommands:
    def test_a_variable_under_the_wrong_scope_is_the_servers_error(self, tight):
        client = tight.connect(database="plain")
        for name in ("session.socket", "LOCAL.socket", "global.warning_count"):
            assert refused(client, f"SELECT @@{name}")[0] == 1238
            assert refused(client, f"SET @x = @@{name}")[0] == 1238
        assert value(client, "SELECT @@socket") == value(client, "SELECT @@global.socket") == ""

    def test_the_multi_statement_option_outlives_a_reset(self, tight: RunningProxy) -> None:
        client = tight.connect(
            database="plain", autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS
        )
        for option, code in ((b"\1\0", 1064), (b"\0\0", 0)):
            client._execute_command(COMMAND.COM_SET_OPTION, option)
            client._read_packet()
            for begin_anew in (reset, change_user):
                begin_anew(client)
                if code:
                    assert refused(client, "SELECT 1; SELECT 2")[0] == code
                else:
                    assert rows(client, "SELECT 1; SELECT 2") == ((1,),)


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

    def test_a_stream_may_come_last(self, tight, client, consume):
        run(client, message_table())
        insert = "INSERT INTO my_message (id) VALUES (1); STREAM id FROM my_message"
        client._execute_command(COMMAND.COM_QUERY, insert)
        assert client._read_packet().is_ok_packet()
        assert client._read_packet()._data[:1] == b"\x01"
        client._read_packet()
        assert client._read_packet().is_eof_packet()
        assert bytes(client._read_packet()._data) == b"\x011"


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
        code, _ = refused(client, f"KILL {client.thread_id()}")
        assert code == (1927 if "MariaDB" in client.get_server_info() else 1317)
        with pytest.raises(pymysql.MySQLError):
            value(client, "SELECT 1")


def test_a_long_statement_is_stopped(tight, servers, sharded_database, start_proxy, tmp_path):
    vschema = write_vschema(tmp_path, VSCHEMA)
    head = '[server]\nlisten = "127.0.0.1:0"\nstatement_timeout = 1\n'
    proxy = start_proxy(head + keyspace_toml("commerce", servers, sharded_database, vschema))
    client = proxy.connect(database="commerce", autocommit=True)
    # What must not take too long goes past the proxy.
    own = {"database": sharded_database, "autocommit": True}
    for server, ident in zip(servers, (LOW, HIGH), strict=True):
        execute(server, f"INSERT INTO customer (id) VALUES ({ident})", **own)
    too_long = "Query execution was interrupted, maximum statement execution time exceeded"
    for sql in (
        "SELECT SLEEP(600), 'killable'",
        f"SELECT id, SLEEP(600), 'killable' FROM customer WHERE id = {HIGH}",
        "SELECT id, SLEEP(600), 'killable' FROM customer ORDER BY id",
        "DELETE FROM customer WHERE SLEEP(600) = 0 /* 'killable' */",
    ):
        assert refused(client, sql) == (3024, too_long), sql
    left = [execute(server, "SELECT id FROM customer", **own) for server in servers]
    assert left == [((LOW,),), ((HIGH,),)]
    eventually(lambda: not killable(servers), "it sleeps no more")


class TestLoadData:
    @pytest.fixture
    def loaded(self, tight, servers):
        ((before,),) = execute(servers[1], "SELECT @@global.local_infile")
        execute(servers[1], "SET GLOBAL local_infile = ON")
        yield tight
        execute(servers[1], f"SET GLOBAL local_infile = {before}")

    def test_an_empty_and_a_missing_file_leave_the_connection_in_step(self, loaded, tmp_path):
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

    def test_a_file_is_read_in_the_characters_that_the_database_has_now(self, loaded, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_bytes("Ä".encode("latin1") + b"\n")
        before = crowd(loaded, 2)
        for client in before:  # each on a connection that has been in the database before
            run(client, "BEGIN")
            run(client, "SELECT 1")
        for client in before:
            run(client, "COMMIT")
        (first,) = crowd(loaded, 1)
        run(first, "ALTER DATABASE CHARACTER SET latin1")
        try:
            run(first, "CREATE TABLE filled (t VARCHAR(9) CHARACTER SET utf8mb4)")
            for _ in range(2):
                later = crowd(loaded, 2, local_infile=True)
                for client in later:
                    run(client, "BEGIN")
                    run(client, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled")
                    assert value(client, "SELECT t FROM filled") == "Ä"
                for client in later:
                    # What pins resets the connection on its way to the next client.
                    run(client, "SET @pinned = 1")
                    client.close()
        finally:
            (client,) = crowd(loaded, 1)
            run(client, "ALTER DATABASE CHARACTER SET utf8mb4")

    def test_an_error_in_the_middle_is_the_servers(self, loaded, tmp_path):
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE TABLE filled (n INT PRIMARY KEY)")
        file = tmp_path / "rows.csv"
        file.write_text("1\n" * 100_000)
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE nowhere"
        assert refused(client, load)[0] == 1146
        assert value(client, "SELECT COUNT(*) FROM filled") == 0

    def test_a_replacing_file_reschedules_what_was_just_delivered(
        self, loaded, tmp_path, consume
    ):
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, message_table("replaced", ack_wait=600))
        stream = consume(loaded, "STREAM id FROM replaced", database="plain")
        file = tmp_path / "rows.csv"
        file.write_text("1\n")
        for _ in range(2):
            run(client, f"LOAD DATA LOCAL INFILE '{file}' REPLACE INTO TABLE replaced (id)")
            assert stream.take(1) == [(1,)]

    def test_a_queue_whose_ids_the_proxy_makes_is_not_loaded_without_ids(
        self, loaded, tmp_path
    ):
        (client,) = crowd(loaded, 1, local_infile=True)
        run(client, "CREATE QUEUE unnumbered (n INT)")
        file = tmp_path / "rows.csv"
        file.write_text("1\n2\n")
        load = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE unnumbered"
        for columns in ("(n)", "CHARACTER SET utf8mb4 (n)", "(@n) SET n = @n"):
            assert refused(client, f"{load} {columns}")[0] == 1235
        run(client, f"{load} (n) SET id = n")
        run(client, f"{load} SET id = id + 10, n = (SELECT 1)")
        assert rows(client, "SELECT id, n FROM unnumbered ORDER BY id") == (
            (1, 1),
            (2, 2),
            (11, 1),
            (12, 1),
        )


MYSQL = shutil.which("/opt/mysql9/bin/mysql")


@pytest.mark.skipif(MYSQL is None, reason="no client of MySQL 9.7 on this machine")
def test_a_client_that_has_query_attributes_goes_without_them(tight: RunningProxy) -> None:
    assert MYSQL is not None
    options = ["-h127.0.0.1", f"-P{tight.port}", "-uroot", "-N", "--commands"]
    asked = "query_attributes colour blue\nSELECT 1; SELECT 2;\n"
    done = finished([MYSQL, *options], input=asked)
    assert done.stdout.split() == ["1", "2"], done.stderr
