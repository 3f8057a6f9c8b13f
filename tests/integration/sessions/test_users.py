"""A user does what its role allows, in its keyspaces; who has left leaves nothing behind."""

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db


@pytest.mark.parametrize("keyspace", [None, "plain", "commerce"])
def test_databases_are_keyspaces_however_they_are_chosen(tight, keyspace):
    client = tight.connect(database=keyspace)
    everything = (("commerce",), ("information_schema",), ("plain",))
    assert rows(client, "SHOW DATABASES") == everything
    assert rows(client, "SHOW DATABASES LIKE '%'") == everything
    assert rows(client, "SHOW SCHEMAS LIKE 'c%'") == (("commerce",),)
    where = "SHOW DATABASES WHERE `Database` NOT IN ('information_schema', 'PLAIN')"
    assert rows(client, where) == (("commerce",),)
    user = value(client, "SELECT USER()")
    assert rows(client, f"SHOW DATABASES WHERE USER() = '{user}'") == everything
    assert refused(client, "SHOW DATABASES WHERE nosuch = 1")[0] == 1054


def test_sessions_leave_nothing_behind(cluster: SharedCluster) -> None:
    """After everybody has left, the pool's connections are idle and in no transaction."""
    for number in range(20):
        client = cluster.proxy.connect(database=("plain", "commerce")[number % 2])
        run(client, "SELECT 1")
        client._force_close()
    open_transactions = "SELECT COUNT(*) FROM information_schema.innodb_trx"
    for server in cluster.servers:
        eventually(lambda: execute(server, open_transactions) == ((0,),), "all is closed")  # noqa: B023
