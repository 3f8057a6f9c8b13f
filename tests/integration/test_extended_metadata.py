"""What is told of a column beside its type, which MariaDB's drivers ask for."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import MARIADB_METADATA
from tests.fixtures.streams import message_table, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS
from tests.proxy.fake_client import MARIADB, OLD, Client, talk


JSON = b"\1\4json"
UUID = b"\0\4uuid"


@pytest.fixture(autouse=True)
def only_on_mariadb(family: Family) -> None:
    if family is Family.MYSQL:
        pytest.skip("MySQL does not know it")


def extended(client: Client) -> list[bytes]:
    """Return what the columns told last say beside their types."""
    found = []
    for definition in client.definitions:
        cursor = PacketReader(definition)
        for _ in range(6):
            cursor.lenenc_bytes()
        found.append(cursor.lenenc_bytes())
        assert cursor.remaining == 13
    return found


@pytest.mark.parametrize("flags", [MARIADB, MARIADB & OLD], ids=["", "older"])
def test_what_is_told_beside_a_type_reaches_who_knows_it(client, cluster, keyspace, flags):
    run(client, "CREATE TABLE item (id BIGINT PRIMARY KEY, doc JSON, u UUID, n INT)")
    for each in (*LOW_IDS, *HIGH_IDS):
        run(client, f"INSERT INTO item VALUES ({each}, '{{\"a\": {each}}}', UUID(), 0)")
    run(client, message_table("my_message", columns="doc JSON"))

    port = cluster.proxy.port

    async def work(client: Client) -> None:
        plain = await Client.connect(port, database=keyspace, capabilities=MARIADB)
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
        await plain.close()

    talk(port, work, database=keyspace, capabilities=MARIADB_METADATA | flags)
