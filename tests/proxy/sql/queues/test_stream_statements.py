import pytest

from streamfrom.proxy.sql.queues import stream_statements
from tests.proxy.fake_answers import Error, HangUp, Rows, until
from tests.proxy.fake_client import Refused
from tests.proxy.rigs import add_message_table, claimed, running_proxy


@pytest.mark.parametrize(
    ("database", "sql", "code"),
    [
        ("commerce", "STREAM * FROM t", 1146),
        ("commerce", "STREAM nothing FROM msg", 1054),
        ("commerce", "STREAM * FROM", 1064),
        ("commerce", "STREAM * FROM nowhere.msg", 1049),
        (None, "STREAM * FROM msg", 1046),
    ],
)
async def test_what_cannot_be_streamed_is_an_error_at_once(messages, database, sql, code):
    client = await messages.client(database)
    assert (await client.query(sql)).code == code
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_stream_leaves_no_connection_and_no_transaction_open(server, messages):
    client = await messages.client()
    await client.query("SET autocommit = 0")
    client.send("STREAM id, message FROM msg")
    assert await client.head() == 2
    assert messages.app.shards["plain", "-"].pool.lent == 0
    assert not any(connection.in_transaction for connection in server.relays)


async def test_the_columns_of_a_stream_come_from_any_shard_that_answers(
    server, other_server, messages
):
    server.stop()
    client = await messages.client("commerce")
    client.send("STREAM * FROM msg")
    assert await client.head() == 2
    assert any("WHERE 1 = 0" in text for text in other_server.heard)


async def test_streams_in_turn_ask_for_their_columns_once_until_these_may_be_others(
    server, messages, monkeypatch
):
    client = await messages.client()

    async def asked(sql):
        before = len(server.heard)
        assert (await client.query(sql)).error is None
        return sum("WHERE 1 = 0" in text for text in server.heard[before:])

    empty = "STREAM id FROM msg LIMIT 1 WAIT 0"
    assert [await asked(empty) for _ in range(3)] == [1, 0, 0]
    assert await asked("STREAM message FROM msg LIMIT 1 WAIT 0") == 1
    assert await asked(empty) == 1
    await client.query("SET NAMES latin1")
    assert await asked(empty) == 1
    await client.query("ALTER TABLE msg ADD COLUMN more INT")
    assert [await asked(empty) for _ in range(2)] == [1, 0]
    await client.change_user("root", "", "plain")
    assert [await asked(empty) for _ in range(2)] == [1, 0], "another user may see less"
    monkeypatch.setattr(stream_statements, "COLUMNS_KNOWN_S", 0)
    await client.query("USE plain")
    assert [await asked("STREAM priority FROM msg LIMIT 1 WAIT 0") for _ in range(2)] == [1, 1]


async def test_a_stream_waits_for_a_shard_that_restarts(server, messages):
    client = await messages.client("plain")
    server.stop()
    client.send("STREAM * FROM msg")
    await until(lambda: messages.app.shards["plain", "-"].trouble is not None)
    await server.start()
    assert await client.head() == 2


async def test_a_stream_whose_columns_nobody_tells_is_an_error(server, other_server):
    for each in (server, other_server):
        add_message_table(each)
    async with running_proxy(server, other_server, failover_buffer_s=0.3) as proxy:
        client = await proxy.client("commerce")
        server.on(" WHERE 1 = 0", Error(1142, "SELECT command denied", "42000"))
        assert (await client.query("STREAM * FROM msg")).code == 1142
        server.stop()
        other_server.once(" WHERE 1 = 0", HangUp())
        assert (await client.query("STREAM * FROM msg")).code == 1105
        assert (await client.query("USE `commerce:80-`")).error is None
        client.send("STREAM * FROM msg")
        assert await client.head() == 2


async def test_a_dropped_table_ends_its_streams_with_a_clear_error(server, messages):
    reader = await messages.client()
    reader.send("STREAM * FROM msg")
    await reader.head()
    server.on("information_schema.tables", Rows(("table_name", "table_comment")))
    writer = await messages.client()
    await writer.query("DROP TABLE msg")
    with pytest.raises(Refused) as ended:
        await reader.row()
    assert ended.value.error.code == 1146
    assert b"was dropped; its streams end" in ended.value.error.message


async def test_a_stream_outlives_a_restart_of_its_server(server, messages):
    reader = await messages.client()
    reader.send("STREAM * FROM msg")
    await reader.head()
    shard = messages.app.shards["plain", "-"]
    server.stop()
    shard.suspect()
    await until(lambda: shard.trouble is not None)
    await server.start()
    await until(lambda: shard.trouble is None)
    server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(5, b"m"),)))
    writer = await messages.client()
    await writer.query("INSERT INTO msg (id, message) VALUES (5, 'a')")
    assert (await reader.row())[0] == b"5"
