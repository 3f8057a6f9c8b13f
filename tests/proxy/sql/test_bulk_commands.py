import ast

import pytest

from streamfrom.proxy.wire.resultset import Ok as Told
from tests.cases import cases
from tests.proxy.fake_answers import Ok, rows_of, until
from tests.proxy.fake_client import MARIADB
from tests.proxy.fake_server import MARIADB as VERSION, FakeServer
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import add_message_table, claims, running_proxy


INSERT = "INSERT INTO t (id, a) VALUES (?, ?)"


@pytest.fixture
async def servers(calm):
    async with FakeServer(VERSION) as first, FakeServer(VERSION) as second:
        yield first, second


@pytest.fixture
async def client(servers):
    async with running_proxy(*servers) as proxy:
        yield await proxy.client("commerce", capabilities=MARIADB)


def batches(server):
    """Return the batches that a server was sent, and how their transaction ended."""
    return [text for text in server.heard if text.startswith(("BULK", "COMMIT", "ROLLBACK"))]


def affected(result):
    """Return how many rows a batch has changed."""
    assert result.ok is not None, result.error
    return result.ok.affected_rows


async def test_one_shard_gets_the_batch_as_it_came(servers):
    async with running_proxy(*servers) as proxy:
        client = await proxy.client(capabilities=MARIADB)
        statement, _, _ = await client.prepare(INSERT)
        servers[0].once("INSERT", Ok(2, 5, info=b"Records: 2"))
        result = await client.bulk(statement, (1, b"x"), (2, None))
        assert affected(result) == 2
        assert result.ok == Told(2, 5, 2, 0, b"Records: 2")
    assert batches(servers[0]) == [f"BULK {INSERT} [[1, b'x'], [2, None]]"]


async def test_a_row_that_concerns_all_shards_goes_to_all(servers, client):
    update = "UPDATE t SET a = ? WHERE b = ?"
    statement, _, _ = await client.prepare(update)
    assert affected(await client.bulk(statement, (1, 2), (3, 4))) == 4
    for server in servers:
        assert batches(server) == [f"BULK {update} [[1, 2], [3, 4]]", "COMMIT"]


async def test_rows_that_are_returned_come_in_the_order_of_the_batch(servers, client):
    statement, _, _ = await client.prepare("INSERT INTO t (id) VALUES (?) RETURNING id")
    servers[0].on("RETURNING", rows_of("a", "c"))
    servers[1].on("RETURNING", rows_of("b"))
    result = await client.bulk(statement, (1,), (HIGH,), (2,))
    assert [payload[-1:] for payload in result.values if payload] == [b"a", b"b", b"c"]


@cases(sql=str, rows=ast.literal_eval, code=ast.literal_eval)
async def test_what_cannot_be_a_batch_is_refused_and_the_session_goes_on(
    servers, sql, rows, code, client
):
    statement, _, _ = await client.prepare(sql)
    assert (await client.bulk(statement, *rows)).code == code
    assert (await client.query("SELECT 1")).rows
    assert not batches(servers[0])


async def test_a_server_that_takes_no_batches_is_told_of(server):
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        assert client.greeting.capabilities >> 32 == 0
        statement, _, _ = await client.prepare(INSERT)
        assert (await client.bulk(statement, (1, b"x"))).code == 1235
        assert (await client.execute(statement, 1, b"x")).ok


async def test_messages_of_a_batch_reach_their_shards(servers):
    for each in servers:
        add_message_table(each)
    async with running_proxy(*servers) as proxy:
        client = await proxy.client("commerce", capabilities=MARIADB)
        stream = await proxy.client("commerce")
        stream.send("STREAM * FROM msg")
        await stream.head()
        statement, _, _ = await client.prepare("INSERT INTO msg (id, message) VALUES (?, ?)")
        assert (await client.bulk(statement, (1, b"x"), (HIGH, b"y"), (2, b"z"))).ok
        await until(lambda: claims(servers[0]) and claims(servers[1]))
    assert "`id` IN (1, 2)" in claims(servers[0])[0]
    assert f"`id` IN ({HIGH})" in claims(servers[1])[0]


async def test_acks_in_a_batch_hold_the_moment(servers):
    add_message_table(servers[0])
    async with running_proxy(servers[0]) as proxy:
        client = await proxy.client(capabilities=MARIADB)
        statement, _, _ = await client.prepare("UPDATE msg SET time_acked = NOW() WHERE id = ?")
        assert (await client.bulk(statement, (1,), (2,))).ok
        assert (await client.bulk(statement, (3,))).ok
    first, second = batches(servers[0])
    assert "NOW()" not in first + second
    assert "time_next = NULL" in first
    assert first.endswith("[[1], [2]]")
    assert first.split(" [")[0] != second.split(" [")[0]


async def test_an_ack_in_a_batch_that_is_none_is_refused(servers):
    add_message_table(servers[0])
    async with running_proxy(servers[0]) as proxy:
        client = await proxy.client(capabilities=MARIADB)
        statement, _, _ = await client.prepare("UPDATE msg SET time_acked = ? WHERE id = ?")
        assert (await client.bulk(statement, (1800000000000000005, 1), (None, 2))).code == 1235
        assert (
            await client.bulk(statement, (1800000000000000005, 1), ("IGNORE", 2))
        ).code == 1235
