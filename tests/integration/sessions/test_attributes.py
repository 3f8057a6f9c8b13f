"""Query attributes: what MySQL's clients send beside a statement reaches its server.

The base line is the server itself, asked by the same client.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import mysql.connector
import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool, execute
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy
from tests.integration.sessions.crowd import HIGH, LOW


pytestmark = pytest.mark.db

COMPONENT = "file://component_query_attributes"
COLOUR = "mysql_query_attribute_string('colour')"
CLIENT = shutil.which("/opt/mysql9/bin/mysql")


@pytest.fixture(scope="module")
def component(server_pool: ServerPool, family: Family) -> Iterator[None]:
    """Have the servers tell attributes, where they can."""
    if family is not Family.MYSQL:
        pytest.skip("MariaDB has no query attributes")
    servers = server_pool.server(family, 0), server_pool.server(family, 1)
    for server in servers:
        try:
            execute(server, f"INSTALL COMPONENT '{COMPONENT}'")
        except pymysql.MySQLError as error:
            pytest.skip(f"this server has no component for attributes: {error}")
    yield
    for server in servers:
        execute(server, f"UNINSTALL COMPONENT '{COMPONENT}'")


def connect(port: int, database: str) -> Any:
    return mysql.connector.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database=database,
        autocommit=True,
        use_pure=True,
        ssl_disabled=True,
    )


def told(port: int, database: str, *, prepared: bool) -> list[Any]:
    """Return what a server tells of the attributes that come with four statements."""
    client = connect(port, database)
    cursor = client.cursor(prepared=prepared)
    cursor.add_attribute("colour", "grün")
    cursor.add_attribute("size", 5)
    found = []
    for word in ("one", "two"):
        cursor.execute(f"SELECT {COLOUR}, %s, mysql_query_attribute_string('size')", (word,))
        found += cursor.fetchall()
        cursor.execute("SELECT mysql_query_attribute_string('nothing'), FOUND_ROWS()")
        found += cursor.fetchall()
        cursor.execute("SET @seen = " + COLOUR)
        cursor.clear_attributes()
    cursor.execute(f"SELECT {COLOUR}, @seen")
    found += cursor.fetchall()
    client.close()
    return found


@pytest.mark.usefixtures("component")
class TestAttributes:
    @pytest.mark.parametrize("prepared", [False, True], ids=["text", "prepared"])
    def test_a_server_is_told_what_it_is_told_direct(self, tight, servers, prepared):
        found = told(tight.port, "plain", prepared=prepared)
        assert found == told(servers[0].port, "mysql", prepared=prepared)
        assert found[0] == ("grün", "one", "5")
        assert found[2] == (None, "two", None)

    @pytest.mark.parametrize("prepared", [False, True], ids=["text", "prepared"])
    def test_every_shard_is_told(self, tight: RunningProxy, prepared: bool) -> None:
        client = connect(tight.port, "commerce")
        cursor = client.cursor(prepared=prepared)
        cursor.execute("BEGIN")
        cursor.add_attribute("colour", "7")
        insert = f"INSERT INTO customer (id, n) VALUES (%s, {COLOUR}), (%s, {COLOUR})"
        cursor.execute(insert, (LOW, HIGH))
        cursor.execute("COMMIT")
        cursor.execute(f"SELECT id FROM customer WHERE n = {COLOUR} ORDER BY id DESC")
        assert cursor.fetchall() == [(HIGH,), (LOW,)]
        cursor.execute(f"SELECT COUNT(*), MAX(n) FROM customer WHERE n = {COLOUR}")
        assert cursor.fetchall() == [(2, 7)]
        cursor.clear_attributes()
        cursor.execute(f"SELECT id FROM customer WHERE n = {COLOUR}")
        assert cursor.fetchall() == []
        client.close()

    @pytest.mark.skipif(CLIENT is None, reason="no client of MySQL 9.7 on this machine")
    def test_the_command_line_sends_them(self, tight: RunningProxy) -> None:
        assert CLIENT is not None
        asked = f"query_attributes colour blue\nSELECT {COLOUR}; SELECT {COLOUR};\n"
        options = ["-h127.0.0.1", f"-P{tight.port}", "-uroot", "-N", "--commands"]
        done = finished([CLIENT, *options], input=asked)
        assert done.stdout.split() == ["blue", "NULL"], done.stderr
