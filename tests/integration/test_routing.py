"""Which shard gets what, seen in the shards' own tables; and what is refused, never answered wrong."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fixtures.streams import WAIT_S, refused, refuses, rows, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster


LOW, HIGH = LOW_IDS[0], HIGH_IDS[0]
ALL_IDS = sorted((*LOW_IDS, *HIGH_IDS))


@pytest.fixture
def client(cluster: SharedCluster) -> Any:
    """A client of the sharded keyspace, whose table customer has a row for each of ALL_IDS."""
    connection = cluster.proxy.connect(database="commerce", autocommit=True)
    create = "CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20), n INT DEFAULT 0)"
    run(connection, create)
    fill(connection)
    return connection


def fill(client: Any) -> None:
    values = ", ".join(f"({ident}, 'name {ident}', {ident % 3})" for ident in ALL_IDS)
    sql = f"INSERT INTO customer (id, name, n) VALUES {values}"
    assert run(client, sql) == len(ALL_IDS)


def on_shards(
    cluster: SharedCluster, sql: str = "SELECT id FROM customer ORDER BY id"
) -> list[list[Any]]:
    return [
        [row[0] for row in cluster.direct(sql, keyspace="commerce", shard=shard)]
        for shard in (0, 1)
    ]


def ids(connection: Any, condition: str = "1 = 1", table: str = "customer") -> list[int]:
    return sorted(i for (i,) in rows(connection, f"SELECT id FROM {table} WHERE {condition}"))


class TestInsertSelect:
    def test_it_takes_part_in_a_transaction_and_locks_what_it_has_read(self, cluster, client):
        run(client, "BEGIN")
        assert run(client, "INSERT INTO customer (id) SELECT id + 100 FROM customer") == 8
        other = cluster.proxy.connect(database="commerce", autocommit=True)
        run(other, "SET innodb_lock_wait_timeout = 1")
        assert refused(other, f"DELETE FROM customer WHERE id = {LOW}")[0] == 1205
        insert = "INSERT INTO customer (id) SELECT n + 200 FROM customer UNION ALL SELECT n + 300 FROM customer"
        refuses(client, insert, 1235, "READ COMMITTED")
        run(client, "ROLLBACK")
        assert ids(client) == ALL_IDS
        assert run(other, f"DELETE FROM customer WHERE id = {LOW}") == 1

    def test_every_value_arrives_as_it_was(self, client: Any) -> None:
        run(
            client,
            "CREATE TABLE purchase (customer_id BIGINT PRIMARY KEY, t TEXT CHARACTER SET utf8mb4,"
            " b VARBINARY(20), d DECIMAL(20,6), f DOUBLE, day DATE, at DATETIME(3), span TIME(2),"
            " big BIGINT UNSIGNED)",
        )
        values = (
            "'it''s 🎉 \\\\ \\0 \"', x'00ff275c', -1234.500000, 0.1e0, '2026-02-03',"
            " '2026-02-03 04:05:06.789', '-12:30:00.25', 18446744073709551615"
        )
        empty = ", ".join(["NULL"] * 8)
        run(client, f"INSERT INTO purchase VALUES ({LOW}, {values}), ({HIGH}, {empty})")
        columns = "t, b, d, f, day, at, span, big"
        moved = f"INSERT INTO purchase SELECT customer_id + 100, {columns} FROM purchase"
        for mode in ("STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES"):
            run(client, f"SET sql_mode = '{mode}'")
            assert run(client, moved) == 2
            for ident in (LOW, HIGH):
                both = [
                    rows(client, f"SELECT {columns} FROM purchase WHERE customer_id = {each}")
                    for each in (ident, ident + 100)
                ]
                assert both[0] == both[1]
            run(client, "DELETE FROM purchase WHERE customer_id > 100")


class TestInsert:
    def test_columns_that_are_left_out_are_all_visible_ones_in_order(self, cluster, client):
        run(client, "DELETE FROM customer")
        run(client, "ALTER TABLE customer ADD COLUMN hidden INT INVISIBLE DEFAULT 9 FIRST")
        both = f"INSERT INTO customer VALUES ({LOW}, 'a', 1), ({HIGH}, 'b', 2)"
        assert run(client, both) == 2
        assert run(client, f"REPLACE INTO customer VALUES ({HIGH}, 'c', DEFAULT)") == 2
        asked = "SELECT id, name, n, hidden FROM customer ORDER BY id"
        assert rows(client, asked) == ((LOW, "a", 1, 9), (HIGH, "c", 0, 9))
        assert on_shards(cluster) == [[LOW], [HIGH]]
        assert refused(client, f"INSERT INTO customer VALUES ({LOW}, 'a')")[0] == 1136
        # What an ALTER on the servers themselves changed holds for the next statement.
        for shard in (0, 1):
            alter = "ALTER TABLE customer MODIFY name VARCHAR(20) FIRST"
            cluster.direct(alter, keyspace="commerce", shard=shard)
        other = LOW_IDS[1]
        assert run(client, f"INSERT INTO customer VALUES ('d', {other}, 3)") == 1
        assert on_shards(cluster) == [[LOW, other], [HIGH]]

    def test_many_writers_of_both_shards_do_not_hold_each_other_up(self, cluster, client):
        def work(number: int) -> None:
            connection = cluster.proxy.connect(database="commerce", autocommit=True)
            for first in range(1000 + number * 1000, 1120 + number * 1000, 4):
                batch = [str(ident) for ident in range(first, first + 4)]
                run(connection, f"INSERT INTO customer (id) VALUES ({'), ('.join(batch)})")
                changed = f"UPDATE customer SET n = 7 WHERE id IN ({', '.join(batch)}, 1, 4)"
                assert run(connection, changed) >= 4

        with ThreadPoolExecutor(6) as writers:
            list(writers.map(work, range(6), timeout=WAIT_S))
        assert len(ids(client, "n = 7")) == 6 * 30 * 4 + 2


class TestDdl:
    def test_a_shard_that_refuses_is_named_with_those_that_did_not(self, cluster, client):
        cluster.direct("CREATE TABLE other_message (n INT)", keyspace="commerce", shard=1)
        code, text = refused(client, "CREATE TABLE other_message (id BIGINT)")
        assert code == 1050
        assert text.endswith("(shard commerce/80-; done before on commerce/-80)")

    def test_a_table_is_maintained_everywhere(self, client):
        client.autocommit(False)
        run(client, f"DELETE FROM customer WHERE id IN ({LOW}, {HIGH})")
        for verb in ("ANALYZE", "OPTIMIZE", "CHECK"):
            found = rows(client, f"{verb} TABLE customer")
            assert [row[2:] for row in found].count(("status", "OK")) == 2, found
        client.rollback()
        kept = [ident for ident in ALL_IDS if ident not in (LOW, HIGH)]
        assert ids(client) == kept, "it commits, on both shards"

    def test_a_table_that_no_vindex_places_is_a_warning_with_the_line_to_add(self, client):
        def warned(sql: str) -> list[Any]:
            with client.cursor() as cursor:
                cursor.execute(sql)
                count = cursor.warning_count
            shown = rows(client, "SHOW WARNINGS")
            assert len(shown) == count
            return list(shown)

        line = '"invoice": {"column_vindexes": [{"column": "id", "name": "hash"}]}'
        ((level, code, text),) = warned("CREATE TABLE invoice (id BIGINT PRIMARY KEY)")
        assert (level, code) == ("Warning", 1235)
        assert line in text
        refuses(client, "SELECT * FROM invoice", 1235, text)
        ((_, _, text),) = warned("RENAME TABLE invoice TO bill")
        assert '"bill": {' in text
        ((_, _, text),) = warned("ALTER TABLE bill RENAME TO invoice")
        assert '"invoice": {' in text
        assert warned("ALTER TABLE invoice ADD COLUMN n INT") == []
        assert warned("DROP TABLE invoice") == []
        assert warned("CREATE TABLE IF NOT EXISTS purchase (customer_id BIGINT)") == []
        assert warned("CREATE QUEUE invoice (n INT)") == []
