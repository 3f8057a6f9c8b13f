"""What a connection keeps from its login or from its last session, and what the next session finds on it."""

from typing import Any

import pymysql
import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import eventually, run, value


pytestmark = pytest.mark.db

LOW_BYTES = 1 << 20


@pytest.fixture
def server(breakable_servers, breakable_database):
    """A server whose global variables a test may change."""
    found = breakable_servers[0]
    before = [
        (name, execute(found, f"SELECT @@global.{name}")[0][0])
        for name in ("max_allowed_packet", "init_connect", "wait_timeout")
    ]
    execute(found, f"CREATE TABLE {breakable_database}.large (a LONGBLOB)")
    yield found
    for name, old in before:
        execute(found, f"SET GLOBAL {name} = {old!r}")


@pytest.fixture
def proxy(server, breakable_database, start_proxy):
    return start_proxy(keyspace_toml(breakable_database, [server]))


def sessions(proxy: RunningProxy, number: int, **options: Any) -> list[Any]:
    """Return clients that have used a connection to the server each."""
    found = [proxy.connect(autocommit=True, **options) for _ in range(number)]
    for client in found:
        run(client, "BEGIN")
        run(client, "SELECT COUNT(*) FROM large")
    for client in found:
        run(client, "COMMIT")
    return found


def test_a_raised_limit_of_packets_is_that_of_all_new_sessions(
    proxy, server, breakable_database
):
    options = {"database": breakable_database, "max_allowed_packet": 1 << 30}
    admin = proxy.connect(autocommit=True, **options)
    before = value(admin, "SELECT @@global.max_allowed_packet")
    run(admin, f"SET GLOBAL max_allowed_packet = {LOW_BYTES}")
    for client in sessions(proxy, 6, **options):
        client.close()
    run(admin, f"SET GLOBAL max_allowed_packet = {before}")
    for client in sessions(proxy, 8, **options):
        assert run(client, f"INSERT INTO large VALUES ('{'x' * (2 * LOW_BYTES)}')") == 1


def test_a_change_past_the_proxy_is_noticed(proxy, server, breakable_database):
    options = {"database": breakable_database, "max_allowed_packet": 1 << 30}
    large = f"INSERT INTO large VALUES ('{'x' * (2 * LOW_BYTES)}')"
    (before,) = execute(server, "SELECT @@global.max_allowed_packet")[0]

    def takes() -> bool:
        with proxy.connect(autocommit=True, **options) as client:
            try:
                return run(client, large) == 1
            except pymysql.MySQLError:
                return False

    execute(server, f"SET GLOBAL max_allowed_packet = {LOW_BYTES}")
    for limit, is_taken in ((LOW_BYTES, False), (before, True)):
        execute(server, f"SET GLOBAL max_allowed_packet = {limit}")
        eventually(lambda: takes() is is_taken)  # noqa: B023
