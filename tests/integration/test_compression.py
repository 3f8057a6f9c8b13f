"""Clients that compress: what comes back is what they get without, however it travels."""

import hashlib
import shutil
from collections.abc import Callable

import pytest

from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import run
from tests.integration.conftest import SETTINGS, SharedCluster
from tests.proxy.certificates import write_certificate


pytestmark = [pytest.mark.db, pytest.mark.one_server]

MYSQL, MARIADB = "/opt/mysql9/bin/mysql", "mariadb"
CLIENTS = {
    "mysql-zlib": (MYSQL, "--compression-algorithms=zlib"),
    "mysql-zstd": (MYSQL, "--compression-algorithms=zstd", "--zstd-compression-level=19"),
    "mysql-either": (MYSQL, "--compression-algorithms=zstd,zlib"),
    "mariadb": (MARIADB, "--compress"),
}

Shell = Callable[..., str]


@pytest.fixture(params=list(CLIENTS))
def command(request: pytest.FixtureRequest) -> list[str]:
    """The command line of a client that compresses."""
    program, *options = CLIENTS[request.param]
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


class TestCommandLines:
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


def test_a_stream_shows_rows_at_once(plain, command, terminal):
    producer = plain.create()
    program, *_, option = command
    shell = terminal(plain.proxy.port, option, "--quick", program=program, database="plain")
    shell.expect(r"> $")
    shell.type("STREAM id, tenant_id FROM my_message;")
    for turn in range(2):
        run(producer, f"INSERT INTO my_message (id, tenant_id) VALUES ({turn}, 77{turn})")
        shell.expect(rf"\| +{turn} +\| +77{turn} \|")
    shell.interrupt()
    shell.expect(r"> $")
