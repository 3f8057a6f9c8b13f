"""A server that takes no more connections: the error, the log and `check` name the shard and the limit."""

import json

import pymysql
import pytest

from tests.fixtures.database_servers import execute, fresh_database
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import rows, run


pytestmark = pytest.mark.db

ALLOWED = 15


@pytest.fixture
def small_server(breakable_servers):
    server = breakable_servers[0]
    ((before,),) = execute(server, "SELECT @@max_connections")
    execute(server, f"SET GLOBAL max_connections = {ALLOWED}")
    yield server
    execute(server, f"SET GLOBAL max_connections = {before}")


def test_a_full_server_is_named_in_the_error_the_log_and_the_status(small_server, start_proxy):
    databases = fresh_database(small_server)
    database = next(databases)
    proxy = start_proxy(keyspace_toml(database, [small_server]))
    watcher = proxy.connect(database=database, autocommit=True)
    run(watcher, "CREATE TABLE t (id INT)")
    clients = []

    def fill() -> None:
        for _ in range(ALLOWED + 2):
            clients.append(proxy.connect(database=database))
            run(clients[-1], "BEGIN")
            run(clients[-1], "INSERT INTO t VALUES (1)")

    with pytest.raises(pymysql.err.OperationalError) as caught:
        fill()
    code, sentence = caught.value.args
    assert code == 1040
    assert f"shard '-' of keyspace '{database}' takes no more connections" in sentence
    assert "max_connections of the server, not of the proxy" in sentence
    # This client has no connection to the server, and can get none.
    asked = "SELECT keyspace, pool_size, pool_in_use > 5, last_error FROM streamfrom.shards"
    assert rows(watcher, asked) == ((database, 32, 1, None),)
    (line,) = [
        line
        for line in map(json.loads, proxy.log().splitlines())
        if line["event"] == "the server takes no more connections"
    ]
    assert (line["keyspace"], line["shard"]) == (database, "-")
    assert line["server"] == f"127.0.0.1:{small_server.port}"
    for client in (*clients, watcher):
        client.close()
    proxy.close()
    next(databases, None)


def test_check_says_at_which_address_a_login_is_refused_and_why_it_may_be(
    small_server, tmp_path
):
    config = tmp_path / "streamfrom.toml"
    text = keyspace_toml("app", [small_server], "mysql").replace("root@", "stranger:wrong@")
    config.write_text(text)
    done = run_to_end(["check", "--config", str(config)], tmp_path)
    assert done.returncode == 1
    (error,) = [line for line in done.stdout.splitlines() if line.startswith("error")]
    assert f"at 127.0.0.1:{small_server.port}: Access denied for user 'stranger'" in error
    assert "DROP USER ''@'localhost'" in error


def test_check_says_that_a_server_offers_no_tls(mariadb, tmp_path):
    config = tmp_path / "streamfrom.toml"
    address = f"127.0.0.1:{mariadb.port}/mysql"
    text = keyspace_toml("app", [mariadb], "mysql")
    config.write_text(text.replace(address, f"{address}?ssl_mode=required"))
    done = run_to_end(["check", "--config", str(config)], tmp_path)
    assert done.returncode == 1
    assert "the server offers no TLS, and ssl_mode=required requires it" in done.stdout
    assert "WRONG_VERSION_NUMBER" not in done.stdout
