"""The servers' own tools through the proxy: dumps and restores, mysqlimport, mysqlslap, sysbench.

Each as it is shipped, MariaDB's before MariaDB and MySQL's before MySQL; see docs/drivers.md. What one
shard alone can promise is refused over several, by name, and a refused dump ends with an error.
"""

import os
import re
import shutil
import subprocess
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.programs import finished
from tests.fixtures.streams import rows, run
from tests.integration import toolchains
from tests.integration.conftest import SharedCluster


# Where servers are unpacked that no package installs.
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/opt/mysql9/bin"))
NAMES = {
    Family.MARIADB: ("mariadb-{}", "mariadb", "10.11", ()),
    Family.MYSQL: ("mysql{}", "mysql", "9.", ("--ssl-mode=DISABLED",)),
}
TABLE = (
    "CREATE TABLE shelf (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), body BLOB)"
    " CHARACTER SET utf8mb4"
)
ROWS = ((1, "it's", b"\x00\xff'\\"), (2, None, None), (3, "ü🎉", b""))
TRANSACTIONS = re.compile(r"transactions: +(\d+)")
IGNORED = re.compile(r"ignored errors: +(\d+)")


class Tools:
    def __init__(self, family: Family, port: int, direct_port: int) -> None:
        self._family = family
        self._port = port
        self._direct_port = direct_port

    def program(self, name: str) -> list[str]:
        """Return the command of a tool: dump, import, slap, or "" for the command line."""
        pattern, plain, version, options = NAMES[self._family]
        wanted = pattern.format(name) if name else plain
        for place in PLACES.split(os.pathsep):
            found = shutil.which(wanted, path=place)
            if found is not None:
                asked = [found, "--version"]
                told = finished(asked).stdout
                # Debian calls MariaDB's tools by MySQL's names as well.
                if self._family is Family.MARIADB or "MariaDB" not in told:
                    return [found, "--host=127.0.0.1", "--user=root", *options]
        pytest.skip(f"no {wanted} for {self._family} {version} on this machine")

    def run(
        self, name: str, *options: str, text: str = "", direct: bool = False
    ) -> subprocess.CompletedProcess[str]:
        port = self._direct_port if direct else self._port
        return finished(
            [*self.program(name), f"--port={port}", *options],
            input=text,
            errors="surrogateescape",
        )

    def try_dump(self, *options: str, direct: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a dump, without what would stop all of a server for its GTIDs."""
        gtids = ("--set-gtid-purged=OFF",) if self._family is Family.MYSQL else ()
        return self.run("dump", *gtids, *options, direct=direct)

    def dump(self, *options: str, direct: bool = False) -> str:
        done = self.try_dump(*options, direct=direct)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def restore(self, text: str, database: str, *, direct: bool = False) -> None:
        options = ("--default-character-set=utf8mb4", database)
        done = self.run("", *options, text=text, direct=direct)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def tools(cluster: SharedCluster, family: Family) -> Tools:
    return Tools(family, cluster.proxy.port, cluster.servers[0].port)


@pytest.fixture
def plain(cluster: SharedCluster) -> Any:
    """A client of the unsharded keyspace, which has a table, a view, a trigger and a routine."""
    connection = cluster.proxy.connect(database="plain", autocommit=True, charset="utf8mb4")
    run(connection, TABLE)
    run(connection, "CREATE TABLE noted (id INT)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO shelf VALUES (%s, %s, %s)", ROWS)
    run(connection, "CREATE VIEW titles AS SELECT id, name FROM shelf")
    run(connection, "CREATE TRIGGER note AFTER INSERT ON shelf FOR EACH ROW"
        " INSERT INTO noted VALUES (NEW.id)")  # fmt: skip
    run(connection, "CREATE PROCEDURE counted() SELECT COUNT(*) FROM shelf")
    yield connection
    run(connection, "DROP PROCEDURE IF EXISTS counted")
    run(connection, "DROP VIEW IF EXISTS titles")


def without_comments(dump: str) -> list[str]:
    return [line for line in dump.splitlines() if not line.startswith("--")]


def test_a_dump_through_the_proxy_is_the_servers_and_comes_back_whole(cluster, plain, tools):
    options = ("--single-transaction", "--routines", "--triggers", "--hex-blob")
    dump = tools.dump(*options, "plain")
    database = cluster.databases["plain"]
    direct = tools.dump(*options, database, direct=True)
    assert without_comments(dump) == without_comments(direct)
    assert "PROCEDURE" in dump
    assert "note" in dump

    run(plain, "DROP TABLE shelf")
    run(plain, "DROP VIEW titles")
    run(plain, "DROP PROCEDURE counted")
    tools.restore(dump, "plain")
    assert rows(plain, "SELECT * FROM shelf ORDER BY id") == ROWS
    assert rows(plain, "SELECT COUNT(*) FROM titles") == ((3,),)
    assert rows(plain, "CALL counted()") == ((3,),)
    run(plain, "INSERT INTO shelf VALUES (9, 'x', NULL)")
    assert rows(plain, "SELECT id FROM noted") == ((9,),)


@pytest.fixture
def customers(cluster: SharedCluster) -> Any:
    """A client of the sharded keyspace, with rows on both shards."""
    connection = cluster.proxy.connect(database="commerce", autocommit=True)
    run(connection, "CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20))")
    run(connection, "INSERT INTO customer (id, name) VALUES (1,'a'), (2,'b'), (4,'d'), (6,'f')")
    return connection


def test_a_sharded_keyspace_is_dumped_and_restored_without_locks(customers: Any, tools: Tools):
    before = rows(customers, "SELECT * FROM customer ORDER BY id")
    options = ("--skip-lock-tables", "--skip-add-locks", "commerce")
    dump = tools.dump(*options)
    run(customers, "DROP TABLE customer")
    tools.restore(dump, "commerce")
    assert rows(customers, "SELECT * FROM customer ORDER BY id") == before


def test_what_locks_or_freezes_all_shards_is_refused_and_one_shard_is_not(customers, tools):
    for option, told in (
        ("--lock-tables", "unsupported: LOCK"),
        ("--single-transaction", "CONSISTENT SNAPSHOT over several shards"),
    ):
        done = tools.try_dump(option, "commerce")
        assert (done.returncode != 0, told in done.stderr) == (True, True), done.stderr
    assert "(4,'d')" in tools.dump("--single-transaction", "commerce:80-")
    assert "(1,'a')" in tools.dump("commerce:-80")


def test_import_loads_a_file_into_one_shard(cluster, plain, tools, tmp_path):
    cluster.direct("SET GLOBAL local_infile = 1")
    data = tmp_path / "noted.txt"
    data.write_text("7\n8\n")
    done = tools.run("import", "--local", "plain", str(data))
    assert done.returncode == 0, done.stderr
    assert rows(plain, "SELECT id FROM noted ORDER BY id") == ((7,), (8,))


def test_slap_runs_its_own_load(plain: Any, tools: Tools):
    run(plain, "INSERT INTO noted VALUES (1)")
    query = "INSERT INTO noted SELECT 2 FROM noted LIMIT 1; SELECT COUNT(*) FROM noted"
    done = tools.run(
        "slap",
        "--create-schema=plain",
        "--no-drop",
        f"--query={query}",
        "--delimiter=;",
        "--concurrency=4",
        "--number-of-queries=80",
    )
    assert (done.returncode, done.stderr.strip()) == (0, ""), done.stderr
    assert rows(plain, "SELECT COUNT(*) FROM noted") == ((41,),)


@pytest.mark.parametrize("mode", ["disable", "auto"], ids=["text", "prepared"])
def test_sysbench_reads_and_writes_without_an_error(cluster, family, mode):
    if not toolchains.EVERYTHING and (mode == "auto") != (family is Family.MYSQL):
        pytest.skip("the other server's way; DRIVERS=all tries both")
    command = [
        toolchains.program("sysbench"),
        "oltp_read_write",
        "--db-driver=mysql",
        "--mysql-host=127.0.0.1",
        f"--mysql-port={cluster.proxy.port}",
        "--mysql-user=root",
        "--mysql-db=plain",
        "--mysql-ssl=off",
        f"--db-ps-mode={mode}",
        "--tables=1",
        "--table-size=1000",
        "--threads=1",  # several would meet deadlocks, which are the server's
        "--time=2",
    ]
    told = ""
    for step in ("prepare", "run", "cleanup"):
        done = finished([*command, step])
        assert done.returncode == 0, done.stdout + done.stderr
        told += done.stdout
    assert int(TRANSACTIONS.findall(told)[0]) > 0
    assert IGNORED.findall(told) == ["0"], told
