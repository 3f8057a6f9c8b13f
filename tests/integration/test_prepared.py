"""Prepared statements through real servers, by mysql-connector-python: test_drivers.py has others.

Every type, NULLs, a value of a megabyte, executions from many connections, transactions, errors, a
stream of messages and their acks.
"""

import datetime
import decimal
from typing import Any

import pytest

from tests.cases import in_turn
from tests.fixtures.streams import message_table, run
from tests.integration.conftest import SharedCluster


ITEM = (
    "CREATE TABLE {} (id BIGINT PRIMARY KEY, unsigned_value BIGINT UNSIGNED, name VARCHAR(100),"
    " price DECIMAL(20,5), ratio DOUBLE, moment DATETIME(6), body LONGBLOB,"
    " duration TIME(6), day DATE, tiny TINYINT) CHARACTER SET utf8mb4"
)
pytestmark = pytest.mark.db


@pytest.fixture
def tables(cluster: SharedCluster, keyspace: str) -> str:
    """The tables that the drivers use, in the keyspace that is returned."""
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    # In the sharded keyspace by the names that its vschema knows.
    run(connection, ITEM.format("item"))
    run(connection, message_table("my_message", columns="message VARCHAR(100)"))
    return keyspace


def fetch(connection: Any, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    cursor = connection.cursor(prepared=True)
    cursor.execute(sql, values)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    cursor.close()
    return rows


def change(connection: Any, sql: str, *values: Any) -> int:
    cursor = connection.cursor(prepared=True)
    cursor.execute(sql, values)
    count: int = cursor.rowcount
    cursor.close()
    return count


def test_every_type_comes_back_as_it_was_bound(cluster: SharedCluster, tables: str):
    client = cluster.proxy.connector(tables)
    row = (
        1,
        2**64 - 1,
        "hällo 🎉",
        decimal.Decimal("-123.45000"),
        0.1,
        datetime.datetime(2026, 1, 2, 3, 4, 5, 678),  # noqa: DTZ001 - a DATETIME has none
        b"\x00\xff'\\" * 300_000,
        datetime.timedelta(hours=-30, microseconds=5),
        datetime.date(2026, 2, 3),
        -128,
    )
    columns = "id, unsigned_value, name, price, ratio, moment, body, duration, day, tiny"
    marks = ", ".join("?" * len(row))
    assert change(client, f"INSERT INTO item ({columns}) VALUES ({marks})", *row) == 1
    empty = (4, *[None] * (len(row) - 1))
    assert change(client, f"INSERT INTO item ({columns}) VALUES ({marks})", *empty) == 1
    select = f"SELECT {columns} FROM item WHERE id = ?"
    assert fetch(client, select, 1) == [row]
    assert fetch(client, select, 4) == [empty]
    assert fetch(client, select, 5) == []


# A column's type, the next one, and a value that the new one holds and the old one does not, or holds as something else.
MODIFIED = [
    ("INT", "DECIMAL(10,2)", "1.25"),
    ("INT UNSIGNED", "INT", "-1"),
    ("TINYINT", "INT", "70000"),
    ("INT", "VARCHAR(20)", "'seven'"),
    ("YEAR", "INT", "70000"),
    ("FLOAT", "DOUBLE", "0.12345678901234"),
    ("BIT(8)", "INT", "5"),
    ("VARCHAR(20)", "VARBINARY(20)", "'five'"),
    ("BLOB", "TEXT", "'five'"),
    ("INT", "DECIMAL(10,2)", "5"),
]


def test_what_was_bound_to_the_same_statement_changes_nothing(cluster, tables):
    one, other = (cluster.proxy.connector(tables) for _ in range(2))
    for number, name in enumerate(("abc", "xyz", "7", "2026-01-01"), 1):
        change(one, "INSERT INTO item (id, name) VALUES (?, ?)", number, name)
    sql = "SELECT name FROM item WHERE name = ? AND id < 9 AND ? = ?"
    # Prepared once: what is prepared anew has nothing bound to it yet.
    cursors = [each.cursor(prepared=True) for each in (one, other)]
    for value in (7, 7.5, decimal.Decimal(7), datetime.date(2026, 1, 1), None, "7"):
        for cursor in cursors:
            cursor.execute(sql, (value, 1, 1))
            cursor.fetchall()
        for cursor in cursors:
            cursor.execute(sql, ("abc", "a", "a"))
            assert cursor.fetchall() == [("abc",)], value


def test_a_value_keeps_its_type_also_where_the_proxy_merges(cluster, tables):
    client = cluster.proxy.connector(tables)
    for number, name in enumerate(("abc", "5", "10"), 1):
        change(client, "INSERT INTO item (id, name, price) VALUES (?, ?, 0.1)", number, name)
    sql = "SELECT COUNT(*), SUM(price) * ? FROM item WHERE name > ?"
    half, more = decimal.Decimal("1.10"), decimal.Decimal("5.5")
    assert fetch(client, sql, half, more) == [(1, decimal.Decimal("0.11"))]
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)  # noqa: DTZ001 - a DATETIME has none
    for column, value in (
        ("moment", moment),
        ("day", datetime.date(2026, 2, 3)),
        ("duration", datetime.timedelta(hours=-30, microseconds=5)),
    ):
        sql = f"SELECT id, COALESCE({column}, ?) FROM item WHERE id < ? ORDER BY id"
        assert fetch(client, sql, value, 3) == [(1, value), (2, value)]


@in_turn
@pytest.mark.parametrize(("old", "new", "value"), MODIFIED)
def test_a_column_of_another_type_ends_a_prepared_stream_and_says_so(cluster, old, new, value):
    writer = cluster.proxy.connect(database="plain", autocommit=True)
    run(writer, "DROP TABLE IF EXISTS ps")
    run(writer, message_table("ps", columns=f"n {old}"))
    reader = cluster.proxy.connector("plain")
    cursor = reader.cursor(prepared=True)
    cursor.execute("STREAM id, n FROM ps")
    alter = f"ALTER TABLE ps MODIFY n {new}"
    if old == "BLOB":
        cluster.direct(alter)  # it is noticed as well, a little later
    else:
        run(writer, alter)
    run(writer, f"INSERT INTO ps (id, n) VALUES (1, {value})")
    with pytest.raises(Exception, match="has changed its type") as ended:
        cursor.fetchone()
    assert (ended.value.errno, ended.value.sqlstate, ended.value.msg) == (  # type: ignore[attr-defined]
        1412,
        "HY000",
        "column 'n' of message table 'ps' has changed its type; send STREAM again",
    )
    # The connection is intact, and the message goes to the stream that it sends now.
    again = reader.cursor(prepared=True)
    again.execute("STREAM id, n FROM ps LIMIT 1")
    ((ident, found),) = again.fetchall()
    shown = fetch(cluster.proxy.connector("plain"), "SELECT n FROM ps WHERE id = ?", ident)
    assert (ident, [(found,)]) == (1, shown)


@pytest.mark.parametrize("charset", ["utf8mb4", "binary"])
def test_a_column_that_keeps_its_type_leaves_a_prepared_stream_open(cluster, charset):
    writer = cluster.proxy.connect(database="plain", autocommit=True)
    run(writer, message_table("ps", columns="n VARCHAR(5), j JSON"))
    reader = cluster.proxy.connector("plain")
    if charset == "binary":
        reader.cmd_query("SET character_set_results = binary")
    cursor = reader.cursor(prepared=True)
    cursor.execute("STREAM n, j FROM ps")
    changes = "MODIFY n VARCHAR(50)", "ADD COLUMN m INT", "MODIFY m BIGINT", "MODIFY n TEXT"
    for number, change_of_table in enumerate(changes):
        run(writer, f"ALTER TABLE ps {change_of_table}")
        run(writer, f"INSERT INTO ps (id, n) VALUES ({number}, 'a long word')")
    # The driver reads one row ahead.
    rows = [cursor.fetchone() for _ in changes[1:]]
    assert rows == [(b"a long word" if charset == "binary" else "a long word", None)] * 3
    run(writer, f"KILL {reader.connection_id}")
