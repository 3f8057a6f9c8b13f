"""User variables of a session that goes from one keyspace to another, and from shard to shard."""

from typing import Any

import pytest

from tests.fixtures.streams import refuses, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster


pytestmark = pytest.mark.db

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
    client.select_db("commerce:80-")
    assert value(client, "SELECT @x") == 1


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


@pytest.mark.parametrize("limit", [0, 1])
def test_values_go_along_whatever_sql_select_limit_is(cluster, limit):
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, "SET @a = 1, @b = 2")
    # What it sets, its text alone does not name.
    run(client, "PREPARE s FROM 'SELECT @c := 3'")
    run(client, "EXECUTE s")
    run(client, f"SET sql_select_limit = {limit}")
    client.select_db("commerce:80-")
    assert rows(client, "SELECT @a, @b, @c LIMIT 1") == ((1, 2, 3),)
