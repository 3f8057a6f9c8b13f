"""LAST_INSERT_ID() of a client whose connection has gone to others is what one server says on one connection.

The OK cannot tell it: it has an insert id for rows that name their ids themselves as well, or that a trigger names,
and LAST_INSERT_ID() stays as it was then. So the server is asked when a connection changes hands.
"""

import random
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from tests.cases import lines
from tests.fixtures.database_servers import root
from tests.fixtures.streams import refused, rows, run, value
from tests.integration.conftest import SharedCluster
from tests.integration.sessions.crowd import crowd


pytestmark = pytest.mark.db

BEFORE = 4242  # what the client's LAST_INSERT_ID() is before the statement


def told(client: "Connection[bytes]", sql: str) -> int:
    """Return the insert id in the answer to *sql*, 0 also for an error."""
    with client.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.Error:
            return 0
        return int(cursor.lastrowid or 0)


def test_it_is_what_one_server_says_on_a_connection(tight, sharded_database, servers, connect):
    client, *others = crowd(tight, 4)
    direct = connect(servers[1], database=f"{sharded_database}_plain", autocommit=True)
    both = (("through", client), ("straight", direct))
    for table, one in both:
        for made in (
            "CREATE TABLE {t} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)",
            "CREATE TABLE {t}_others LIKE {t}",
            "CREATE TABLE {t}_plain (id BIGINT PRIMARY KEY)",
            "CREATE TABLE {t}_named LIKE {t}",
            "CREATE TABLE {t}_logged LIKE {t}",
            "INSERT INTO {t} (v) VALUES (1)",
            "CREATE TRIGGER {t}_a BEFORE INSERT ON {t}_named FOR EACH ROW SET NEW.id = NEW.v + 900",
            "CREATE TRIGGER {t}_b AFTER INSERT ON {t}_logged FOR EACH ROW INSERT INTO {t} (v) VALUES (8)",
            "CREATE PROCEDURE {t}_fill() INSERT INTO {t} (v) VALUES (6)",
        ):
            run(one, made.format(t=table))
    for sql in lines(__file__, "test_it_is_what_one_server_says_on_a_connection"):
        found = []
        for table, one in both:
            run(one, f"SET last_insert_id = {BEFORE}")
            answer = told(one, sql.format(t=table))
            for other in others:
                # Each of them has one of the two connections, and makes an id of its own there.
                run(other, "INSERT INTO through_others (v) VALUES (2), (3)")
            found.append((answer, value(one, "SELECT LAST_INSERT_ID()")))
        assert found[0] == found[1], sql
    for table, one in both:
        run(one, f"DROP PROCEDURE {table}_fill")


CALLS = [
    *["USER()", "CURRENT_USER", "SESSION_USER()", "CONNECTION_ID()", "`connection_id`()"],
    *["@@socket", "@@global.`socket`", "FOUND_ROWS()", "`found_rows`()", "ROW_COUNT()"],
    *["@@warning_count", "@@`error_count`", "LAST_INSERT_ID()", "@@`last_insert_id`"],
]
EXPRESSIONS = [
    *["{}", "({})", "{} IS NOT NULL", "{} = 'a'", "{} LIKE 'r%' ESCAPE '!'", "NOT {} IS NULL"],
    *["CASE {} WHEN 'a' THEN 1 ELSE 2 END", "CONCAT({}, 'x')", "{} COLLATE utf8mb3_bin"],
    *[
        "NOW() - INTERVAL {} SECOND IS NULL",
        "(SELECT {})",
        "'a' = {}",
        "{} = DATE '2020-01-01'",
    ],
    *["{} IN (1, 2)", "{} = _latin1'a'", "EXISTS(SELECT {})", "CAST({} AS CHAR)", "{} IS TRUE"],
]
ALIASES = ["", " u", " `u`", " 'u'", " AS u", " day", " end"]
SELECTS = [
    *["SELECT {}", "SELECT 1, {}, 2", "SELECT * FROM (SELECT {}) q", "(SELECT {})"],
    *["WITH c AS (SELECT {}) SELECT * FROM c", "SELECT {} FROM (SELECT 1 a) z ORDER BY 1"],
    *["SELECT DISTINCT {} FROM DUAL", "SELECT {} LIMIT 1", "SELECT {} UNION SELECT NULL"],
]


def described(client: Any, sql: str) -> Any:
    """Return what a client sees of the columns, or the error."""
    with client.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchall()
        try:
            cursor.execute(sql)
        except Exception as error:
            return error.args
        return [
            (field.name, field.type_code, field.length, field.charsetnr)
            for field in cursor._result.fields
        ]


@pytest.mark.parametrize("target", ["plain", "commerce:-80"])
def test_columns_are_those_of_the_server(cluster: SharedCluster, target: str) -> None:
    through = cluster.proxy.connect(database=target, autocommit=True)
    direct = root(cluster.servers[0], autocommit=True)
    dice = random.Random(target)
    for _ in range(300):
        item = dice.choice(EXPRESSIONS).format(dice.choice(CALLS)) + dice.choice(ALIASES)
        sql = dice.choice(SELECTS).format(item)
        assert described(through, sql) == described(direct, sql), sql
    direct.close()


def test_who_somebody_is_gives_no_warning(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain")
    for call in ("USER()", "CURRENT_USER", "CONNECTION_ID()", "@@socket"):
        rows(client, f"SELECT {call}")
        assert rows(client, "SHOW WARNINGS") == (), call


def test_quoted_names_of_functions_are_the_functions(cluster: SharedCluster) -> None:
    client, other = (cluster.proxy.connect(database="plain", autocommit=True) for _ in range(2))
    assert value(client, "SELECT `connection_id`()") == client.thread_id()
    assert value(client, "SELECT `get_lock`('quoted', 0)") == 1
    assert value(other, "SELECT `is_used_lock`('quoted')") == client.thread_id()
    client.select_db("commerce:80-")
    assert refused(client, "SELECT `get_lock`('other', 0)")[0] == 1235
    client.close()
    while value(other, "SELECT `get_lock`('quoted', 1)") != 1:
        pass
    run(other, "DO `release_all_locks`()")
    assert value(other, "SELECT `last_insert_id`(4711)") == 4711
    other.close()
    for _ in range(8):
        again = cluster.proxy.connect(database="plain", autocommit=True)
        assert rows(again, "SELECT `last_insert_id`(), @@`last_insert_id`") == ((0, 0),)
