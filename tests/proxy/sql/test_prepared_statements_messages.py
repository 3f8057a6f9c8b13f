"""Prepared statements on message tables: streams, acks and inserts."""

import re

import pytest

from tests.proxy.fake_answers import Rows
from tests.proxy.rigs import add_message_table, claimed, claims, running_proxy


@pytest.fixture
async def proxy(server):
    add_message_table(server)
    async with running_proxy(server) as made:
        yield made


@pytest.fixture
async def client(proxy):
    return await proxy.client()


async def test_a_prepared_insert_wakes_a_prepared_stream_which_gives_binary_rows(
    server, proxy, client
):
    assert await client.prepare("STREAM * FROM msg") == (1, 0, 2)
    client.send_execute(1)
    await client.head()
    server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(7, b"hello"),)))
    writer = await proxy.client()
    await writer.prepare("INSERT INTO msg (id, message) VALUES (?, ?)")
    await writer.execute(1, 7, b"hello")
    assert await client.packet() == b"\0\0\x017\x05hello"
    assert "`id` IN (7)" in claims(server)[0]


async def test_a_prepared_stream_that_ends_takes_its_limit_and_its_wait_as_parameters(client):
    assert await client.prepare("STREAM * FROM msg LIMIT ? WAIT ?") == (1, 2, 2)
    answer = await client.execute(1, 3, 0)
    assert answer.error is None
    assert answer.rows == []
    for limit, wait in ((0, 0), (-1, 0), (None, 0), (b"ten", 0), (1, None), (1, -1)):
        assert (await client.execute(1, limit, wait)).code == 1210
    assert (await client.execute(1, 3, 0)).error is None


async def test_an_ack_is_completed_and_executed_in_place(server, client):
    await client.prepare("UPDATE msg SET time_acked = ? WHERE id IN (?, ?)")
    assert (await client.execute(1, 1800000000000000099, 7, 8)).ok
    assert (await client.execute(1, None, 7, 8)).ok
    completed = (
        "UPDATE msg FORCE INDEX (PRIMARY) SET time_acked = ?,"
        " epoch = IF(epoch, epoch, IFNULL(IFNULL(time_next, FALSE) <= time_acked, TRUE)),"
        " time_next = NULL"
        " WHERE (id IN (?, ?)) AND time_acked IS NULL"
    )
    assert f"EXECUTE {completed} [1800000000000000099, 7, 8]" in server.heard
    # To take an ack back is none, and nothing is completed.
    assert "UPDATE msg SET time_acked = NULL WHERE id IN (7, 8)" in server.heard


async def test_a_time_function_is_put_in_when_it_is_executed(server, client):
    await client.prepare("UPDATE msg SET time_acked = NOW() WHERE id = ?")
    assert (await client.execute(1, 7)).ok
    await client.prepare("INSERT INTO msg (id, time_next) VALUES (?, NOW() + INTERVAL ? HOUR)")
    assert (await client.execute(2, 8, 1)).ok
    ack, insert = (
        next(text for text in server.heard if text.startswith(verb))
        for verb in ("UPDATE msg", "INSERT INTO msg")
    )
    assert re.fullmatch(
        r"UPDATE msg FORCE INDEX \(PRIMARY\) SET time_acked = \d{19}, epoch = IF\(epoch, epoch,"
        r" IFNULL\(IFNULL\(time_next, FALSE\) <= time_acked, TRUE\)\), time_next = NULL"
        r" WHERE \(id = 7\) AND time_acked IS NULL",
        ack,
    )
    assert re.fullmatch(r"INSERT INTO msg \(id, time_next\) VALUES \(8, \d{19}\)", insert)


async def test_a_heartbeat_takes_its_length_as_a_parameter(server, client):
    await client.prepare(
        "UPDATE msg SET time_next = time_next + INTERVAL ? SECOND WHERE id = ?"
    )
    assert (await client.execute(1, 10, 7)).ok
    assert (await client.execute(1, b"1.5", 7)).ok
    assert (await client.execute(1, b"soon", 7)).code == 1235
    assert (await client.execute(1, 20, 7)).ok
    sent = [text for text in server.heard if text.startswith("UPDATE msg")]
    added = re.findall(r"time_next \+ (\d+)", "; ".join(sent))
    assert added == ["10000000000", "1500000000", "20000000000"]
