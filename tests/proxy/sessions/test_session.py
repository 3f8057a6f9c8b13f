import ast
import asyncio

import pytest
import structlog

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.wire.framing import frame
from tests.cases import cases
from tests.proxy.fake_answers import Rows, Silence, rows_of, until
from tests.proxy.fake_client import Refused
from tests.proxy.rigs import add_message_table, claimed, running_proxy
from tests.proxy.wire.peers import encode_change_user


ADMIN = User("root", Secret(""), None, Role.USER)
EVE = User("eve", Secret("sesame"), None, Role.USER)
BIG = Rows(("a",), ((b"x" * 1_000_000,),) * 24)

PING, RESET = b"\x0e", b"\x1f"


@pytest.fixture
async def proxy(server):
    async with running_proxy(server) as made:
        yield made


async def refused(attempt):
    """The error that an attempt to get in was answered with."""
    with pytest.raises(Refused) as caught:
        await attempt
    return caught.value.error


# --- getting in ------------------------------------------------------------------------


@cases(user=str, password=str, database=ast.literal_eval, code=ast.literal_eval)
async def test_who_may_not_come_in_is_told_why_and_never_read_again(
    server, other_server, user, password, database, code
):
    async with running_proxy(server, other_server, users=(ADMIN, EVE)) as proxy:
        client = await proxy.greeted()
        with structlog.testing.capture_logs() as logs:
            error = await refused(client.log_in(user, password, database))
            client.send("SELECT 'too late'")
            assert await client.is_closed()
        assert error.code == code
        assert "SELECT 'too late'" not in server.heard
        assert "sesame" not in str(logs)


# --- commands --------------------------------------------------------------------------


async def test_a_slow_client_stops_its_server_and_gets_everything_in_the_end(server, proxy):
    server.on("FROM t", BIG)
    client = await proxy.client()
    await client.query("SELECT 1")
    client.stop_reading()
    client.send("SELECT a FROM t")
    await until(lambda: server.relays and server.relays[0].is_stalled)
    memory = proxy.app.services.memory_of("root")
    await until(lambda: memory.used_bytes)
    assert memory.used_bytes < 2 << 20
    client.read_on()
    assert len((await client.answer())[0].rows) == 24


# --- a fresh session -------------------------------------------------------------------


async def test_a_change_of_user_may_not_overtake_what_is_running(server, proxy):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(0)))
    client = await proxy.client()
    client.send("SELECT SLEEP(9)")
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    with pytest.raises(EOFError):
        await client.change_user("root")
    await until(lambda: not proxy.app.services.sessions)


# --- STREAM ----------------------------------------------------------------------------


@pytest.fixture
async def streaming(server):
    add_message_table(server)
    async with running_proxy(server) as made:
        yield made


async def stream(proxy, sql="STREAM * FROM msg", **options):
    client = await proxy.client(**options)
    client.send(sql)
    assert await client.head() == 2
    return client


async def insert(server, proxy, number, message):
    """Insert a message through the proxy; the claim that follows finds it."""
    server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(number, message),)))
    client = await proxy.client()
    result = await client.query(f"INSERT INTO msg (id, message) VALUES ({number}, 'x')")
    assert result.error is None


async def test_commands_sent_ahead_are_carried_out_behind_the_stream_in_their_order(
    server, streaming
):
    client, killer = await stream(streaming), await streaming.client()
    for payload in (
        PING,
        b"\x03SET autocommit = 0",
        b"\x02plain:-",
        b"\x03SELECT @@autocommit",
    ):
        client.write(frame(payload, 0))
    for payload in (RESET, b"\x03SELECT DATABASE()", b"\x03STREAM * FROM msg"):
        client.write(frame(payload, 0))
    await insert(server, streaming, 5, b"hello")
    assert (await client.row())[0] == b"5", "the stream goes on meanwhile"
    assert "SELECT @@autocommit" not in server.heard
    await killer.query(f"KILL QUERY {client.greeting.connection_id}")
    assert (await refused(client.row())).code == 1317
    answers = [(await client.answer())[0] for _ in range(6)]
    assert [answer.error for answer in answers] == [None] * 6
    heard = [sql for sql in server.heard if "autocommit" in sql.lower() or "DATABASE()" in sql]
    assert "SET autocommit = 0" in heard
    assert heard.index("SELECT @@autocommit") < heard.index("SELECT DATABASE()")
    assert await client.head() == 2, "and the next stream has begun"


async def test_another_user_cannot_be_asked_for_in_the_middle_of_a_stream(streaming):
    client = await stream(streaming)
    client.write(frame(encode_change_user(client.login("root", "", None)), 0))
    assert await client.is_closed()
    await until(lambda: not streaming.app.services.registry.here.receivers)


async def test_a_stream_that_has_caught_up_gets_the_next_batch(server, streaming):
    client = await stream(streaming, "STREAM /*vt+ PREFETCH=0 */ * FROM msg")
    client.stop_reading()
    registry, unread = streaming.app.services.registry, streaming.app.services.memory_of("root")
    number = 0
    while not unread.used_bytes:
        number += 1
        await insert(server, streaming, number, b"x" * 1_000_000)
        await until(lambda: registry.here.held() == number)  # noqa: B023  (asked at once)
    await insert(server, streaming, number + 1, b"late")
    client.read_on()
    for expected in range(1, number + 2):
        ident, _ = await client.row()
        assert ident == str(expected).encode()
