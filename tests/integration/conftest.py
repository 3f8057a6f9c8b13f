"""The proxy that most tests of this tier share: one a family, with two keyspaces.

`plain` is unsharded, `commerce` has the shards -80 and 80- and is sharded by the hash of id (the
tables of VSCHEMA). Both keyspaces have databases of another name, so that whoever mixes them up
is found out. A test's tables are dropped behind it, and a test during which the proxy logged an
internal error fails, whatever else it says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fixtures.database_servers import DatabaseServer, execute, free_port, names
from tests.fixtures.running_proxy import (
    RunningProxy,
    StartProxy,
    by_hash,
    keyspace_toml,
    proxies_of,
    write_vschema,
)
from tests.fixtures.streams import Consume, Consumer, message_table, run
from tests.integration import scatter


VSCHEMA = by_hash(
    my_message="id", other_message="id", customer="id", purchase="customer_id", item="id"
)
VSCHEMA["vindexes"]["binary_md5"] = {"type": "binary_md5"}
VSCHEMA["tables"]["named"] = {"column_vindexes": [{"column": "id", "name": "binary_md5"}]}
SETTINGS = """[server]
listen = "127.0.0.1:0"
schema_reload = 1
connect_timeout = 60
failover_buffer = 20
"""
# What the hash vindex says of small numbers.
LOW_IDS = (1, 2, 3, 5)  # shard -80
HIGH_IDS = (4, 6, 7, 8)  # shard 80-
DISPATCHED = "is dispatched from here"
FAULTS = ("internal error", "Traceback", "Exception in callback", "was never ")


def pytest_itemcollected(item):
    item.add_marker(pytest.mark.db)


@dataclass(frozen=True)
class SharedCluster:
    """The shared proxy and what stands behind it."""

    proxy: RunningProxy
    servers: tuple[DatabaseServer, DatabaseServer]
    databases: dict[str, str]

    def servers_of(self, keyspace: str) -> tuple[DatabaseServer, ...]:
        return self.servers[:1] if keyspace == "plain" else self.servers

    def direct(
        self, sql: str, *, keyspace: str = "plain", shard: int = 0
    ) -> tuple[tuple[Any, ...], ...]:
        """Run a statement on a shard's server itself, past the proxy."""
        server = self.servers_of(keyspace)[shard]
        return execute(server, sql, database=self.databases[keyspace])


@dataclass(frozen=True)
class Queue:
    """What a test does with `my_message` in one keyspace."""

    cluster: SharedCluster
    keyspace: str
    consume: Consume

    @property
    def proxy(self) -> RunningProxy:
        return self.cluster.proxy

    def create(self, name: str = "my_message", **options: Any) -> Any:
        connection = self.connect()
        run(connection, message_table(name, **options))
        return connection

    def connect(self, **options: Any) -> Any:
        return self.proxy.connect(**{"database": self.keyspace, "autocommit": True} | options)

    def stream(self, sql: str = "STREAM * FROM my_message") -> Consumer:
        return self.consume(self.proxy, sql, database=self.keyspace)


@pytest.fixture(scope="session")
def shared_cluster(server_pool, family, tmp_path_factory):
    servers = server_pool.server(family, 0), server_pool.server(family, 1)
    prefix = next(names)
    databases = {keyspace: f"{prefix}_{keyspace}" for keyspace in ("plain", "commerce")}
    for keyspace, database in databases.items():
        for server in servers[:1] if keyspace == "plain" else servers:
            execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    folder = tmp_path_factory.mktemp("cluster")
    vschema = write_vschema(folder, VSCHEMA)
    config = folder / "proxy.toml"
    config.write_text(
        SETTINGS
        + keyspace_toml("plain", servers[:1], databases["plain"])
        + keyspace_toml("commerce", servers, databases["commerce"], vschema)
    )
    proxy = RunningProxy(config)
    yield SharedCluster(proxy, servers, databases)
    proxy.close()


@pytest.fixture
def cluster(shared_cluster, request):
    """The shared proxy, for one test: its connections, tables and faults end with it."""
    proxy = shared_cluster.proxy
    assert proxy.process.poll() is None, f"the shared proxy ended:\n{proxy.log()[-5000:]}"
    request.node.stash[proxies_of] = [proxy]
    logged = len(proxy.log())
    yield shared_cluster
    proxy.disconnect()
    for keyspace in shared_cluster.databases:
        sql = "SET lock_wait_timeout = 60, foreign_key_checks = 0"
        connection = proxy.connect(database=keyspace, autocommit=True, init_command=sql)
        tables = {
            table
            for shard in range(len(shared_cluster.servers_of(keyspace)))
            for (table,) in shared_cluster.direct("SHOW TABLES", keyspace=keyspace, shard=shard)
        }
        for table in tables:
            # Who still holds a lock on it is a client that is gone, and that was forgotten.
            run(connection, f"DROP TABLE IF EXISTS `{table}`")
    proxy.disconnect()
    news = proxy.log()[logged:]
    assert not any(fault in news for fault in FAULTS), news


@pytest.fixture
def fleet(server, database, start_proxy):
    """A function that starts so many proxies of one fleet before `server`, of which the first dispatches."""
    config = keyspace_toml(database, [server]) + '[fleet]\nname = "shop"\n'

    def fleet(count: int = 2) -> list[RunningProxy]:
        first = start_proxy(config)
        first.wait_for_log(DISPATCHED)
        return [first, *(start_proxy(config) for _ in range(count - 1))]

    return fleet


class Lone:
    """A proxy that a test stops and starts again on one port, before an unsharded keyspace, `commerce`, whose server takes 1 MiB at once."""

    keyspace = "commerce"

    def __init__(self, server: DatabaseServer, database: str, start_proxy: StartProxy) -> None:
        self.port = free_port()
        self._server, self._database = server, database
        self._start_proxy = start_proxy
        self._config = f'[server]\nlisten = "127.0.0.1:{self.port}"\n' + keyspace_toml(
            self.keyspace, [server], database
        )
        self.start()

    def start(self) -> None:
        """Start it, after `proxy.stop()` or `proxy.kill()`."""
        self.proxy = self._start_proxy(self._config)

    def connect(self) -> Any:
        return self.proxy.connect(database=self.keyspace, autocommit=True)

    def direct(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        """Run a statement on the server itself, so also while the proxy is away."""
        return execute(self._server, sql, database=self._database)


@pytest.fixture
def lone(mariadb: DatabaseServer, start_proxy: StartProxy) -> Iterator[Lone]:
    database = next(names)
    execute(mariadb, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    ((limit,),) = execute(mariadb, "SELECT @@GLOBAL.max_allowed_packet")
    execute(mariadb, "SET GLOBAL max_allowed_packet = 1048576")
    yield Lone(mariadb, database, start_proxy)
    execute(mariadb, f"SET GLOBAL max_allowed_packet = {limit}")
    execute(mariadb, f"DROP DATABASE {database}")


@pytest.fixture(scope="session")
def compared_proxy(server_pool, family, tmp_path_factory):
    server, folder = server_pool.server(family, 0), tmp_path_factory.mktemp("compared")
    with scatter.compared_proxy(server, folder) as found:
        yield found


@pytest.fixture
def compared(compared_proxy, server, request):
    """The same tables in one database and over shards, to compare their answers byte by byte."""
    proxy, databases = compared_proxy
    request.node.stash[proxies_of] = [proxy]
    logged = len(proxy.log())
    made = scatter.ComparedCluster(server, proxy, databases[0], databases[1:])
    yield made
    made.close()
    news = proxy.log()[logged:]
    assert not any(fault in news for fault in FAULTS), news


@pytest.fixture(params=["plain", "commerce"], ids=["unsharded", "sharded"])
def keyspace(request: pytest.FixtureRequest) -> str:
    """Both keyspaces in turn, for what is the same with one shard and with two."""
    return str(request.param)


@pytest.fixture
def client(cluster: SharedCluster, keyspace: str) -> Any:
    """A client of each keyspace in turn."""
    return cluster.proxy.connect(database=keyspace, autocommit=True)


@pytest.fixture
def queue(cluster: SharedCluster, keyspace: str, consume: Consume) -> Queue:
    return Queue(cluster, keyspace, consume)


@pytest.fixture
def plain(cluster: SharedCluster, consume: Consume) -> Queue:
    return Queue(cluster, "plain", consume)


@pytest.fixture
def sharded(cluster: SharedCluster, consume: Consume) -> Queue:
    return Queue(cluster, "commerce", consume)
