"""What MariaDB tells of a column beside its type: JSON, uuid, inet6, the kind of a geometry."""

import asyncio

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import MARIADB_METADATA
from tests.fixtures.streams import message_table, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS
from tests.proxy.fake_client import MARIADB, OLD, Client


pytestmark = pytest.mark.db

JSON = b"\1\4json"
UUID = b"\0\4uuid"


@pytest.fixture(autouse=True)
def only_on_mariadb(family: Family) -> None:
    if family is Family.MYSQL:
        pytest.skip("MySQL has a type for JSON")


def extended(client: Client) -> list[bytes]:
    """What the columns told last say beside their types."""
    found = []
    for definition in client.definitions:
        cursor = PacketReader(definition)
        for _ in range(6):
            cursor.lenenc_bytes()
        found.append(cursor.lenenc_bytes())
        assert cursor.remaining == 13
    return found


@pytest.mark.parametrize("older", [0, OLD], ids=["", "older"])
def test_it_reaches_clients_that_know_it(cluster, keyspace, older):
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(connection, "CREATE TABLE item (id BIGINT PRIMARY KEY, doc JSON, u UUID, n INT)")
    for each in (*LOW_IDS, *HIGH_IDS):
        run(connection, f"INSERT INTO item VALUES ({each}, '{{\"a\": {each}}}', UUID(), 0)")
    run(connection, message_table("my_message", columns="doc JSON"))

    async def work() -> None:
        flags = MARIADB_METADATA | (MARIADB & older if older else MARIADB)
        client = await Client.connect(cluster.proxy.port, database=keyspace, capabilities=flags)
        plain = await Client.connect(
            cluster.proxy.port, database=keyspace, capabilities=MARIADB
        )
        for sql, said in (
            ("SELECT doc, n FROM item WHERE id = 1", [JSON, b""]),
            ("SELECT u, doc, n FROM item ORDER BY n, id", [UUID, JSON, b""]),
            ("SELECT MAX(doc), n FROM item GROUP BY n", None),
            ("SELECT doc FROM item UNION ALL SELECT doc FROM item", [JSON]),
            ("SELECT CONNECTION_ID()", [b""]),
            ("SHOW DATABASES", [b""]),
            ("SHOW PROCESSLIST", [b""] * 9),
            ("SHOW VSCHEMA KEYSPACES", [b""] * 4),
            ("SHOW WARNINGS", [b""] * 3),
        ):
            result = await client.query(sql)
            assert result.error is None, (sql, result.error)
            if said is not None:
                assert extended(client) == said, sql
            assert (await plain.query(sql)).rows or sql == "SHOW WARNINGS"
        statement, _, _ = await client.prepare("SELECT doc, ? FROM item WHERE id = ?")
        assert extended(client)[0] == JSON
        assert (await client.execute(statement, 1, 4)).rows
        assert extended(client)[0] == JSON
        await client.prepare("SHOW VSCHEMA TABLES")
        assert set(extended(client)) == {b""}
        client.send("STREAM id, doc FROM my_message")
        assert await client.head() == 2
        assert extended(client) == [b"", JSON]
        await client.close()
        await plain.close()

    asyncio.run(work())
