"""A user does what its role allows, in its keyspaces; who has left leaves nothing behind."""

from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, StartProxy, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, message_table, refused, rows, run, value
from tests.integration.conftest import SETTINGS, VSCHEMA, SharedCluster


pytestmark = pytest.mark.db

USERS = """
[[users]]
name = "writer"
account = "shared"
password = "w"
[[users]]
name = "reader"
account = "shared"
password = "r"
role = "readonly"
[[users]]
name = "guest"
account = "shared"
password = "g"
keyspaces = ["plain"]
"""
WRITES = (
    "INSERT INTO customer (id) VALUES (1)",
    "UPDATE customer SET n = 1",
    "DELETE FROM customer",
    "REPLACE INTO customer (id) VALUES (1)",
    "CREATE TABLE x (n INT)",
    "DROP TABLE customer",
    "TRUNCATE customer",
    "STREAM * FROM my_message",
    "SELECT * FROM customer FOR UPDATE",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "CALL p()",
    "LOCK TABLES customer WRITE",
    "SET GLOBAL read_only = 1",
    "LOAD DATA INFILE '/x' INTO TABLE customer",
    "PREPARE p FROM 'DELETE FROM customer'",
    "WITH c AS (SELECT 1) DELETE FROM customer",
    "/*! DELETE */ FROM customer",
    "ANALYZE DELETE FROM customer",
    "DO SLEEP(0)",
    "HANDLER customer OPEN",
    "XA START 'x'",
    "GRANT ALL ON *.* TO x",
)


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

    def connect(self, proxy: RunningProxy, name: str, **options: Any) -> Any:
        return proxy.connect(user=name, password=name[0], autocommit=True, **options)

    def test_a_reader_reads(self, proxy: RunningProxy) -> None:
        run(self.connect(proxy, "writer", database="commerce"), message_table())
        reader = self.connect(proxy, "reader", database="commerce")
        for sql in WRITES:
            code, text = refused(reader, sql)
            assert code in (1142, 1064), (sql, text)
        assert rows(reader, "SELECT id FROM customer") == ()
        assert rows(reader, "SHOW TABLES LIKE 'customer'") == (("customer",),)
        # The session's own business.
        reader.select_db("commerce:-80")
        run(reader, "SET @a = 1")
        assert value(reader, "SELECT GET_LOCK('x', 0) + @a") == 2

    def test_a_guest_sees_its_keyspaces_only(
        self, proxy: RunningProxy, sharded_database: str
    ) -> None:
        guest = self.connect(proxy, "guest", database="plain")
        why = "Access denied for user 'guest'@'127.0.0.1' to database 'commerce'"
        assert refused(guest, "USE commerce") == (1044, why)
        assert refused(guest, "SELECT * FROM commerce.customer") == (1044, why)
        assert refused(guest, "STREAM * FROM commerce.my_message") == (1044, why)
        assert refused(guest, "INSERT INTO commerce.customer (id) VALUES (1)") == (1044, why)
        assert refused(guest, "DROP TABLE commerce.customer") == (1044, why)
        for name in ("commerce", "nowhere"):
            for target in (name, f"{name}:-80", f"{name}:x", f"{name}@replica", f"{name}@x"):
                why = f"Access denied for user 'guest'@'127.0.0.1' to database '{target}'"
                assert refused(guest, f"USE `{target}`") == (1044, why)
                with pytest.raises(pymysql.MySQLError, match="Access denied"):
                    self.connect(proxy, "guest", database=target)
        # Nor by the real name of the database, which its server would know.
        assert refused(guest, f"SELECT * FROM {sharded_database}.customer")[0] == 1044
        names = [name for (name,) in rows(guest, "SHOW DATABASES")]
        assert "plain" in names
        assert "commerce" not in names
        assert sharded_database not in names

    def test_kill_is_for_ones_own(self, proxy: RunningProxy) -> None:
        writer = self.connect(proxy, "writer", database="plain")
        guest = self.connect(proxy, "guest", database="plain")
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
    assert refused(client, "SHOW DATABASES WHERE nosuch = 1")[0] == 1054


@pytest.mark.parametrize("keyspace", ["plain", "commerce"])
@pytest.mark.parametrize(
    "sql", ["ALTER USER CURRENT_USER() IDENTIFIED BY 'x'", "DROP USER CURRENT_USER()"]
)
def test_nobody_locks_the_proxy_out_of_its_servers(
    tight: RunningProxy, keyspace: str, sql: str
) -> None:
    """`mysqladmin password` means the account that it logged in with; the server has another."""
    client = tight.connect(database=keyspace)
    code, text = refused(client, sql)
    assert code == 1235
    assert "accounts live in the proxy's configuration" in text
    assert value(tight.connect(database=keyspace), "SELECT 1") == 1


def test_sessions_leave_nothing_behind(cluster: SharedCluster) -> None:
    """After everybody has left, the pool's connections are idle and in no transaction."""
    for number in range(20):
        client = cluster.proxy.connect(database=("plain", "commerce")[number % 2])
        run(client, "SELECT 1")
        client._force_close()
    open_transactions = "SELECT COUNT(*) FROM information_schema.innodb_trx"
    for server in cluster.servers:
        eventually(lambda: execute(server, open_transactions) == ((0,),), "all is closed")  # noqa: B023
