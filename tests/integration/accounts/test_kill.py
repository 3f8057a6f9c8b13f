"""What a user's own account runs is killed by that account: the shards' account has no right to it here."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

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


def sleeping(client: Any, server: DatabaseServer, worker: ThreadPoolExecutor) -> Any:
    """Return the future answer of a statement that runs at the server."""

    def run() -> Any:
        try:
            return value(client, WAITS)
        except pymysql.MySQLError as error:
            return error.args[0]

    answer = worker.submit(run)
    eventually(lambda: runs(server) == 1)
    return answer


def test_a_statement_is_killed_and_its_connection_goes_on(proxy, server, accounts):
    ann, other = (accounts.connect(proxy, "ann", database="plain") for _ in range(2))
    with ThreadPoolExecutor() as worker:
        for _ in range(2):
            answer = sleeping(ann, server, worker)
            value(other, "SELECT 1")
            other.query(f"KILL QUERY {ann.thread_id()}")
            # MariaDB's SLEEP is interrupted by an error, MySQL's returns 1.
            assert answer.result(60) in {1317, 1}
            eventually(lambda: runs(server) == 0)
            assert value(ann, "SELECT 1") == 1


def test_an_admin_sees_and_kills_the_statements_of_other_accounts(proxy, server, accounts):
    ann, boss, eve = (
        accounts.connect(proxy, name, database="plain") for name in ("ann", "boss", "eve")
    )

    def listed(client: Any) -> set[str]:
        return {str(row[1]) for row in rows(client, "SHOW PROCESSLIST")}

    with ThreadPoolExecutor() as worker:
        answer = sleeping(ann, server, worker)
        assert listed(eve) == {"eve"}
        assert listed(boss) >= {"ann", "boss", "eve"}
        assert refused(eve, f"KILL QUERY {ann.thread_id()}")[0] == 1095
        assert runs(server) == 1
        boss.query(f"KILL QUERY {ann.thread_id()}")
        assert answer.result(60) in {1317, 1}
    eventually(lambda: runs(server) == 0)
    assert value(ann, "SELECT 1") == 1
