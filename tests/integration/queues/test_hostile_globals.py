"""A queue works before servers whose globals change what statements mean and how much they answer."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import root
from tests.fixtures.running_proxy import keyspace_toml, write_vschema
from tests.fixtures.streams import run


pytestmark = pytest.mark.db

MODES = "ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES,TRADITIONAL"
MODES_OF = {Family.MARIADB: f"{MODES},ORACLE,NO_TABLE_OPTIONS", Family.MYSQL: MODES}
HOSTILE = {
    "sql_select_limit": "1",
    "max_join_size": "1",
    "sql_quote_show_create": "0",
    "group_concat_max_len": "4",
    "completion_type": "'CHAIN'",
}


@pytest.fixture
def hostile(breakable_servers, breakable_database, family):
    for server in breakable_servers:
        connection = root(server, autocommit=True)
        for name, value in {**HOSTILE, "sql_mode": f"'{MODES_OF[family]}'"}.items():
            run(connection, f"SET GLOBAL {name} = {value}")
        connection.close()
    yield breakable_servers, breakable_database
    for server in breakable_servers:
        connection = root(server, autocommit=True)
        for name in (*HOSTILE, "sql_mode"):
            run(connection, f"SET GLOBAL {name} = DEFAULT")
        connection.close()


@pytest.mark.parametrize("count", [1, 2])
def test_a_queue_is_made_changed_sent_acknowledged_and_dropped(
    hostile, start_proxy, tmp_path, count
):
    servers, database = hostile
    vschema = write_vschema(tmp_path, {"sharded": True}) if count == 2 else None
    proxy = start_proxy(keyspace_toml(database, servers[:count], vschema=vschema))
    connection = proxy.connect(database=database, autocommit=True)
    for sql in (
        "CREATE QUEUE job (p CHAR(8), k INT UNIQUE)"
        if count == 1
        else "CREATE QUEUE job (p CHAR(8))",
        "CREATE QUEUE other (p INT)",
        "ALTER QUEUE job SET (ack_wait = 40)",
        "ALTER QUEUE job PAUSE",
        "ALTER QUEUE job RESUME",
        "INSERT INTO job (p) VALUES ('x'), ('y'), ('z')",
    ):
        run(connection, sql)
    with connection.cursor() as cursor:
        cursor.execute("SHOW CREATE QUEUE job")
        assert "ack_wait = 40" in cursor.fetchall()[0][1]
        cursor.execute("SHOW QUEUES")
        assert cursor.fetchall() == (("job",), ("other",))
        cursor.execute("STREAM id, p FROM job LIMIT 3 WAIT 60")
        sent = cursor.fetchall()
        assert sorted(p for _, p in sent) == ["x", "y", "z"]
        ack = "UPDATE job SET time_acked = NOW() WHERE id = %s"
        assert [cursor.execute(ack, (ident,)) for ident, _ in sent] == [1, 1, 1]
        cursor.execute("DROP QUEUE job")
