"""What tests of jobs share: two shards of the family that a test asks for."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import fresh_database
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema


TABLES = ("my_message", "results", "dead")


@pytest.fixture
def job_family(request):
    """The family of servers: MariaDB, where a test does not ask for another (`tests.spark.killed`)."""
    return getattr(request, "param", Family.MARIADB)


@pytest.fixture
def configuration(server_pool, job_family, tmp_path):
    """Two shards that keep all three tables by id."""
    servers = [server_pool.server(job_family, index) for index in range(2)]
    by_id = {"column_vindexes": [{"column": "id", "name": "hash"}]}
    vschema = write_vschema(
        tmp_path, MESSAGE_VSCHEMA | {"tables": dict.fromkeys(TABLES, by_id)}
    )
    for database in fresh_database(*servers):
        yield keyspace_toml("commerce", servers, database, vschema)


@pytest.fixture
def proxy(configuration, start_proxy):
    return start_proxy(configuration)
