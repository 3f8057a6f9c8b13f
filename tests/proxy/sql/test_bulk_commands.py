import ast

import pytest

from tests.cases import cases
from tests.proxy.fake_client import MARIADB
from tests.proxy.fake_server import MARIADB as VERSION, FakeServer
from tests.proxy.rigs import add_message_table, running_proxy


INSERT = "INSERT INTO t (id, a) VALUES (?, ?)"


@pytest.fixture
async def servers(calm):
    async with FakeServer(VERSION) as first, FakeServer(VERSION) as second:
        yield first, second


@cases(sql=str, rows=ast.literal_eval, code=ast.literal_eval)
async def test_what_cannot_be_a_batch_is_refused_and_the_session_goes_on(
    servers, sql, rows, code
):
    async with running_proxy(*servers) as proxy:
        client = await proxy.client("commerce", capabilities=MARIADB)
        statement, _, _ = await client.prepare(sql)
        assert (await client.bulk(statement, *rows)).code == code
        assert (await client.query("SELECT 1")).rows
    assert not any(text.startswith(("COMMAND", "COMMIT")) for text in servers[0].heard)


async def test_a_server_that_takes_no_batches_is_told_of(server):
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        assert client.greeting.capabilities >> 32 == 0
        statement, _, _ = await client.prepare(INSERT)
        assert (await client.bulk(statement, (1, b"x"))).code == 1235
        assert (await client.execute(statement, 1, b"x")).ok


async def test_an_ack_in_a_batch_that_is_none_is_refused(servers):
    add_message_table(servers[0])
    async with running_proxy(servers[0]) as proxy:
        client = await proxy.client(capabilities=MARIADB)
        statement, _, _ = await client.prepare("UPDATE msg SET time_acked = ? WHERE id = ?")
        assert (await client.bulk(statement, (1800000000000000005, 1), (None, 2))).code == 1235
        assert (
            await client.bulk(statement, (1800000000000000005, 1), ("IGNORE", 2))
        ).code == 1235
