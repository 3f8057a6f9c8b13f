"""Insert ids of a queue that gives ids are ids of rows, as those of AUTO_INCREMENT, in the OK and in LAST_INSERT_ID()."""

import itertools

import pytest
from pymysql.constants import CLIENT

from tests.fixtures.database_servers import root
from tests.fixtures.streams import run


pytestmark = pytest.mark.db

UPDATE = "ON DUPLICATE KEY UPDATE"
STATEMENTS = [
    "INSERT INTO job (k, n) VALUES ('c', 1), ('d', 1)",
    "INSERT INTO job (id, k, n) VALUES (500, 'c', 1), (NULL, 'd', 1)",
    "INSERT INTO job (id, k, n) VALUES (500, 'c', 1)",
    "INSERT INTO job (id, k, n) VALUES (500, 'c', 1), (400, 'd', 1)",
    "INSERT INTO job (id, k, n) VALUES ('500', 'c', 1)",
    "INSERT INTO job SET id = 500, k = 'c'",
    "REPLACE INTO job (id, k, n) VALUES (500, 'a', 1)",
    "REPLACE INTO job (id, k, n) VALUES (500, 'c', 1), (400, 'd', 1)",
    "INSERT IGNORE INTO job (k, n) VALUES ('a', 2)",
    "INSERT IGNORE INTO job (k, n) VALUES ('c', 2)",
    "INSERT IGNORE INTO job (k, n) VALUES ('a', 2), ('c', 2), ('d', 2)",
    "INSERT IGNORE INTO job (k, n) VALUES ('c', 2), ('a', 2)",
    "INSERT IGNORE INTO job (k, n) VALUES ('a', 2), ('b', 2)",
    "INSERT IGNORE INTO job SET k = 'a'",
    f"INSERT INTO job (k, n) VALUES ('a', 3) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('a', 3) {UPDATE} n = DEFAULT, n = 4",
    f"INSERT INTO job (k, n) VALUES ('a', 1) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('c', 3) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('a', 3) {UPDATE} id = LAST_INSERT_ID(id), n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('a', 1) {UPDATE} id = LAST_INSERT_ID(id)",
    f"INSERT INTO job (k, n) VALUES ('c', 1) {UPDATE} id = LAST_INSERT_ID(id)",
    f"INSERT INTO job (k, n) VALUES ('a', 3), ('c', 3), ('b', 3) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('c', 3), ('a', 3) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('a', 3), ('b', 3) {UPDATE} n = VALUES(n)",
    f"INSERT INTO job (k, n) VALUES ('a', 3) {UPDATE} n = LAST_INSERT_ID(9)",
    "REPLACE INTO job (k, n) VALUES ('a', 4), ('c', 4)",
    "INSERT INTO job (k, n) SELECT 'c', 1",
    "INSERT IGNORE INTO job (k, n) SELECT 'a', 1 UNION ALL SELECT 'c', 1",
]
QUEUE = "CREATE QUEUE job (k VARCHAR(9) COLLATE utf8mb4_bin UNIQUE, n INT) SHARD BY xxhash(k)"
TABLE = (
    "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(9) UNIQUE, n INT)"
)


def told(connection, sql, *, table="job", is_known):
    """Return affected rows, insert id and LAST_INSERT_ID() of *sql*; an id by the key of its row."""
    run(connection, f"DELETE FROM {table}")
    for key in "abz":
        run(connection, f"INSERT INTO {table} (k, n) VALUES ('{key}', 1)")
    if not is_known:
        run(connection, "SELECT LAST_INSERT_ID(77)")
    with connection.cursor() as cursor:
        cursor.execute(sql)
        counts = cursor.rowcount, cursor.lastrowid
        cursor.execute("SELECT LAST_INSERT_ID()")
        ((last,),) = cursor.fetchall()
        cursor.execute(f"SELECT id, k FROM {table}")
        keys = dict(cursor.fetchall())
    affected, told = counts
    return affected, keys.get(told, told), keys.get(last, last)


@pytest.mark.parametrize("found_rows", [0, CLIENT.FOUND_ROWS])
def test_an_insert_id_is_that_of_a_row_as_with_auto_increment(cluster, keyspace, found_rows):
    options = {"autocommit": True, "client_flag": found_rows}
    single = root(cluster.servers[0], database=cluster.databases["plain"], **options)
    through = cluster.proxy.connect(database=keyspace, **options)
    run(single, "DROP TABLE IF EXISTS counted")
    run(single, TABLE)
    run(through, QUEUE)
    for sql, is_known in itertools.product(STATEMENTS, (False, True)):
        expected = told(
            single, sql.replace("job", "counted"), table="counted", is_known=is_known
        )
        found = told(through, sql, is_known=is_known)
        if found_rows and "('a', 1) ON" in sql and "LAST_INSERT_ID" not in sql:
            # One row either way: the id of the row that stayed as it was is told as well.
            assert found == (1, "a", expected[2]), sql
        elif keyspace == "commerce" and "('b', 3)" in sql and "'c'" not in sql:
            assert found in {(4, key, expected[2]) for key in "ab"}, sql  # which shard is first
        else:
            assert found == expected, sql
    single.close()


def test_a_row_of_an_open_transaction_is_one(cluster, keyspace):
    connection = cluster.proxy.connect(database=keyspace)
    run(connection, QUEUE)
    run(connection, "INSERT INTO job (k, n) VALUES ('a', 1)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO job (k, n) VALUES ('a', 2), ('c', 2)")
        cursor.execute("SELECT id FROM job WHERE id = LAST_INSERT_ID() AND k = 'c'")
        assert cursor.fetchall()
    connection.rollback()


def test_a_prepared_insert_that_is_ignored_tells_no_id(cluster, keyspace):
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(connection, QUEUE)
    run(connection, "PREPARE p FROM 'INSERT IGNORE INTO job (k, n) VALUES (?, 1)'")
    run(connection, "SET @k = 'a'")
    with connection.cursor() as cursor:
        cursor.execute("EXECUTE p USING @k")
        first = cursor.lastrowid
        cursor.execute("EXECUTE p USING @k")
        assert (cursor.rowcount, cursor.lastrowid) == (0, 0)
        cursor.execute("SELECT LAST_INSERT_ID(), id FROM job")
        assert cursor.fetchall() == ((first, first),)
