import ast
from dataclasses import replace

import pytest

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.messaging.table.message_table import RawColumn
from streamfrom.proxy import net
from streamfrom.proxy.errors import BadStreamKey
from streamfrom.proxy.execution import session_connections
from streamfrom.proxy.sql.queues import stream_statements
from streamfrom.proxy.sql.queues.stream_statements import MessageStream, stream_keys
from streamfrom.proxy.wire.framing import frames
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Silence
from tests.proxy.rigs import RecordingLink
from tests.proxy.wire.peers import unframed
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.sqlparse_ext.facts import statement


@in_turn
@cases(database=str, sql=str, code=ast.literal_eval)
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


async def test_a_stream_takes_its_columns_from_any_shard_that_answers(
    server, other_server, messages, monkeypatch
):
    monkeypatch.setattr(session_connections, "ANSWERS_WITHIN_S", 0.01)
    client = await messages.client("commerce")
    server.on("WHERE 1 = 0", Silence())
    assert (await client.query("STREAM id FROM msg LIMIT 1 WAIT 0")).error is None
    assert any("WHERE 1 = 0" in text for text in other_server.heard)


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


def row(number, size=10):
    return ClaimedRow(b"%d" % number, "-", 0, 0, 1, bytes([number]) * size)


ROWS = [row(1), row(2), row(3)]
LARGE = [row(number, 100_000) for number in (1, 2, 3)]


class NarrowLink(RecordingLink):
    """A socket that is full after every write."""

    def write(self, data):
        super().write(data)
        self.blocked = True


class Scene:
    """A stream and its client's link."""

    def __init__(self, link=None, sequence=4, rows_max=None):
        self.link = link or RecordingLink()
        self.stream = MessageStream(
            self.link.link,
            shards=None,
            columns=("id", "message"),
            sequence=sequence,
            rows_max=rows_max,
        )

    @property
    def rows_written(self):
        return len(unframed(bytes(self.link.written), 4))


@pytest.fixture
async def scene():
    return Scene()


@pytest.fixture
async def narrow():
    return Scene(NarrowLink())


async def test_the_last_rows_of_a_limit_leave_with_the_end():
    scene = Scene(rows_max=3)
    assert scene.stream.deliver(ROWS[:2])
    assert scene.rows_written == 2
    assert scene.stream.deliver(ROWS[2:])
    assert scene.rows_written == 2
    scene.link.write(b"")
    assert scene.rows_written == 3


async def test_large_rows_go_out_as_the_socket_takes_them(narrow):
    assert not narrow.stream.deliver(LARGE)
    assert narrow.rows_written == 1
    assert not narrow.stream.resume()
    assert narrow.rows_written == 1
    for count in (2, 3):
        narrow.link.blocked = False
        assert not narrow.stream.resume()
        assert narrow.rows_written == count
    narrow.link.blocked = False
    assert narrow.stream.resume()
    assert narrow.link.written == frames([r.payload for r in LARGE], 4)[0]


async def test_only_rows_that_the_socket_does_not_have_are_given_back(scene, narrow):
    narrow.stream.deliver(LARGE)
    assert list(narrow.stream.close()) == LARGE[1:]
    assert narrow.link.high_water_bytes == net.WRITE_HIGH_WATER_BYTES
    scene.stream.deliver(ROWS)
    assert list(scene.stream.close()) == []
    assert list(Scene().stream.close()) == []


async def test_a_client_that_has_left_takes_nothing(scene):
    scene.link.close()
    with pytest.raises(ReceiverGone):
        scene.stream.deliver(ROWS)
    assert list(scene.stream.close()) == []


async def test_a_client_that_leaves_while_it_is_written_to_gives_the_rest_back(scene):
    scene.link.room_bytes = 50_000
    scene.stream.deliver(LARGE)
    scene.link.blocked = False
    scene.link.close()
    assert not scene.stream.resume()
    assert [int(r.id) for r in scene.stream.close()] == [2, 3]
