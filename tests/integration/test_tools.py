"""What tools ask that is of no keyspace: system schemas, TLS, old commands, collations of a login."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.streams import refused, rows, run, value
from tests.integration.conftest import Queue, SharedCluster


pytestmark = pytest.mark.db

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
