"""Reads from a real replica: near its primary it answers, behind it or stopped it does not."""

from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer, Family, find_server
from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import IN_HASTE, execute
from tests.fixtures.running_proxy import RunningProxy, StartProxy
from tests.fixtures.streams import eventually, refused, refuses, rows, run, tried, value


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    program = find_server(Family.MARIADB)
    if program is None:
        pytest.skip("no MariaDB here")
    folder = tmp_path_factory.mktemp("replication")
    primary = EmbeddedServer(
        folder / "primary",
        program=program,
        options=(*IN_HASTE, "--log-bin=binlog", "--server-id=1"),
    )
    replica = EmbeddedServer(
        folder / "replica",
        program=program,
        options=(*IN_HASTE, "--server-id=2", "--read-only=1", "--relay-log=relay"),
    )
    with primary, replica:
        execute(primary, "CREATE USER repl@'%' IDENTIFIED BY 'secret'")
        execute(primary, "GRANT REPLICATION SLAVE ON *.* TO repl@'%'")
        execute(primary, "CREATE DATABASE shop")
        execute(
            replica,
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port},"
            " MASTER_USER='repl', MASTER_PASSWORD='secret', MASTER_USE_GTID=slave_pos",
        )
        execute(replica, "START SLAVE")
        yield primary, replica


def config_of(pair: tuple[EmbeddedServer, EmbeddedServer]) -> str:
    primary, replica = (f"mysql://root@127.0.0.1:{server.port}/shop" for server in pair)
    return (
        '[server]\nlisten = "127.0.0.1:0"\nreplica_max_lag = 5\nfailover_buffer = 1\n'
        "[keyspaces.shop]\n[[keyspaces.shop.shards]]\n"
        f'name = "0"\nprimary = "{primary}"\nreplicas = ["{replica}"]\n'
    )


@pytest.fixture
def proxy(pair: tuple[EmbeddedServer, EmbeddedServer], start_proxy: StartProxy) -> RunningProxy:
    proxy = start_proxy(config_of(pair))
    eventually(lambda: execute(pair[1], "SHOW DATABASES LIKE 'shop'"))
    return proxy


# What proxies have connections for; those of the test's own `execute` have no database.
RUNNING = "SELECT id FROM information_schema.processlist WHERE db = 'shop' AND user = 'root'"


def can_use(client: Any, target: str) -> bool:
    is_there = tried(client, f"USE `{target}`") is not None
    return is_there and tried(client, "SELECT @@server_id") == ((2,),)


def tablets(client: Any) -> list[tuple[str, str]]:
    return [(row[3], row[4]) for row in rows(client, "SHOW VITESS_TABLETS")]


def test_a_replica_answers_reads_and_refuses_writes(pair, proxy):
    _, replica = pair
    client = proxy.connect(autocommit=True)
    eventually(lambda: can_use(client, "shop@replica"))
    writer = proxy.connect(database="shop@primary", autocommit=True)
    run(writer, "CREATE TABLE item (id INT PRIMARY KEY)")
    run(writer, "INSERT INTO item VALUES (1), (2)")
    assert value(writer, "SELECT @@server_id") == 1
    eventually(lambda: len(rows(client, "SHOW TABLES LIKE 'item'")) == 1)
    eventually(lambda: rows(client, "SELECT id FROM item ORDER BY id") == ((1,), (2,)))
    assert value(writer, "SELECT @@server_id FROM `shop:0@replica`.item LIMIT 1") == 2
    assert value(client, "SELECT DATABASE()") == "shop@replica"
    described = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop@replica'"
    )
    assert ("item",) in rows(client, described)
    run(client, "BEGIN")
    assert value(client, "SELECT COUNT(*) FROM item") == 2
    run(client, "COMMIT")
    for verb in (
        "INSERT INTO item VALUES (3)",
        "DROP TABLE item",
        "SET GLOBAL max_connections = 10",
    ):
        refuses(client, verb, 1874, f"{verb.split()[0]} statement with a replica target")
    refuses(client, "STREAM * FROM item", 1105, "only for primary tablet type")

    # Stopped, it is not read from, by sessions old and new; then it is again.
    serving = [("PRIMARY", "SERVING"), ("REPLICA", "SERVING")]
    eventually(lambda: tablets(writer) == serving)
    execute(replica, "STOP SLAVE")
    eventually(lambda: not can_use(proxy.connect(autocommit=True), "shop@replica"))
    stopped = [("PRIMARY", "SERVING"), ("REPLICA", "NOT_SERVING")]
    eventually(lambda: tablets(writer) == stopped)
    code, sentence = refused(client, "SELECT * FROM item")
    assert code == 1105
    assert sentence.startswith(
        'no healthy tablet available for \'keyspace:"shop" shard:"0" tablet_type:REPLICA\': '
    )
    assert "replication is not running" in sentence
    run(client, "USE `@primary`")
    assert value(client, "SELECT @@server_id") == 1
    assert rows(writer, "SELECT id FROM item ORDER BY id") == ((1,), (2,))
    execute(replica, "START SLAVE")
    eventually(lambda: can_use(client, "shop@replica"))
    run(writer, "DROP TABLE item")


def test_replicas_come_and_go_when_the_configuration_is_read_again(pair, start_proxy):
    text = config_of(pair)
    (line,) = [line for line in text.splitlines() if line.startswith("replicas")]
    without = text.replace(line, "replicas = []")
    proxy = start_proxy(without)
    client = proxy.connect(autocommit=True)
    refuses(client, "USE `shop@replica`", 1105, "there is none")

    proxy.reload(text)
    eventually(lambda: can_use(client, "shop@replica"))
    reading = proxy.connect(database="shop@replica", autocommit=True)
    answer = in_thread(lambda: rows(reading, "SELECT SLEEP(1), @@server_id"))
    eventually(lambda: execute(pair[1], f"{RUNNING} AND info LIKE '%SLEEP%'"), "it runs")
    proxy.reload(without)
    assert answer() == ((0, 2),), "what is under way may end"
    refuses(client, "SELECT @@server_id", 1105, "there is none")
    run(client, "USE shop")
    assert value(client, "SELECT @@server_id") == 1
    eventually(lambda: not execute(pair[1], RUNNING), "its connections are closed")


def test_an_own_account_reads_from_a_replica_as_itself(pair, start_proxy):
    primary, _ = pair
    execute(primary, "CREATE TABLE secrets (id INT PRIMARY KEY, secret INT)", database="shop")
    execute(primary, "CREATE USER ann@'%' IDENTIFIED BY 'x'")
    execute(primary, "GRANT SELECT (id) ON shop.secrets TO ann@'%'")
    proxy = start_proxy(config_of(pair) + '[[users]]\nname = "ann"\npassword = "x"\n')
    try:
        ann = proxy.connect(user="ann", password="x", autocommit=True)
        eventually(lambda: can_use(ann, "shop@replica"))
        sql = "SELECT secret FROM secrets"
        eventually(lambda: refused(ann, sql)[0] == 1143)
        assert rows(ann, "SELECT id FROM secrets") == ()
        assert value(ann, "SELECT CURRENT_USER()") == "ann@%"
        execute(primary, "GRANT SELECT ON shop.secrets TO ann@'%'")
        eventually(lambda: tried(ann, sql) is not None)
    finally:
        execute(primary, "DROP TABLE shop.secrets")
        execute(primary, "DROP USER ann@'%'")
