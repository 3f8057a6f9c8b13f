"""Random walks over statements of transactions: answers and status flags are those of the server itself.

`WALK_SEED` and `WALKS` choose others and more of them.
"""

import os
import random
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.constants import Status
from tests.fixtures.database_servers import execute, root
from tests.fixtures.streams import run


pytestmark = pytest.mark.db

SEED = int(os.environ.get("WALK_SEED", "1"))
WALKS = int(os.environ.get("WALKS", "40"))
SEEN = Status.IN_TRANS | Status.AUTOCOMMIT | Status.IN_TRANS_READONLY
STATEMENTS = [
    *["BEGIN", "START TRANSACTION READ ONLY", "START TRANSACTION READ WRITE", "COMMIT"],
    *["START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT AND CHAIN", "ROLLBACK"],
    *["ROLLBACK AND CHAIN", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b"],
    *["RELEASE SAVEPOINT a", *["SET autocommit = 0", "SET autocommit = 1"] * 2],
    *["SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "SET completion_type = 1"],
    *["SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET completion_type = 0"],
    *["SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE"],
    *["XA START '{n}'", "XA END '{n}'", "XA COMMIT '{n}' ONE PHASE", "XA ROLLBACK '{n}'"],
    *["LOCK TABLES walked WRITE", "LOCK TABLES walked READ", "UNLOCK TABLES"],
    *["HANDLER walked OPEN", "HANDLER walked READ FIRST", "HANDLER walked CLOSE"],
    *["CREATE TEMPORARY TABLE IF NOT EXISTS passing (a INT)", "CALL walks()", "DO 1"],
    *["CREATE TABLE IF NOT EXISTS beside (a INT)", "ALTER TABLE walked COMMENT 'x'"],
    *["INSERT INTO walked VALUES ({i})"] * 3,
    *["INSERT INTO walked VALUES (1)", "SELECT * FROM walked ORDER BY a", "SELECT 1"],
    *["UPDATE walked SET a = a + 100 WHERE a > 50", "DELETE FROM walked WHERE a > 20"],
    *["SELECT * FROM walked LIMIT 1 FOR UPDATE", "SELECT * FROM missing", "SET @a = 1"],
    *["TRUNCATE walked", "SELECT @@autocommit"],
]
# Found by walks, and by others.
KNOWN = [
    # What commits is refused (1399), and the transaction goes on.
    "XA START '{n}'; INSERT INTO walked VALUES (3); BEGIN; CREATE TABLE beside (a INT); TRUNCATE walked; COMMIT AND CHAIN;"
    " LOCK TABLES walked WRITE; XA START 'other'; SAVEPOINT a; XA END '{n}'; ROLLBACK; BEGIN; XA COMMIT '{n}' ONE PHASE",
    "SET autocommit = 0; SAVEPOINT a; XA START '{n}'; XA END '{n}'; XA ROLLBACK '{n}'",
    "SET autocommit = 0; SAVEPOINT a; RELEASE SAVEPOINT a; XA START '{n}'; XA END '{n}'; XA ROLLBACK '{n}'",
    "SET autocommit = 0; SAVEPOINT a; ROLLBACK TO a; SAVEPOINT b; ROLLBACK TO a; ROLLBACK TO b",
    "SET autocommit = 0; SAVEPOINT a; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT 1",
    "SET autocommit = 0; SAVEPOINT a; INSERT INTO walked VALUES (3); ROLLBACK TO a; COMMIT; SELECT * FROM walked",
    "SET autocommit = 0; SAVEPOINT a; COMMIT; ROLLBACK TO a",
    "SET autocommit = 0; SAVEPOINT a; SET autocommit = 1; ROLLBACK TO a",
    "SET autocommit = 0; START TRANSACTION READ ONLY; SET autocommit = 1; ROLLBACK; INSERT INTO walked VALUES (3)",
    "START TRANSACTION READ ONLY; SAVEPOINT a; USE {database}; INSERT INTO walked VALUES (3)",
    "SET SESSION TRANSACTION READ ONLY; START TRANSACTION; SAVEPOINT a; COMMIT AND CHAIN; SELECT 1",
    "LOCK TABLES walked READ; HANDLER walked CLOSE; HANDLER walked OPEN; UNLOCK TABLES",
    "LOCK TABLES walked WRITE; HANDLER walked OPEN; HANDLER walked CLOSE; UNLOCK TABLES",
    "SET autocommit = 0; CREATE TEMPORARY TABLE passing (a INT); SELECT 1; COMMIT",
]


def answers(client: Any, walk: list[str], database: str) -> list[Any]:
    found: list[Any] = []
    with client.cursor() as cursor:
        for sql in walk:
            try:
                cursor.execute(sql.replace("{database}", database))
            except pymysql.MySQLError as error:
                # The server's words of syntax and of accounts differ.
                found.append((sql, error.args[0]))
                continue
            rows, result = cursor.fetchall(), cursor._result
            found.append((sql, rows, result.affected_rows, (result.server_status or 0) & SEEN))
            while cursor.nextset():
                pass
    return found


def is_stuck(walk: list[str]) -> bool:
    """Return whether a server may refuse writes behind SET autocommit = 1 until a COMMIT comes; the proxy sends one before."""
    return "SET autocommit = 1" in walk and any("READ ONLY" in sql for sql in walk)


def walks(family: Family) -> list[list[str]]:
    dice = random.Random(f"{SEED} {family}")
    texts = [sql.split("; ") for sql in KNOWN]
    found = (dice.choices(STATEMENTS, k=dice.randrange(3, 14)) for _ in range(WALKS))
    texts += [walk for walk in found if not is_stuck(walk)]
    return [
        [
            sql.replace("{n}", f"walk{n}").replace("{i}", f"{dice.randrange(1, 60)}")
            for sql in text
        ]
        for n, text in enumerate(texts)
    ]


def test_answers_are_those_of_the_server(cluster, family, database):
    other = cluster.servers[1]
    # Another server, as the names of XA transactions and the locks of a server are for all of its clients.
    execute(other, f"CREATE DATABASE IF NOT EXISTS {database}")
    for walk in walks(family):
        through = cluster.proxy.connect(database="plain", autocommit=True)
        direct = root(other, database=database, autocommit=True)
        for client in (through, direct):
            run(client, "DROP TABLE IF EXISTS walked, beside")
            run(client, "CREATE TABLE walked (a INT PRIMARY KEY)")
            run(client, "INSERT INTO walked VALUES (1), (2)")
            run(client, "DROP PROCEDURE IF EXISTS walks")
            run(
                client,
                "CREATE PROCEDURE walks() BEGIN START TRANSACTION;"
                " INSERT IGNORE INTO walked VALUES (77); END",
            )
        assert answers(through, walk, "plain") == answers(direct, walk, database)
        through.close()
        direct.close()
    execute(other, f"DROP DATABASE {database}")
