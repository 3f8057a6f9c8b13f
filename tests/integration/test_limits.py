"""A statement that takes too long is stopped on its server, on one shard and on several; other limits: tests/proxy/sessions."""

from pathlib import Path

import pytest

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import (
    MESSAGE_VSCHEMA,
    StartProxy,
    keyspace_toml,
    write_vschema,
)
from tests.fixtures.streams import eventually, message_table, refused, rows, run


pytestmark = pytest.mark.db

SETTINGS = '[server]\nlisten = "127.0.0.1:0"\nstatement_timeout = 2\n'


def sleeps(server: DatabaseServer) -> bool:
    found = execute(server, "SELECT info FROM information_schema.processlist")
    return any(info and "SLEEP(30)" in info for (info,) in found)


def test_a_statement_that_takes_too_long_is_stopped_on_its_server(
    servers: tuple[DatabaseServer, DatabaseServer],
    sharded_database: str,
    start_proxy: StartProxy,
    tmp_path: Path,
) -> None:
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    keyspace = keyspace_toml("commerce", servers, sharded_database, vschema)
    client = start_proxy(SETTINGS + keyspace).connect(database="commerce", autocommit=True)
    run(client, message_table())
    run(client, "INSERT INTO my_message (id) VALUES (1), (4)")
    too_long = "Query execution was interrupted, maximum statement execution time exceeded"
    for sql in (
        "SELECT SLEEP(30)",
        "SELECT id, SLEEP(30) FROM my_message WHERE id = 4",
        "SELECT id, SLEEP(30) FROM my_message ORDER BY id",
        "DELETE FROM my_message WHERE SLEEP(30) = 0",
    ):
        assert refused(client, sql) == (3024, too_long), sql
    assert rows(client, "SELECT id FROM my_message ORDER BY id") == ((1,), (4,))
    eventually(lambda: not any(map(sleeps, servers)), "nobody sleeps any more")
