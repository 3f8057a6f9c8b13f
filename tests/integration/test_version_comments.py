"""Random nestings of version comments: the server makes the same of a text and of what it is resolved to.

Sums tell which parts ran, and errors count as well. More with COMMENT_TEXTS=100000 COMMENT_SEED=2.
"""

import os
import random

import pytest
from pymysql.constants import CLIENT

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.text.version_comments import resolved, server_version
from tests.fixtures.database_servers import root
from tests.fixtures.streams import answers, run
from tests.integration.conftest import SharedCluster


TEXTS = int(os.environ.get("COMMENT_TEXTS", "800"))
SEED = int(os.environ.get("COMMENT_SEED", "1"))
OPENS = [
    "/*!", "/*!", "/*M!", "/*!50000", "/*!50701", "/*!99999", "/*!101119", "/*!101120",
    "/*!999999", "/*!090704", "/*!500001", "/*!5000", "/*!09070", "/*!1011191", "/*!40101+",
    "/*!50700\t", "/*!100000\n", "/*!090705\x0b", "/*!101200\x0c", "/*M!50701",
    "/*M!999999", "/*M!100100", "/*", "/*+", "/**/",
]  # fmt: skip
CLOSES = ["*/"] * 6 + ["*/ ", "/*/", "**/"]
CODE = [
    '+1', '+20', '+300', '-4000', ' ', '-', '--', '-- ', '#', '\n', "'", '"', '`', '\\',
    "''", " 'a' ", '1', '*', '/', '*3', '(1)', ' x', ',5', ';',
]  # fmt: skip
MODES = {
    "": SqlMode(0),
    "ANSI_QUOTES": SqlMode.ANSI_QUOTES,
    "NO_BACKSLASH_ESCAPES": SqlMode.NO_BACKSLASH_ESCAPES,
    "ANSI_QUOTES,NO_BACKSLASH_ESCAPES": SqlMode.ANSI_QUOTES | SqlMode.NO_BACKSLASH_ESCAPES,
}


def text(dice: random.Random) -> str:
    if dice.random() < 0.5:
        atoms = dice.choices([*OPENS, *CLOSES, *CODE], k=dice.randint(1, 14))
    else:
        atoms = dice.choices([*OPENS, *CLOSES * 2, *CODE[:4] * 6], k=dice.randint(1, 9))
    return "SELECT 1" + "".join(atoms) + dice.choice(("", "\n+7"))


@pytest.mark.parametrize("mode", MODES)
def test_a_server_reads_the_resolved_text_as_the_one_that_it_was(server, mode):
    connection = root(server)
    version = server_version(server.version)
    dice = random.Random(SEED)
    run(connection, f"SET sql_mode = '{mode}'")
    changed = understood = 0
    for _ in range(TEXTS):
        sql = text(dice).encode()
        read = resolved(sql, MODES[mode], version)
        assert resolved(read, MODES[mode], version) == read
        if read != sql:
            changed += 1
            found = answers(connection, sql)
            assert answers(connection, read) == found, (sql, read)
            understood += not isinstance(found[-1], int)
    connection.close()
    assert changed > TEXTS // 3
    assert understood > TEXTS // 50


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
