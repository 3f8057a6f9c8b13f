"""Both command lines on a terminal, how clients log in, and clients that compress; for drivers see test_drivers.py."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import running
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml, user_toml
from tests.fixtures.streams import eventually, run, value
from tests.fixtures.terminal import OpenTerminal, Terminal
from tests.integration.conftest import SETTINGS, SharedCluster
from tests.proxy.certificates import write_certificate


pytestmark = pytest.mark.one_server

PROGRAMS = {"mariadb": "mariadb", "mysql": "/opt/mysql9/bin/mysql"}
PROMPT = r"(?:MySQL|MariaDB|mysql)[^\n]*> $"
OpenClient = Callable[..., Terminal]


@pytest.fixture(params=list(PROGRAMS))
def client(request: pytest.FixtureRequest, terminal: OpenTerminal) -> OpenClient:
    program = shutil.which(PROGRAMS[request.param])
    if program is None:
        pytest.skip(f"no {request.param} client on this machine")

    def client(port: int, *options: str, **more: Any) -> Terminal:
        opened = terminal(port, *options, program=program, **more)
        opened.expect(PROMPT)
        return opened

    return client


class TestCommandLines:
    def test_everyday_work(self, cluster, client, keyspace):
        shell = client(cluster.proxy.port, database=keyspace)
        joined = "SELECT * FROM customer a JOIN customer b ON a.name = b.name;"
        for line, *shown in (
            ("CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20));", r"Query OK, 0 rows affected"),
            ("INSERT INTO customer (id, name) VALUES (1, 'ann'), (4, 'ünal');", r"Query OK, 2 rows affected",
             r"Records: 2  Duplicates: 0  Warnings: 0"),
            ("SELECT name FROM customer WHERE id = 4;", r"\| ünal", r"1 row in set"),
            ("UPDATE customer SET name = 'bob' WHERE id = 1;", r"Rows matched: 1  Changed: 1  Warnings: 0"),
            ("BEGIN;", r"Query OK"),
            ("DELETE FROM customer;", r"2 rows affected"),
            ("ROLLBACK;", r"Query OK"),
            ("SELECT id FROM customer;", r"2 rows in set"),
            ("SELECT * FROM nosuch;" if keyspace == "plain" else joined, r"ERROR (1146 \(42S02\)|1235 \(42000\))"),
            ("SELECT CAST('1x' AS SIGNED);", r"1 row in set, 1 warning"),
            ("SHOW WARNINGS;", r"Truncated incorrect"),
            ("DESCRIBE customer;", r"bigint"),
            ("\\u plain", r"Database changed"),
            ("status;", r"Threads: \d+"),
            ("DROP TABLE IF EXISTS customer;", r"Query OK"),
            ("quit", r"Bye"),
        ):  # fmt: skip
            shell.type(line)
            for pattern in shown:
                shell.expect(pattern)

    @pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "compressed"])
    def test_a_stream_shows_rows_at_once_and_ctrl_c_ends_it(
        self, queue, client, request, is_compressed
    ):
        producer = queue.create()
        is_mariadb = request.node.callspec.params["client"] == "mariadb"
        _, option, *_ = COMPRESSING["mariadb" if is_mariadb else "mysql-zstd"]
        options = ["--quick", *[option] * is_compressed]
        shell = client(queue.proxy.port, *options, database=queue.keyspace)
        for turn in range(2):
            shell.type("STREAM id, tenant_id FROM my_message;")
            insert = f"INSERT INTO my_message (id, tenant_id) VALUES ({turn * 3 + 1}, 77{turn})"
            run(producer, insert)
            shell.expect(rf"\| +{turn * 3 + 1} +\| +77{turn} \|")
            shell.interrupt()
            shell.expect(r"ERROR 1317 \(70100\)|interrupted|aborted|killed")
            shell.expect(PROMPT)
            shell.type("SELECT 40 + 2;")
            shell.expect(r"\| +42 \|")
            shell.expect(PROMPT)
        # Nobody is sent anything any more.
        run(producer, "INSERT INTO my_message (id) VALUES (9)")
        assert value(producer, "SELECT epoch FROM my_message WHERE id = 9") == 0

    def test_ctrl_c_ends_a_statement_and_not_the_session(self, cluster, client):
        shell = client(cluster.proxy.port, database="plain")
        shell.type("SELECT SLEEP(600), 'interruptible';")
        eventually(lambda: running(cluster.servers[0], "'interruptible'"), "it runs")
        shell.interrupt()
        shell.expect(r"ERROR 1317|interrupted|aborted|killed|\| +1 \|")
        shell.expect(PROMPT)
        shell.type("SELECT 40 + 2;")
        shell.expect(r"\| +42 \|")


USERS = """
[server.tls]
cert = "server.pem"
key = "server.key"
[[users]]
name = "native"
account = "shared"
password_hash = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
"""
USERS += user_toml("clear", "sécret", account="shared")


# PASSWORD('secret') is the hash above.
NATIVE_PASSWORD = "secret"


@pytest.fixture
def guarded(start_proxy: StartProxy, cluster: SharedCluster, tmp_path: Path) -> RunningProxy:
    """A proxy with users and TLS, before the unsharded keyspace.

    Wrong passwords are answered at once, or how long that takes would be the back-off's time.
    """
    write_certificate(tmp_path)
    return start_proxy(
        SETTINGS
        + "auth_backoff = 0\n"
        + USERS
        + keyspace_toml("plain", cluster.servers[:1], cluster.databases["plain"])
    )


def logs_in(proxy: RunningProxy, user: str, password: str, **options: Any) -> bool:
    # As bytes: the driver takes text for latin1.
    options |= {"user": user, "password": password.encode(), "database": "plain"}
    try:
        connection = proxy.connect(**options)
    except pymysql.err.OperationalError as error:
        if error.args[0] != 1045:
            raise
        return False
    return bool(value(connection, "SELECT 1") == 1)


class TestLogins:
    def test_the_command_lines_log_in_with_and_without_tls(self, guarded, client, request):
        is_mysql = "mysql]" in request.node.name or "-mysql" in request.node.name
        without = "--ssl-mode=DISABLED" if is_mysql else "--skip-ssl"
        with_tls = "--ssl-mode=REQUIRED" if is_mysql else "--ssl"
        for option in (with_tls, without, with_tls):
            options = [option, f"--password={NATIVE_PASSWORD}"]
            if is_mysql:
                # Its own plugin, and the password the server must be given in full at first.
                options = [option, "--password=sécret", "--get-server-public-key"]
            shell = client(
                guarded.port, *options, database="plain", user="clear" if is_mysql else "native"
            )
            shell.type("SHOW STATUS LIKE 'Uptime';")
            shell.expect(r"Uptime")
            shell.type("\\s")
            found = shell.expect(r"SSL:\s+(\S[^\n]*)\n")[1]
            assert ("Not in use" in found) == (option == without), found
            shell.close()

    def test_no_secret_reaches_the_log(self, guarded: RunningProxy) -> None:
        logs_in(guarded, "clear", "sécret", ssl_disabled=True)
        logs_in(guarded, "clear", "tried-this", ssl_disabled=True)
        log = guarded.log()
        assert not re.search("sécret|s\\\\u00e9cret|tried-this|14E65567", log)
        assert "Access denied for user 'clear'" in log

    def test_without_users_root_enters_from_this_machine_and_the_log_says_so(self, cluster):
        assert "no [[users]] in the configuration" in cluster.proxy.log()
        with pytest.raises(pymysql.MySQLError, match="Access denied"):
            cluster.proxy.connect(user="app")
        with pytest.raises(pymysql.MySQLError, match="Access denied"):
            cluster.proxy.connect(user="root", password="x")


MYSQL, MARIADB = PROGRAMS["mysql"], PROGRAMS["mariadb"]
COMPRESSING = {
    "mysql-zlib": (MYSQL, "--compression-algorithms=zlib"),
    "mysql-zstd": (MYSQL, "--compression-algorithms=zstd", "--zstd-compression-level=19"),
    "mysql-either": (MYSQL, "--compression-algorithms=zstd,zlib"),
    "mariadb": (MARIADB, "--compress"),
}
Shell = Callable[..., str]


@pytest.fixture(params=list(COMPRESSING))
def command(request: pytest.FixtureRequest) -> list[str]:
    """The command line of a client that compresses."""
    program, *options = COMPRESSING[request.param]
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program} client on this machine")
    return [found, "-h127.0.0.1", "-uroot", *options]


@pytest.fixture
def shell(cluster: SharedCluster, command: list[str]) -> Shell:
    """A function that runs SQL in a client and returns what it prints."""

    def shell(sql: str, *options: str, proxy: RunningProxy | None = None) -> str:
        port = (proxy or cluster.proxy).port
        return finished(
            [*command, f"-P{port}", *options, "plain"], input=sql, check=True
        ).stdout

    return shell


class TestCompression:
    def test_small_and_large_answers_are_those_of_the_server(self, cluster, shell):
        sql = "SELECT 1; SELECT REPEAT('streamfrom ', 300000); SELECT SHA2(1, 512);"
        expected = ["1", "streamfrom " * 300_000, hashlib.sha512(b"1").hexdigest()]
        assert shell(sql, "-N").splitlines() == expected

    def test_a_large_statement_arrives_whole(self, cluster, shell):
        run(cluster.proxy.connect(database="plain"), "CREATE TABLE large (body LONGTEXT)")
        # Hardly to be compressed, and far beyond one piece.
        noise = "".join(hashlib.sha512(b"%d" % n).hexdigest() for n in range(20_000))
        shell(f"INSERT INTO large VALUES ('{noise}');", "--max-allowed-packet=64M")
        (found,) = cluster.direct("SELECT SHA2(body, 256), LENGTH(body) FROM large")
        assert found == (hashlib.sha256(noise.encode()).hexdigest(), len(noise))

    def test_a_file_is_loaded(self, cluster, shell, tmp_path):
        run(cluster.proxy.connect(database="plain"), "CREATE TABLE filled (n INT, name TEXT)")
        file = tmp_path / "rows.tsv"
        file.write_text("".join(f"{n}\tthe same in every line\n" for n in range(100_000)))
        sql = (
            f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled;"
            " SELECT COUNT(*), SUM(n), COUNT(DISTINCT name) FROM filled;"
        )
        ((before,),) = cluster.direct("SELECT @@global.local_infile")
        cluster.direct("SET GLOBAL local_infile = ON")
        try:
            found = shell(sql, "-N", "--local-infile=1").split()
        finally:
            cluster.direct(f"SET GLOBAL local_infile = {before}")
        assert found == ["100000", "4999950000", "1"]

    def test_inside_tls(self, cluster, shell, command, start_proxy, tmp_path):
        write_certificate(tmp_path)
        proxy = start_proxy(
            SETTINGS
            + '[server.tls]\ncert = "server.pem"\nkey = "server.key"\n'
            + keyspace_toml("plain", cluster.servers[:1], cluster.databases["plain"])
        )
        tls = ["--ssl-mode=REQUIRED"] if "mysql9" in command[0] else ["--ssl"]
        told = shell("SELECT REPEAT('x', 100000);", "-N", *tls, proxy=proxy)
        assert told.strip() == "x" * 100_000
