"""Databases that are no keyspaces: `streamfrom` on each primary, which no client sees, a client's own, and system schemas."""

from collections.abc import Iterator

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import cases, in_turn
from tests.fixtures.database_servers import DatabaseServer, execute, root
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


DISPATCHED = "is dispatched from here"


def test_an_empty_keyspace_can_be_dropped_and_made(server, database, start_proxy):
    proxy = start_proxy(keyspace_toml(database, [server]))
    eventually(lambda: DISPATCHED in proxy.log(), "the proxy dispatches")
    lists = (
        "SHOW TABLES",
        "SHOW FULL TABLES WHERE table_type = 'BASE TABLE'",
        "SHOW TABLES LIKE '%'",
        "SHOW TABLE STATUS",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    )
    for _ in range(2):
        client = proxy.connect(database=database, autocommit=True)
        for text in lists:
            assert rows(client, text) == (), text
        run(client, "CREATE TABLE z (a INT)")
        asked = "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = DATABASE()"
        ((names,),) = rows(client, asked)
        run(client, f"TRUNCATE TABLE {names}")
        run(client, f"DROP TABLE {names}")
        run(client, f"DROP DATABASE {database}")
        run(client, f"CREATE DATABASE {database}")


# What tools list, by the column of databases' names.
LISTED = {
    "schemata": "schema_name",
    "tables": "table_schema",
    "columns": "table_schema",
    "statistics": "table_schema",
    "partitions": "table_schema",
    "key_column_usage": "table_schema",
    "table_constraints": "constraint_schema",
}


@pytest.mark.parametrize("is_mapped", [False, True])
def test_no_list_of_databases_shows_it(server, database, start_proxy, is_mapped):
    name = f"{database}_shop" if is_mapped else database
    proxy = start_proxy(keyspace_toml(name, [server], database))
    eventually(lambda: DISPATCHED in proxy.log(), "the proxy dispatches")
    client = proxy.connect(database=name, autocommit=True)
    run(client, "CREATE TABLE z (id INT PRIMARY KEY, KEY k (id))")
    for table, column in LISTED.items():
        asked = f"SELECT DISTINCT {column} FROM information_schema.{table}"
        assert ("streamfrom",) in execute(server, asked), table
        found = rows(client, asked)
        assert (name,) in found, table
        assert ("streamfrom",) not in found, table
        for condition in (
            f"{column} = 'streamfrom'",
            f"{column} LIKE 'stream%'",
            f"{column} IN ('{name}', 'STREAMFROM')",
        ):
            found = rows(client, f"{asked} WHERE {condition}")
            assert set(found) <= {(name,)}, condition
    everything = "SELECT * FROM information_schema.tables WHERE table_schema NOT IN ('mysql')"
    lists = [f"SELECT {c} FROM information_schema.{table}" for table, c in LISTED.items()]
    with client.cursor() as cursor, root(server) as direct, direct.cursor() as other:
        for sql in (*lists, everything, everything.replace("*", "table_name, Engine")):
            cursor.execute(sql)
            other.execute(sql)
            assert [each[:2] for each in cursor.description] == [
                each[:2] for each in other.description
            ]
    for table in ("mysql.innodb_table_stats", "performance_schema.table_handles"):
        assert "streamfrom" not in str(rows(client, f"SELECT * FROM {table}"))
    run(client, "DROP TABLE z")


@in_turn
@cases(text=str)
def test_no_client_reaches_the_real_database(cluster, text):
    query = "SELECT database_name, secret FROM streamfrom.locks"
    secrets = set(cluster.direct(query))
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "CREATE TABLE IF NOT EXISTS t (id INT)")
    assert refused(client, text)[0] in {1146, 1235}
    assert secrets <= set(cluster.direct(query))
    assert rows(client, "SELECT COUNT(*) FROM streamfrom.members") == ((1,),)
    assert ("streamfrom",) not in rows(client, "SHOW DATABASES")


def test_a_name_that_only_looks_like_it_is_anybodys(cluster):
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "CREATE TABLE streamfrom (streamfrom INT)")
    run(client, "INSERT INTO streamfrom VALUES (1)")
    assert rows(client, "SELECT streamfrom.streamfrom FROM streamfrom") == ((1,),)
    run(client, "DELETE FROM streamfrom WHERE streamfrom = 1")
    run(client, "DROP TABLE streamfrom")


def test_a_clean_restart_logs_no_warning_about_members(server, database, start_proxy):
    toml = keyspace_toml(database, [server])
    for _ in range(2):
        proxy = start_proxy(toml)
        eventually(lambda: DISPATCHED in proxy.log(), "it dispatches")  # noqa: B023
        assert "cannot be reached" not in proxy.log()
        proxy.stop()
        own = f"SELECT COUNT(*) FROM streamfrom.members WHERE database_name = '{database}'"
        assert execute(server, own) == ((0,),)
    for number in (1, 2):
        member = start_proxy(toml)
        numbers = (
            f"SELECT MAX(id_prefix) FROM streamfrom.members WHERE database_name = '{database}'"
        )
        assert execute(server, numbers) == ((number,),)
        assert member.log()


@pytest.fixture
def beside(server: DatabaseServer, database: str) -> Iterator[str]:
    """The name of a database that the test may make; it is gone afterwards."""
    name = f"{database}_beside"
    yield name
    execute(server, f"DROP DATABASE IF EXISTS {name}")


def test_a_suite_makes_its_own_database_and_drops_it(proxy, database, beside):
    client = proxy.connect(database=database, autocommit=True)
    run(client, "CREATE TABLE home (n INT)")
    run(client, "INSERT INTO home VALUES (1), (2)")
    assert refused(client, f"USE {beside}")[0] == 1049
    run(client, f"CREATE DATABASE {beside}")
    run(client, f"USE {beside}")
    assert value(client, "SELECT DATABASE()") == beside
    run(client, "CREATE TABLE t (n INT)")
    run(client, f"INSERT INTO t SELECT n + 1 FROM {database}.home")
    assert rows(client, f"SELECT t.n FROM t JOIN {database}.home USING (n)") == ((2,),)
    assert rows(client, "SHOW TABLES") == (("t",),)
    # One connection has both, and so has one transaction.
    run(client, "BEGIN")
    run(client, "DELETE FROM t")
    client.select_db(database)
    run(client, "DELETE FROM home")
    assert value(client, f"SELECT COUNT(*) FROM {beside}.t") == 0
    run(client, "ROLLBACK")
    assert value(client, "SELECT COUNT(*) FROM home") == 2
    client.select_db(beside)
    assert value(client, "SELECT COUNT(*) FROM t") == 2
    other = proxy.connect(database=beside, autocommit=True)
    assert value(other, "SELECT COUNT(*) FROM t") == 2
    run(client, f"DROP DATABASE {beside}")
    assert value(client, "SELECT DATABASE()") is None
    assert refused(client, "CREATE TABLE t (n INT)")[0] == 1046
    assert refused(client, f"USE {beside}")[0] == 1049
    run(client, f"CREATE DATABASE {beside}")
    client.select_db(beside)
    assert rows(client, "SHOW TABLES") == ()
    # So it is on a connection that is the session's own, and stays in a database till it leaves.
    client.select_db(database)
    run(client, "SET @kept = 1")
    client.select_db(beside)
    run(client, f"DROP DATABASE {beside}")
    assert rows(client, "SELECT DATABASE(), @kept") == ((None, 1),)


SCHEMAS = ("information_schema", "mysql", "performance_schema", "sys")


def test_a_system_schema_may_be_the_database(cluster: SharedCluster, keyspace: str):
    connection = cluster.proxy.connect(database="information_schema", autocommit=True)
    assert value(connection, "SELECT DATABASE()") == "information_schema"
    assert value(connection, "SELECT COUNT(*) FROM schemata WHERE schema_name = 'mysql'") == 1
    for schema in SCHEMAS:
        run(connection, f"USE {keyspace}")
        run(connection, f"USE {schema.upper()}")
        assert value(connection, "SELECT DATABASE()") == schema
        assert rows(connection, "SHOW TABLES")
    run(connection, f"USE {keyspace}")
    assert value(connection, "SELECT DATABASE()") == cluster.databases[keyspace]
    connection.select_db("performance_schema")
    assert refused(connection, "USE nosuch")[0] == 1049
    assert refused(connection, "STREAM * FROM my_message")[0] == 1146
    assert value(connection, "SELECT DATABASE()") == "performance_schema"


def test_a_table_of_a_system_schema_is_no_message_table(plain: Queue):
    plain.create("engines")
    connection = plain.proxy.connect(database="information_schema", autocommit=True)
    assert value(connection, "SELECT COUNT(*) FROM engines WHERE engine = 'InnoDB'") == 1
    code, _ = refused(connection, "UPDATE engines SET time_acked = NOW() WHERE id = 1")
    assert code in {1044, 1054, 1142, 1146}


def test_a_message_behind_set_statement_is_one_like_any_other(queue: Queue, family: Family):
    connection = queue.create()
    run(connection, "INSERT INTO my_message (id, time_next) VALUES (1, 1)")
    ack = (
        "SET STATEMENT max_statement_time = 5 FOR"
        " UPDATE my_message SET time_acked = NOW() WHERE id = 1"
    )
    if family is Family.MYSQL:
        assert refused(connection, ack)[0] == 1064
        return
    assert run(connection, ack) == 1
    assert run(connection, ack) == 0
    found = "SELECT time_acked > 1000000000000000000, time_next FROM my_message WHERE id = 1"
    assert rows(connection, found) == ((1, None),)
