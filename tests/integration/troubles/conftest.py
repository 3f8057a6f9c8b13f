"""One proxy for most troubles, before two servers that are for breaking; a new queue for each."""

from collections.abc import Iterator

import pytest

from tests.fixtures.database_servers import DatabaseServer, fresh_database
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, proxies_of
from tests.fixtures.streams import run
from tests.integration.troubles.operated import ADMIN, KEYSPACE, QUEUE, Operated


SERVER = '[server]\nlisten = "127.0.0.1:0"\npool_timeout = 60\nfailover_buffer = 60\n'
POOL = 4
# Soon, and over shards, as a queue that somebody operates.
MADE = (
    f"CREATE QUEUE {QUEUE} (payload VARCHAR(64))"
    " WITH (ack_wait = 60, poller_interval = 1, release_after = 0.1)"
)


@pytest.fixture(scope="module")
def troubled_servers(server_pool, family):
    return server_pool.server(family, 2), server_pool.server(family, 3)


@pytest.fixture(scope="module")
def running(troubled_servers, tmp_path_factory):
    config = tmp_path_factory.mktemp("troubles") / "streamfrom.toml"
    for database in fresh_database(*troubled_servers):
        vschema = config.with_suffix(".json")
        vschema.write_text('{"sharded": true}')
        shards = keyspace_toml(KEYSPACE, troubled_servers, database, vschema)
        shards = shards.replace("\nprimary", f"\npool_size = {POOL}\nprimary")
        config.write_text(SERVER + ADMIN + shards)
        proxy = RunningProxy(config)
        yield Operated(proxy)
        proxy.close()


@pytest.fixture
def operated(running: Operated, request: pytest.FixtureRequest) -> Iterator[Operated]:
    request.node.stash[proxies_of] = [running.proxy]
    run(running.client(), MADE)
    yield running
    running.proxy.disconnect()
    run(running.client(), f"DROP QUEUE {QUEUE}")
    running.proxy.disconnect()


@pytest.fixture
def alone(mariadb: DatabaseServer) -> Iterator[str]:
    for database in fresh_database(mariadb):
        yield alone_before(mariadb, database)


def alone_before(server: DatabaseServer, database: str) -> str:
    return SERVER + ADMIN + keyspace_toml(KEYSPACE, [server], database)
