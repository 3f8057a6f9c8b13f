"""Values of the client's own in its text: its columns are called, and typed, as on a server."""

import random
from typing import Any

import pytest

from tests.fixtures.database_servers import root
from tests.fixtures.streams import refused, rows, run, value
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

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
STATEMENTS = [
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
        sql = dice.choice(STATEMENTS).format(item)
        assert described(through, sql) == described(direct, sql), sql
    direct.close()


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
