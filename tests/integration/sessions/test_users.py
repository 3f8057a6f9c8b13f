"""A user does what its role allows, in its keyspaces; who has left leaves nothing behind."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, refused, rows, run, value
from tests.integration.conftest import SETTINGS, VSCHEMA, SharedCluster


pytestmark = pytest.mark.db

USERS = """
[[users]]
name = "writer"
account = "shared"
password = "w"
[[users]]
name = "guest"
account = "shared"
password = "g"
"""


class TestUsers:
    @pytest.fixture
    def proxy(
        self,
        start_proxy: StartProxy,
        servers: Any,
        sharded_database: str,
        tight: RunningProxy,
        tmp_path: Path,
    ) -> RunningProxy:
        vschema = write_vschema(tmp_path, VSCHEMA)
        return start_proxy(
            SETTINGS
            + USERS
            + keyspace_toml("commerce", servers, sharded_database, vschema)
            + keyspace_toml("plain", servers[1:], f"{sharded_database}_plain")
        )

    def test_kill_is_for_ones_own(self, proxy: RunningProxy) -> None:
        writer, guest = (
            proxy.connect(user=name, password=name[0], database="plain")
            for name in ("writer", "guest")
        )
        assert refused(guest, f"KILL {writer.thread_id()}") == (
            1095,
            f"You are not owner of thread {writer.thread_id()}",
        )
        assert value(writer, "SELECT 1") == 1


@pytest.mark.parametrize("keyspace", [None, "plain", "commerce"])
def test_databases_are_keyspaces_however_they_are_chosen(
    tight: RunningProxy, keyspace: str | None
) -> None:
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
