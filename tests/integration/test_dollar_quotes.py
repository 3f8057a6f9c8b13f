"""`$$ … $$` quotes before MySQL 9, and is a name before other servers: each is read as its server does."""

import pytest
from pymysql.constants import CLIENT

from tests.fixtures.database_servers import root
from tests.fixtures.streams import answers
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

STATEMENTS = (
    "SELECT 1 AS $a; SELECT 2 AS $a",
    "SELECT 1 AS $a$; SELECT 2 AS $a$",
    "SELECT 1 AS $$; SELECT 2",
    "SELECT 1 AS a$$; SELECT 2 AS b$$",
    "SELECT '$2y$10$abc;' AS a; SELECT `$$` FROM (SELECT 1 AS `$$`) AS t",
    "SELECT t.$a$ FROM (SELECT 1 AS `$a$`) AS t; SELECT 2 AS b",
    "SET @$a$ = 1; SELECT @$a$ AS a",
    "CREATE FUNCTION one_less(x INTEGER) RETURNS INTEGER DETERMINISTIC LANGUAGE JAVASCRIPT"
    " AS $$ return x-1; $$",
    "DROP FUNCTION one_less",
    "CREATE FUNCTION quoting() RETURNS INTEGER DETERMINISTIC LANGUAGE JAVASCRIPT"
    " AS $b$ let a='x'; /*!50000 let b; */ return \"$$\"; -- ' $b$; SELECT 2 AS a",
    "DROP FUNCTION IF EXISTS quoting",
    "CREATE LIBRARY lib LANGUAGE JAVASCRIPT AS $$ export function f(n) { return n; } $$",
    "SHOW CREATE LIBRARY lib",
    "DROP LIBRARY lib",
    "CREATE FUNCTION open() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return 1; DROP TABLE kept",
    "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $x$ return 1; $X$; DROP TABLE kept",
    "SELECT COUNT(*) AS n FROM kept",
)


def test_what_stands_between_dollars_is_what_the_server_says(cluster: SharedCluster) -> None:
    found = []
    flag = CLIENT.MULTI_STATEMENTS
    database = cluster.databases["plain"]
    for client in (
        cluster.proxy.connect(database="plain", autocommit=True, client_flag=flag),
        root(cluster.servers[0], database=database, client_flag=flag),
    ):
        answers(client, b"CREATE TABLE kept (id INT)")
        found.append([(sql, answers(client, sql.encode())) for sql in STATEMENTS])
        answers(client, b"DROP TABLE kept")
        client.close()
    assert found[0] == found[1]
