import pytest

from streamfrom.proxy.sql.queues import stream_statements


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
