"""The limits of clients, as seen from outside."""

from typing import Any

import pytest

from tests.fixtures.background import running
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml, write_vschema
from tests.fixtures.streams import eventually, refused, rows
from tests.integration.conftest import VSCHEMA


pytestmark = pytest.mark.db

SETTINGS = """[server]
listen = "127.0.0.1:0"
statement_timeout = 1
idle_timeout = 5
auth_backoff = 1
"""
SETTINGS += user_toml("app", "sesame", account="shared")


@pytest.fixture
def limited(servers, sharded_database, start_proxy, tmp_path):
    vschema = write_vschema(tmp_path, VSCHEMA)
    return start_proxy(SETTINGS + keyspace_toml("commerce", servers, sharded_database, vschema))


def connect(proxy: RunningProxy, user: str = "app", **options: Any) -> Any:
    options = {"password": "sesame", "database": "commerce", "autocommit": True} | options
    return proxy.connect(user=user, **options)


def test_a_statement_that_takes_too_long_is_stopped_on_its_server(
    limited, servers, sharded_database
):
    for server, ident in zip(servers, (1, 4), strict=True):
        execute(server, f"CREATE TABLE {sharded_database}.customer (id BIGINT PRIMARY KEY)")
        execute(server, f"INSERT INTO {sharded_database}.customer VALUES ({ident})")
    client = connect(limited)
    too_long = "Query execution was interrupted, maximum statement execution time exceeded"
    for sql in (
        "SELECT SLEEP(600)",
        "SELECT id, SLEEP(600) FROM customer WHERE id = 4",
        "SELECT id, SLEEP(600) FROM customer ORDER BY id",
        "DELETE FROM customer WHERE SLEEP(600) = 0",
    ):
        assert refused(client, sql) == (3024, too_long), sql
    assert rows(client, "SELECT id FROM customer ORDER BY id") == ((1,), (4,))
    for server in servers:
        eventually(lambda: not running(server, "SLEEP(600)"), "it sleeps no more")  # noqa: B023
