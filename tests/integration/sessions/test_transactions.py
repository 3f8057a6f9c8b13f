"""Transactions on one shard and on several end as a whole, or say what did not; answers and flags are those of a server.

`WALK_SEED` and `WALKS` choose other random walks over statements of transactions, and more of them.
"""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.constants import Status
from tests.cases import in_turn
from tests.fixtures.background import in_thread, running
from tests.fixtures.database_servers import execute, root
from tests.fixtures.running_proxy import keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import HIGH_IDS, LOW_IDS, VSCHEMA
from tests.integration.sessions.crowd import HIGH, LOW, crowd


def ids(servers: Any, database: str) -> list[list[int]]:
    return [
        [ident for (ident,) in execute(server, f"SELECT id FROM {database}.customer")]
        for server in servers
    ]


class TestTransactions:
    @pytest.mark.parametrize("way", ["BEGIN", "START TRANSACTION", "autocommit"])
    @pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
    def test_on_several_shards(self, tight, servers, sharded_database, way, end):
        client = tight.connect(database="commerce", autocommit=way != "autocommit")
        if way != "autocommit":
            run(client, way)
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
        assert ids(servers, sharded_database) == [[], []]
        assert len(rows(client, "SELECT id FROM customer")) == 2
        run(client, end)
        expected = [[LOW], [HIGH]] if end == "COMMIT" else [[], []]
        assert ids(servers, sharded_database) == expected
        # Nothing is open any more: another client may have the connections.
        for other in crowd(tight, 4, database="commerce"):
            assert len(rows(other, "SELECT id FROM customer")) == sum(map(len, expected))

    @pytest.mark.parametrize(
        "what", ["SET autocommit = 1", "CREATE TABLE other (id INT)", "BEGIN"]
    )
    def test_implicit_commits_are_everywhere(self, tight, servers, sharded_database, what):
        client = tight.connect(database="commerce")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
        run(client, what)
        assert ids(servers, sharded_database) == [[LOW], [HIGH]]

    def test_a_client_that_leaves_rolls_back_everywhere(self, tight, servers, sharded_database):
        client = tight.connect(database="commerce")
        run(client, f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})")
        client.close()
        other = tight.connect(database="commerce", autocommit=True)
        run(other, f"INSERT INTO customer (id) VALUES ({LOW}), ({HIGH})")
        assert ids(servers, sharded_database) == [[LOW], [HIGH]]

    def test_a_deadlock_rolls_back_everywhere(self, tight, servers):
        setup = tight.connect(database="commerce", autocommit=True)
        run(setup, "INSERT INTO customer (id, n) VALUES (1, 0), (2, 0), (4, 0)")
        first, second = crowd(tight, 2, database="commerce", autocommit=False)
        run(first, "UPDATE customer SET n = 1 WHERE id = 4")
        run(first, "UPDATE customer SET n = 1 WHERE id = 1")
        for ident in range(100, 130):
            # The one that has changed less is the victim.
            run(second, f"INSERT IGNORE INTO customer (id) VALUES ({ident})")
        run(second, "UPDATE customer SET n = 2 WHERE id = 2")
        waiting = in_thread(lambda: run(second, "UPDATE customer SET n = 2 WHERE id = 1"))
        eventually(lambda: running(servers[0], "n = 2 WHERE id = 1"), "the second waits")
        code, _ = refused(first, "UPDATE customer SET n = 1 WHERE id = 2")
        assert code == 1213
        assert waiting() == 1
        # What the first did on the other shard is gone too, whatever it says now.
        try:
            first.commit()
        except pymysql.MySQLError:
            first.rollback()
        second.commit()
        assert rows(setup, "SELECT n FROM customer WHERE id = 4") == ((0,),)
        assert rows(setup, "SELECT n FROM customer WHERE id = 1") == ((2,),)
        run(first, "UPDATE customer SET n = 3 WHERE id = 4")
        first.commit()
        assert rows(setup, "SELECT n FROM customer WHERE id = 4") == ((3,),)

    @pytest.mark.parametrize("way", ["BEGIN", "SET autocommit = 0"])
    @pytest.mark.parametrize("mode", ["READ ONLY", "ISOLATION LEVEL READ UNCOMMITTED"])
    def test_a_mode_of_the_session_counts_from_the_next_one_on(self, tight, way, mode):
        client, other = crowd(tight, 2, database="commerce", autocommit=True)
        run(other, f"INSERT INTO customer (id, n) VALUES ({HIGH}, 1)")
        run(client, way)
        run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
        run(client, f"SET SESSION TRANSACTION {mode}")
        run(other, "BEGIN")
        run(other, f"UPDATE customer SET n = 2 WHERE id = {HIGH}")
        # The second shard joins only now.
        assert value(client, f"SELECT n FROM customer WHERE id = {HIGH}") == 1
        run(other, "COMMIT")
        run(client, f"DELETE FROM customer WHERE id = {HIGH}")
        run(client, "COMMIT")
        run(client, "BEGIN")
        run(other, "BEGIN")
        run(other, f"INSERT INTO customer (id) VALUES ({HIGH})")
        seen = rows(client, f"SELECT id FROM customer WHERE id IN ({LOW}, {HIGH})")
        assert len(seen) == (1 if mode == "READ ONLY" else 2)
        if mode == "READ ONLY":
            assert refused(client, f"DELETE FROM customer WHERE id = {LOW}")[0] == 1792


def is_stopped(process: int) -> bool:
    """Return whether no thread of *process* runs any more, some time after a SIGSTOP."""
    stats = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


@pytest.mark.slow
def test_a_partial_commit_says_so(start_proxy, breakable_servers, breakable_database, tmp_path):
    path = write_vschema(tmp_path, VSCHEMA)
    proxy = start_proxy(keyspace_toml("commerce", breakable_servers, breakable_database, path))
    setup = proxy.connect(database="commerce", autocommit=True)
    run(setup, "CREATE TABLE customer (id BIGINT PRIMARY KEY)")
    client = proxy.connect(database="commerce")
    run(client, f"INSERT INTO customer (id) VALUES ({LOW})")
    run(client, f"INSERT INTO customer (id) VALUES ({HIGH})")
    # The second server stops answering; it dies while its COMMIT is under way.
    second = breakable_servers[1]
    process = second.pid
    os.kill(process, signal.SIGSTOP)
    eventually(lambda: is_stopped(process), "each thread of the second has stopped")
    outcome = in_thread(lambda: refused(client, "COMMIT"))
    eventually(
        lambda: execute(breakable_servers[0], f"SELECT id FROM {breakable_database}.customer"),
        "the first has committed",
    )
    os.kill(process, signal.SIGKILL)
    code, text = outcome()
    assert code == 1105
    assert text.startswith("partial commit: committed on commerce/-80; not on commerce/80- (")
    second.stop()
    second.start()
    client.rollback()
    assert rows(client, "SELECT id FROM customer") == ((LOW,),)


class TestCompletion:
    """AND CHAIN, RELEASE and completion_type, as on one server."""

    @in_turn
    @pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
    @pytest.mark.parametrize("begun", [False, True])
    @pytest.mark.parametrize("by_variable", [False, True])
    def test_release_disconnects_the_client(self, cluster, keyspace, end, begun, by_variable):
        client, other = (
            cluster.proxy.connect(database=keyspace, autocommit=True) for _ in range(2)
        )
        run(other, "CREATE TABLE IF NOT EXISTS customer (id BIGINT PRIMARY KEY)")
        run(other, "DELETE FROM customer")
        if by_variable:
            run(client, "SET completion_type = 2")
            assert value(client, "SELECT @@completion_type") == "RELEASE"
        if begun:
            run(client, "BEGIN")
            for number in (LOW_IDS[0], HIGH_IDS[0]):
                run(client, f"INSERT INTO customer VALUES ({number})")
        run(client, end if by_variable else f"{end} RELEASE")
        with pytest.raises(pymysql.MySQLError) as caught:
            run(client, "SELECT 1")
        assert caught.value.args[0] in (2006, 2013)
        assert "during query" in str(caught.value), "closed, without a word of the proxy's"
        expected = 2 if begun and end == "COMMIT" else 0
        assert value(other, "SELECT COUNT(*) FROM customer") == expected


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
    body = "BEGIN START TRANSACTION; INSERT IGNORE INTO walked VALUES (77); END"
    for number, walk in enumerate(walks(family)):
        through = cluster.proxy.connect(database="plain", autocommit=True)
        direct = root(other, database=database, autocommit=True)
        for client in (through, direct):
            if not number:
                run(client, f"CREATE PROCEDURE walks() {body}")
            run(client, "DROP TABLE IF EXISTS walked, beside")
            run(client, "CREATE TABLE walked (a INT PRIMARY KEY)")
            run(client, "INSERT INTO walked VALUES (1), (2)")
        assert answers(through, walk, "plain") == answers(direct, walk, database)
        through.close()
        direct.close()
    execute(other, f"DROP DATABASE {database}")
    cluster.direct("DROP PROCEDURE walks")
