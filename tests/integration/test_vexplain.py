"""Where a statement would run, asked as Vitess's users ask."""

import json
from typing import Any

import pytest

from tests.fixtures.streams import refused, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS, Queue, SharedCluster


pytestmark = pytest.mark.db


@pytest.fixture
def client(cluster: SharedCluster) -> Any:
    return cluster.proxy.connect(database="commerce", autocommit=True)


def plan(client: Any, statement: str) -> Any:
    return json.loads(value(client, f"VEXPLAIN PLAN {statement}"))


def test_a_plan_names_the_shards_and_runs_nothing(sharded: Queue, client: Any) -> None:
    sharded.create()
    found = plan(client, f"INSERT INTO my_message (id, message) VALUES ({LOW_IDS[0]}, 'x')")
    assert (found["OperatorType"], found["Shards"]) == ("Insert", ["-80"])
    assert not sharded.cluster.direct("SELECT id FROM my_message", keyspace="commerce")
    found = plan(client, f"SELECT * FROM my_message WHERE id IN ({LOW_IDS[0]}, {HIGH_IDS[0]})")
    assert (found["Variant"], found["Shards"]) == ("IN", ["-80", "80-"])
    both = "EXPLAIN FORMAT=VTEXPLAIN SELECT * FROM my_message", "SELECT * FROM my_message"
    assert json.loads(value(client, both[0])) == plan(client, both[1])


def test_a_stream_has_a_plan_too(sharded: Queue, client: Any) -> None:
    sharded.create()
    whole = plan(client, "STREAM * FROM my_message")
    assert whole["OperatorType"] == "MStream"
    assert whole["TargetDestination"] == "ExactKeyRange(-)"
    half = plan(client, "STREAM id FROM `commerce:80-`.my_message")
    assert half["TargetDestination"] == "ExactKeyRange(80-)"
    assert refused(client, "VEXPLAIN PLAN STREAM * FROM nothing")[0] == 1146


def test_what_would_be_refused_is_refused_alike(client: Any) -> None:
    assert refused(client, "VEXPLAIN PLAN SELECT * FROM unknown")[0] == 1235
    assert refused(client, "VEXPLAIN TRACE SELECT 1") == (
        1235,
        "unsupported: VEXPLAIN TRACE; VEXPLAIN PLAN shows where it runs",
    )
    assert refused(client, "VEXPLAIN PLAN CREATE TABLE t (a INT)")[0] == 1064
    assert rows(client, "SELECT 1") == ((1,),)


def test_the_answers_about_the_vschema_are_those_of_vitess(client: Any) -> None:
    assert rows(client, "SHOW VSCHEMA VINDEXES ON purchase") == (
        ("customer_id", "hash", "hash", "", ""),
    )
    assert refused(client, "SHOW VSCHEMA VINDEXES ON garbage") == (
        1146,
        "VT05005: table 'garbage' does not exist in keyspace 'commerce'",
    )
    assert rows(client, "SHOW VITESS_SHARDS LIKE 'commerce/%'") == (
        ("commerce/-80",),
        ("commerce/80-",),
    )


def test_the_answers_about_servers_and_targets_are_those_of_vitess(
    cluster: SharedCluster, client: Any
) -> None:
    tablets = rows(client, "SHOW VITESS_TABLETS")
    assert [row[1:5] for row in tablets if row[1] == "commerce"] == [
        ("commerce", "-80", "PRIMARY", "SERVING"),
        ("commerce", "80-", "PRIMARY", "SERVING"),
    ]
    assert rows(client, "SHOW KEYSPACES LIKE 'comm%'") == (("commerce",),)
    for target in (":-80", "@primary", "/80-"):
        run(client, f"USE `{target}`")
        assert value(client, "SHOW VITESS_TARGET") == f"commerce{target}"
    with client.cursor() as cursor:
        cursor.execute("SHOW VITESS_TARGET")
        assert [column[0] for column in cursor.description] == ["Target"]
    assert refused(client, "USE `:nosuch`")[0] == 1105
    assert value(client, "SHOW VITESS_TARGET") == "commerce/80-"
    nowhere = cluster.proxy.connect(database=None)
    assert refused(nowhere, "USE `:-80`") == (1046, "No database selected")
    assert value(nowhere, "SHOW VITESS_TARGET") == ""


def test_a_part_of_a_keyspace_is_the_database_by_its_own_name(
    sharded: Queue, client: Any
) -> None:
    sharded.create()
    real = sharded.cluster.databases["commerce"]
    assert value(client, "SELECT DATABASE()") == real
    for _ in range(2):
        run(client, "USE `commerce:-80`")
        assert value(client, "SELECT DATABASE()") == "commerce:-80"
        assert value(client, "select schema()") == "commerce:-80"
        found = rows(
            client,
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'commerce:-80' AND table_name = 'my_message'",
        )
        assert found == (("my_message",),)
        run(client, "USE `commerce@primary`")
        assert value(client, "SELECT DATABASE()") == real
    with client.cursor() as cursor:
        run(client, "USE `:80-`")
        cursor.execute("SELECT DATABASE()")
        assert [column[0] for column in cursor.description] == ["DATABASE()"]


def test_vitesss_session_variables_are_kept(cluster: SharedCluster, client: Any) -> None:
    assert rows(client, "SELECT @@workload, @@transaction_mode") == (("OLTP", "MULTI"),)
    run(client, "SET workload = 'olap', transaction_mode = single")
    assert rows(client, "SELECT @@workload, @@transaction_mode") == (("OLAP", "SINGLE"),)
    assert refused(client, "SET workload = 'nonsense'")[0] == 1231
    run(client, "SET @kept = @@workload")
    assert value(client, "SELECT @kept") == "OLAP"
    fresh = cluster.proxy.connect(database="commerce")
    assert rows(fresh, "SELECT @@workload, @@transaction_mode") == (("OLTP", "MULTI"),)
    client._execute_command(0x1F, b"")  # COM_RESET_CONNECTION
    client._read_ok_packet()
    assert rows(client, "SELECT @@workload, @@transaction_mode") == (("OLTP", "MULTI"),)


PURCHASE = "CREATE TABLE purchase (customer_id BIGINT PRIMARY KEY, n INT)"


def test_queries_are_run_and_listed(cluster: SharedCluster, client: Any) -> None:
    run(client, PURCHASE)
    low, high = LOW_IDS[0], HIGH_IDS[0]
    insert = f"INSERT INTO purchase (customer_id, n) VALUES ({low}, 1), ({high}, 2)"
    assert rows(client, f"VEXPLAIN QUERIES {insert}") == (
        (0, "commerce", "-80", f"INSERT INTO purchase (customer_id, n) VALUES ({low}, 1)"),
        (1, "commerce", "80-", f"INSERT INTO purchase (customer_id, n) VALUES ({high}, 2)"),
    )
    assert rows(client, "SELECT COUNT(*) FROM purchase") == ((2,),)
    run(client, "BEGIN")
    deleted = rows(client, "VEXPLAIN QUERIES DELETE FROM purchase LIMIT 1")
    assert [row[3] for row in deleted] == [
        "DELETE FROM purchase LIMIT 1",
        "DELETE FROM purchase LIMIT 0",
    ]
    assert rows(client, "SELECT customer_id FROM purchase") == ((high,),)
    run(client, "ROLLBACK")
    assert rows(client, "SELECT COUNT(*) FROM purchase") == ((2,),)
    merged = rows(client, "VEXPLAIN QUERIES SELECT n, COUNT(*) FROM purchase GROUP BY n")
    assert [row[2] for row in merged] == ["-80", "80-"]
    code, _ = refused(client, f"VEXPLAIN QUERIES {insert}")
    assert code == 1062
    assert rows(client, "SELECT 1") == ((1,),)


def test_a_large_answer_that_is_only_listed_leaves_the_connection_in_step(client: Any) -> None:
    sql = f"VEXPLAIN QUERIES SELECT REPEAT('x', 100000) FROM {' JOIN '.join([f'(SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) d{n}' for n in range(4)])}"
    assert len(rows(client, sql)) == 1
    assert rows(client, "SELECT 2") == ((2,),)


def test_a_vindex_reads_like_a_table(client: Any) -> None:
    low, high = LOW_IDS[0], HIGH_IDS[0]
    ident = bytes.fromhex("166b40b44aba4bd6")
    assert rows(client, "SELECT * FROM hash WHERE id = 1") == (
        (b"1", ident, b"", b"\x80", b"166b40b44aba4bd6", b"-80"),
    )
    asked = f"SELECT id, shard FROM commerce.hash WHERE id IN ({low}, {high})"
    assert rows(client, asked) == (
        (str(low).encode(), b"-80"),
        (str(high).encode(), b"80-"),
    )
    run(client, "PREPARE p FROM 'SELECT shard FROM hash WHERE id = ?'")
    run(client, f"SET @v = {high}")
    assert rows(client, "EXECUTE p USING @v") == ((b"80-",),)
    assert refused(client, "SELECT * FROM hash")[0] == 1235
    assert rows(client, "VEXPLAIN QUERIES SELECT * FROM hash WHERE id = 1") == ()
