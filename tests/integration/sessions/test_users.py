"""A user does what its role allows, in its keyspaces; who has left leaves nothing behind."""

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import eventually, run
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db


def test_sessions_leave_nothing_behind(cluster: SharedCluster) -> None:
    """After everybody has left, the pool's connections are idle and in no transaction."""
    for number in range(20):
        client = cluster.proxy.connect(database=("plain", "commerce")[number % 2])
        run(client, "SELECT 1")
        client._force_close()
    open_transactions = "SELECT COUNT(*) FROM information_schema.innodb_trx"
    for server in cluster.servers:
        eventually(lambda: execute(server, open_transactions) == ((0,),), "all is closed")  # noqa: B023
