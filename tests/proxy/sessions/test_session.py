import ast
import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.sessions.session import SWEEP_S_MAX, SWEEP_S_MIN, keep_time_limits
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import Tracker
from tests.cases import cases
from tests.proxy.fake_answers import Ok, Rows, Silence, rows_of, until
from tests.proxy.fake_client import Refused
from tests.proxy.rigs import add_message_table, claimed, running_proxy
from tests.virtual_loop import running


ADMIN = User("root", Secret(""), None, Role.USER)
EVE = User("eve", Secret("sesame"), None, Role.USER)

PING, RESET = b"\x0e", b"\x1f"


async def refused(attempt):
    """The error that an attempt to get in was answered with."""
    with pytest.raises(Refused) as caught:
        await attempt
    return caught.value.error


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


async def test_a_change_of_user_may_not_overtake_what_is_running(server, proxy):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(0)))
    client = await proxy.client()
    client.send("SELECT SLEEP(9)")
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    with pytest.raises(EOFError):
        await client.change_user("root")
    await until(lambda: not proxy.app.services.sessions)


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


# A login makes a session whole; another login makes another one.
GUEST = User("guest", Secret("sesame"), None, Role.USER)


@pytest.mark.parametrize("how", ["reset", "change_user"])
async def test_a_fresh_session_has_nothing_of_the_one_before(server, other_server, how):
    async with running_proxy(server, other_server, users=(ADMIN, GUEST)) as proxy:
        client = await proxy.client("plain")
        prepared, _, _ = await client.prepare("SELECT 1")
        for sql in (
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "SET @secret = 1",
            "SET sql_mode = 'ANSI'",
        ):
            assert (await client.query(sql)).error is None
        if how == "reset":
            assert (await client.command(b"\x1f")).ok is not None
        else:
            await client.change_user("guest", "sesame", "plain")
            assert (await client.query("SELECT USER()")).error is None
            assert any("'guest@" in text for text in server.heard)
        result = await client.query("SELECT 1")
        assert not result.status & Status.IN_TRANS
        assert (await client.execute(prepared)).code == 1243
        for connection in server.relays:
            assert connection.user_variables == set()
            assert connection.variables.get("sql_mode") != "ANSI"
            assert not connection.in_transaction


class Session:
    """Notes when it is looked at."""

    def __init__(self, user="u"):
        self.user, self.work = user, self
        self.looks: list[float] = []

    def keep_limits(self, now_s, limits):
        self.looks.append(now_s)


@running
async def test_sweeps_are_as_frequent_as_the_limit_in_force_wants_and_leave_out_strangers():
    session, stranger = Session(), Session(user=None)
    services: Any = SimpleNamespace(sessions={1: session, 2: stranger})
    for limit_s, sweep_s in ((2, 0.2), (0.01, SWEEP_S_MIN), (28_800, SWEEP_S_MAX), (0, 1)):
        services.config = SimpleNamespace(statement_timeout_s=limit_s)
        task = asyncio.ensure_future(keep_time_limits(services))
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(sweep_s * 3.5)
        task.cancel()
        assert session.looks == pytest.approx([began + sweep_s * n for n in (1, 2, 3)])
        session.looks.clear()
    assert not stranger.looks


@pytest.mark.parametrize(
    ("configured_s", "own_s", "version"),
    [
        (0, "5", "8.4.3"),
        (10, "5", "8.4.3"),
        (5, "10", "8.4.3"),
        (5, None, "8.4.3"),
        (10, "5", "10.11.6-MariaDB"),
    ],
)
async def test_the_sooner_limit_of_silence_counts_and_mariadb_says_nothing_of_a_clients_own(
    server, configured_s, own_s, version
):
    server.version = version
    server.on("SET wait_timeout", Ok(trackers=(Tracker(0, "wait_timeout", own_s or ""),)))
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        await client.query("SET wait_timeout = 5" if own_s else "SELECT 1")
        (session,) = proxy.app.services.sessions.values()
        limits = replace(proxy.app.services.config, idle_timeout_s=configured_s)
        now_s = asyncio.get_running_loop().time()
        session.work.keep_limits(now_s + 4, limits)
        assert (await client.query("SELECT 1")).values == [b"1"]
        session.work.keep_limits(now_s + 6, limits)
        if "MariaDB" not in version:
            assert (await refused(client.packet(0))).code == 4031
        assert await client.is_closed()


async def test_who_waits_for_an_answer_is_not_silent_and_without_a_limit_nobody_is_sent_away(
    server,
):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(1)))
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        (session,) = proxy.app.services.sessions.values()
        limits = replace(proxy.app.services.config, idle_timeout_s=0)
        session.work.keep_limits(1e9, limits)
        client.send("SELECT SLEEP(9)")
        await until(lambda: session.work.process().command == "Query")
        session.work.keep_limits(1e9, replace(limits, idle_timeout_s=5))
        gate.set()
        assert (await client.answer())[0].values == [b"1"]
