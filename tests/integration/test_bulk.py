"""What MariaDB's drivers ask for: batches (COM_STMT_BULK_EXECUTE), and what is told of a column beside its type."""

from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import MARIADB_METADATA
from tests.fixtures.streams import message_table, rows, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster
from tests.proxy.fake_client import MARIADB, OLD, Client, Result, talk


IDS = (*LOW_IDS, *HIGH_IDS)


async def batch(
    client: Client, sql: str, *rows: tuple[int | bytes | str | None, ...]
) -> Result:
    statement, _, _ = await client.prepare(sql)
    return await client.bulk(statement, *rows)


def affected(result: Result) -> int:
    assert result.ok is not None, result.error
    return result.ok.affected_rows


def test_a_batch_is_one_statement(client: Any, cluster: SharedCluster, keyspace: str) -> None:
    run(client, "CREATE TABLE item (id BIGINT PRIMARY KEY, name VARCHAR(9) DEFAULT 'none')")

    async def work(client: Client) -> None:
        insert = "INSERT INTO item (id, name) VALUES (?, ?)"
        names = (b"a", None, "DEFAULT", b"d", b"e", b"f", b"g", b"h")
        pairs = list(zip(IDS, names, strict=True))
        assert affected(await batch(client, insert, *pairs)) == len(IDS)
        # As a whole or not at all: 1 and 4 are there.
        assert (await batch(client, insert, (90, b"x"), (91, b"x"), (1, b"x"))).code == 1062
        assert (await batch(client, insert, (92, b"x"), (93, b"x"), (4, b"x"))).code == 1062
        update = "UPDATE item SET name = ? WHERE id = ?"
        result = await batch(client, update, (b"z", 1), (b"z", 4), (b"z", 99))
        assert affected(result) == 2
        assert result.ok is not None
        assert result.ok.info == b"Rows matched: 2  Changed: 2  Warnings: 0"
        assert affected(await batch(client, "DELETE FROM item WHERE id = ?", (2,), (6,))) == 2
        insert = "INSERT INTO item (id, name) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = ?"
        result = await batch(client, insert, (3, b"x", b"p"), (7, b"x", b"q"))
        assert affected(result) == 4

    talk(cluster.proxy.port, work, database=keyspace)
    found = rows(client, "SELECT id, name FROM item ORDER BY id")
    assert found == ((1, "z"), (3, "p"), (4, "z"), (5, "d"), (7, "q"), (8, "h"))


def test_messages_sent_and_acknowledged_in_batches(client, cluster, keyspace, consume):
    run(client, message_table("my_message", columns="message VARCHAR(100)"))
    consumer = consume(cluster.proxy, database=keyspace)

    async def work(client: Client) -> None:
        insert = "INSERT INTO my_message (id, message) VALUES (?, ?)"
        assert affected(await batch(client, insert, *((n, b"hello") for n in IDS))) == len(IDS)
        assert sorted(consumer.ids(len(IDS))) == sorted(IDS)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id = ?"
        assert affected(await batch(client, ack, *((n,) for n in IDS))) == len(IDS)
        assert affected(await batch(client, ack, *((n,) for n in IDS))) == 0

    talk(cluster.proxy.port, work, database=keyspace)
    left = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL OR time_next IS NOT NULL"
    assert rows(client, left) == ((0,),)
    acked = rows(client, "SELECT MIN(time_acked) FROM my_message")[0][0]
    assert acked > 10**18


JSON = b"\1\4json"
UUID = b"\0\4uuid"


@pytest.fixture(autouse=True)
def only_on_mariadb(family: Family) -> None:
    if family is Family.MYSQL:
        pytest.skip("MySQL has neither")


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
