"""What a user's own account runs is killed by that account: the shards' account has no right to it here."""

from typing import Any

import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import eventually, refused, rows, value
from tests.integration.conftest import SETTINGS


pytestmark = pytest.mark.db

WAITS = "SELECT SLEEP(100) /* theirs */"


@pytest.fixture
def proxy(start_proxy, server, accounts, database):
    accounts.create("shards", f"SELECT, INSERT, UPDATE, DELETE ON {database}.*")
    for name in ("ann", "boss", "eve"):
        accounts.create(name, f"SELECT ON {database}.*")
    config = keyspace_toml("plain", [server], database)
    password = "s%C3%A9same%27s"
    config = config.replace("mysql://root@", f"mysql://shards:{password}@")
    users = accounts.toml("ann", "eve") + accounts.toml("boss", more='role = "admin"\n')
    return start_proxy(SETTINGS + config + users)


def runs(server: DatabaseServer) -> int:
    sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = %s AND user = 'ann'"
    return int(execute(server, sql.replace("%s", f"'{WAITS}'"))[0][0])


def test_an_account_and_an_admin_see_and_kill_its_statements(proxy, server, accounts):
    ann, other, boss, eve = (
        accounts.connect(proxy, name, database="plain")
        for name in ("ann", "ann", "boss", "eve")
    )

    def listed(client: Any) -> set[str]:
        return {str(row[1]) for row in rows(client, "SHOW PROCESSLIST")}

    for killer in (other, other, boss):
        outcome = in_thread(lambda: value(ann, WAITS))
        eventually(lambda: runs(server) == 1)
        assert listed(eve) == {"eve"}
        assert listed(boss) >= {"ann", "boss", "eve"}
        assert refused(eve, f"KILL QUERY {ann.thread_id()}")[0] == 1095
        assert runs(server) == 1
        killer.query(f"KILL QUERY {ann.thread_id()}")
        # MariaDB's SLEEP is interrupted by an error, MySQL's returns 1.
        ended = outcome()
        assert ended == 1 or ended.args[0] == 1317
        eventually(lambda: runs(server) == 0)
        assert value(ann, "SELECT 1") == 1
