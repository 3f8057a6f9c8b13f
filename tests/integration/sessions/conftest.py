"""A proxy with two connections to each server, where most tests of sessions run.

With more clients than that every statement may find a connection that somebody else has just
used. `plain` is unsharded, `commerce` has two shards.
"""

import pytest

from tests.fixtures.database_servers import execute, names
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, proxies_of, write_vschema
from tests.integration.conftest import FAULTS, SETTINGS, VSCHEMA


@pytest.fixture(scope="package")
def tight_proxy(server_pool, family, tmp_path_factory):
    """The proxy, and its sharded keyspace's database; that of the other one ends in _plain."""
    servers = server_pool.server(family, 0), server_pool.server(family, 1)
    database = next(names)
    for server in servers:
        execute(server, f"CREATE DATABASE {database}")
        execute(server, f"CREATE TABLE {database}.customer (id BIGINT PRIMARY KEY, n INT)")
    execute(servers[1], f"CREATE DATABASE {database}_plain")
    folder = tmp_path_factory.mktemp("tight")
    vschema = write_vschema(folder, VSCHEMA)
    keyspaces = keyspace_toml("commerce", servers, database, vschema)
    keyspaces += keyspace_toml("plain", servers[1:], f"{database}_plain")
    config = folder / "proxy.toml"
    config.write_text(
        SETTINGS
        + "pool_timeout = 60\n"
        + keyspaces.replace("primary", "pool_size = 2\nprimary")
    )
    proxy = RunningProxy(config)
    yield proxy, database
    proxy.close()
    for server in servers:
        execute(server, f"DROP DATABASE {database}")
    execute(servers[1], f"DROP DATABASE {database}_plain")


@pytest.fixture
def sharded_database(tight_proxy: tuple[RunningProxy, str]) -> str:
    """The database of keyspace commerce on both servers."""
    return tight_proxy[1]


@pytest.fixture
def tight(tight_proxy, servers, request):
    """A proxy with two connections to each server; keyspaces plain and commerce."""
    proxy, database = tight_proxy
    request.node.stash[proxies_of] = [proxy]
    logged = len(proxy.log())
    yield proxy
    proxy.disconnect()
    patience = "SET lock_wait_timeout = 60, innodb_lock_wait_timeout = 60"
    for server, schema in (
        *((server, database) for server in servers),
        (servers[1], f"{database}_plain"),
    ):
        for (table,) in execute(server, f"SHOW TABLES FROM {schema}"):
            verb = "TRUNCATE" if table == "customer" else "DROP"
            execute(server, f"{verb} TABLE {schema}.{table}", init_command=patience)
    news = proxy.log()[logged:]
    assert not any(fault in news for fault in FAULTS), news
