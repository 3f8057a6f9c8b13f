"""Prepared statements on one shard: handles, long data, cursors, and what becomes of them."""

import ast

import pytest

from streamfrom.proxy.wire.commands import stmt_close, stmt_send_long_data
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import parse_text_row
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import HANG_S, Error, Ok, rows_of, until
from tests.proxy.fake_client import MODERN, OLD, Refused, parameter
from tests.proxy.rigs import add_message_table, running_proxy
from tests.proxy.wire.peers import write_parameters


LAST = 0xFFFFFFFF


def stmt_reset(statement: int) -> bytes:
    """Return a COM_STMT_RESET."""
    return frame(b"\x1a" + statement.to_bytes(4, "little"), 0)


def told(server, *kinds):
    """Return what the relay connections of *server* were told, of these kinds."""
    return [text for text in server.heard if text.startswith(kinds)]


def value(row):
    """Return the one VAR_STRING of a binary row."""
    (payload,) = row
    assert payload[:2] == b"\0\0"
    return parse_text_row(payload[2:])[0]


@pytest.fixture
async def client(server):
    async with running_proxy(server) as proxy:
        yield await proxy.client()


@pytest.fixture(params=[MODERN, OLD], ids=["modern", "old"])
def capabilities(request):
    return request.param


@cases(version=str, body=str.encode, code=ast.literal_eval, words=str)
async def test_parameters_that_are_cut_are_refused_and_the_session_goes_on(
    server, version, body, code, words
):
    server.version = version
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        await client.prepare("UPDATE t SET a = ?")
        client.write(frame(b"\x17\x01\0\0\0\0\x01\0\0\0" + body, 0))
        result = await client.binary_answer()
        assert (result.code, result.message) == (code, words)
        assert (await client.execute(1, 5)).ok
    assert told(server, "EXECUTE") == ["EXECUTE UPDATE t SET a = ? [5]"]


async def test_a_statement_that_the_server_forgot_is_prepared_anew(server, client):
    await client.prepare("SELECT ?")
    for connection in server.relays:
        connection.prepared.clear()
    assert (await client.execute(1, 5)).rows
    server.once("SELECT", Error(1615, "needs to be re-prepared"))
    assert (await client.execute(1, 5)).rows


@pytest.mark.parametrize("sql", ["SELECT FOUND_ROWS(), @@warning_count", "SHOW WARNINGS"])
async def test_what_the_statement_before_left_is_told_in_binary_rows(server, capabilities, sql):
    async with running_proxy(server) as proxy:
        client = await proxy.client(capabilities=capabilities)
        await client.query("SELECT b FROM t")
        statement, _, _ = await client.prepare(sql)
        server.on(sql[:12], rows_of("x", "y"))
        for _ in range(2):
            rows = (await client.execute(statement)).rows
            assert [value(row) for row in rows] == [b"x", b"y"]
        server.once(sql[:12], Error(1064))
        assert (await client.execute(statement)).code == 1064
        assert (await client.execute(statement)).error is None


@in_turn
@pytest.mark.parametrize(
    ("sql", "code"), [("", 1065), ("SELECT 1; SELECT 2", 1064), ("STREAM nothing", 1064)]
)
async def test_what_cannot_be_prepared_is_told_at_once(sql, code, client):
    with pytest.raises(Refused) as refused:
        await client.prepare(sql)
    assert refused.value.error.code == code
    assert (await client.execute(LAST)).code == 1243


async def test_commands_sent_ahead_find_the_statement_they_mean(client):
    client.write(frame(b"\x16SELECT ?", 0))
    client.send_execute(LAST, 5)
    client.write(stmt_close(LAST))
    client.write(frame(b"\x0e", 0))
    # The answers: id, one parameter, one column.
    await client.packet(1)
    for _ in range(2):
        await client.packet()
    assert (await client.binary_answer()).rows
    assert (await client.answer())[-1].ok
    assert (await client.execute(LAST, 5)).code == 1243


async def test_long_data_pins_no_connection_and_is_used_once(server):
    async with running_proxy(server, pool_size=1) as proxy:
        client, other = await proxy.client(), await proxy.client()
        await client.prepare("INSERT INTO t VALUES (?, ?)")
        client.write(stmt_send_long_data(1, 1, b"abc") + stmt_send_long_data(1, 1, b"def"))
        assert (await other.query("SELECT 1")).rows
        long = write_parameters([parameter(1), parameter(None)])
        client.write(frame(b"\x17\x01\0\0\0\0\x01\0\0\0" + long, 0))
        assert (await client.binary_answer()).ok
        assert (await client.execute(1, 1, b"short")).ok
    assert told(server, "LONG_DATA", "EXECUTE") == [
        "LONG_DATA 1 6",
        "EXECUTE INSERT INTO t VALUES (?, ?) [1, b'abcdef']",
        "EXECUTE INSERT INTO t VALUES (?, ?) [1, b'short']",
    ]


async def test_too_much_long_data_is_told_by_the_execution(server):
    async with running_proxy(server, max_allowed_packet_bytes=1000) as proxy:
        client = await proxy.client()
        await client.prepare("SELECT ?")
        client.write(stmt_send_long_data(1, 0, b"x" * 900) * 2)
        assert "longer than 'max_allowed_packet'" in (await client.execute(1, 5)).message
        client.write(stmt_send_long_data(1, 8, b"x"))
        assert (await client.execute(1, 5)).code == 1210
        client.write(stmt_send_long_data(1, 8, b"x") + stmt_reset(1))
        assert (await client.answer())[-1].ok
        assert (await client.execute(1, 5)).rows


async def test_a_cursor_gives_rows_when_they_are_asked_for(server, capabilities):
    server.on("SELECT a", rows_of(1, 2, 3, column="a"))
    async with running_proxy(server, pool_size=2) as proxy:
        client, other = await proxy.client(capabilities=capabilities), await proxy.client()
        await client.prepare("SELECT a FROM t")
        result = await client.execute(1, flags=1)
        assert (result.rows, result.status & Status.CURSOR_EXISTS) == ([], 0x40)
        for _ in range(3):
            await other.query("SELECT 1")
        batch = await client.fetch(1, 2)
        assert [value(row) for row in batch.rows] == [b"1", b"2"]
        batch = await client.fetch(1, 2)
        assert [value(row) for row in batch.rows] == [b"3"]
        assert batch.status & Status.LAST_ROW_SENT
        assert (await client.fetch(1, 2)).code == 1421
        await until(lambda: told(server, "CLOSE SELECT a"))


# The rows of a shard, of several, of a merge, and of the proxy.
FETCHED = [
    "SELECT a FROM t WHERE id = 1",
    "SELECT a FROM t",
    "SELECT a FROM t LIMIT 99",
    "EXPLAIN SELECT a FROM t",
    "SHOW DATABASES",
    "SHOW DATABASES LIKE 'x'",
]


@in_turn
@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("sql", FETCHED)
async def test_whatever_answers_a_client_that_asks_for_a_cursor_fetches_the_same_rows(
    server, other_server, proxy, sql, size, capabilities
):
    for each in (server, other_server):
        for beginning in ("SELECT a", "EXPLAIN"):
            each.on(beginning, rows_of(*range(size), column="a"))
    client = await proxy.client("commerce", capabilities=capabilities)
    await client.prepare(sql)
    plain = await client.execute(1)
    assert not plain.status & Status.CURSOR_EXISTS
    for batch_rows in (1, 2, 99):
        opened = await client.execute(1, flags=1)
        assert (opened.rows, opened.status & Status.CURSOR_EXISTS) == ([], 0x40)
        rows = []
        while True:
            batch = await client.fetch(1, batch_rows)
            rows += batch.rows
            if batch.status & Status.LAST_ROW_SENT:
                break
            assert len(batch.rows) == batch_rows
            assert (await client.query("SELECT 1")).rows  # other statements may come between
        assert sorted(rows) == sorted(plain.rows)
        assert (await client.fetch(1, 1)).code == 1421


async def test_a_cursor_takes_an_error_and_an_answer_without_rows_as_they_are(
    server, client, capabilities
):
    for sql in ("SELECT a INTO @a", "SELECT a"):
        await client.prepare(sql)
    server.on("SELECT a INTO", Ok(1))
    assert (await client.execute(1, flags=1)).ok.affected_rows == 1
    server.once("SELECT a", Error(1222))
    assert (await client.execute(2, flags=1)).code == 1222
    assert (await client.fetch(2, 1)).code == 1421


async def test_no_cursor_is_over_a_stream_without_an_end(server):
    add_message_table(server)
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        await client.prepare("STREAM id FROM msg")
        assert "LIMIT" in (await client.execute(1, flags=1)).message
        await client.prepare("STREAM id FROM msg LIMIT 1 WAIT 0")
        assert (await client.execute(2, flags=1)).status & Status.CURSOR_EXISTS
        assert (await client.fetch(2, 1)).status & Status.LAST_ROW_SENT


async def test_an_open_cursor_keeps_its_connection_until_it_is_closed(server):
    server.on("SELECT a", rows_of(1, 2, column="a"))
    async with running_proxy(server, pool_size=1, pool_timeout_s=0.02) as proxy:
        client, other = await proxy.client(), await proxy.client()
        await client.prepare("SELECT a FROM t")
        await client.execute(1, flags=1)
        assert "no free connection" in (await other.query("SELECT 1")).message
        proxy.app.shards["plain", "-"].pool.timeout_s = HANG_S
        client.write(stmt_reset(1))
        assert (await client.answer())[-1].ok
        assert (await other.query("SELECT 1")).rows
        await client.execute(1, flags=1)
        client.write(stmt_close(1))
        assert (await other.query("SELECT 1")).rows
