import ast
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.message_table import RawColumn
from streamfrom.proxy.errors import BadStreamKey
from streamfrom.proxy.sql.queues import stream_statements
from streamfrom.proxy.sql.queues.stream_statements import stream_keys
from tests.cases import cases
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.sqlparse_ext.facts import statement


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


def keys(where, key="tenant"):
    comment = DEFAULT_COMMENT + (f",vt_key={key}" if key else "")
    table = loaded(raw_table("t", comment, texts=("tenant",)))
    return stream_keys(statement(f"STREAM * FROM t {where}"), table)


@cases(where=str, key=ast.literal_eval, found=ast.literal_eval)
def test_keys_are_literals(where, key, found):
    assert keys(where, key) == found


@cases(where=str, key=ast.literal_eval, words=str)
def test_what_is_no_key_is_told_the_way(where, key, words):
    with pytest.raises(BadStreamKey) as caught:
        keys(where, key)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["date", "datetime", "timestamp", "time", "enum", "set"])
def test_a_key_that_can_be_written_in_many_ways_is_refused(kind):
    raw = raw_table("t", DEFAULT_COMMENT + ",vt_key=day")
    day = RawColumn("day", kind, None, nullable=True)
    table = loaded(replace(raw, columns=(*raw.columns, day)))
    with pytest.raises(BadStreamKey, match=f"takes no key of the type {kind.upper()}, whose"):
        stream_keys(statement("STREAM * FROM t WHERE day = '2026-11-26'"), table)
    assert stream_keys(statement("STREAM * FROM t"), table) is None
