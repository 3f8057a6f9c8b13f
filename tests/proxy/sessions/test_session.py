import asyncio
import contextlib

import pytest
import structlog

from proxy.config.file import Role, Secret, TransactionMode, User
from proxy.sessions.session import QUEUED_BYTES_MAX
from proxy.wire.constants import Capability, Status
from proxy.wire.framing import frame
from tests.proxy.fake_client import MODERN, OLD, Client, Refused
from tests.proxy.fake_server import (
    Error,
    HangUp,
    Ok,
    Rows,
    Several,
    Silence,
    rows_of,
    until,
)
from tests.proxy.house import add_message_table, claimed, running_proxy


ADMIN = User("root", Secret(""), None, Role.READWRITE, None)
EVE = User("eve", Secret("sesame"), None, Role.READWRITE, frozenset({"plain"}))
READER = User("reader", Secret(""), None, Role.READONLY, None)
BIG = Rows(("a",), ((b"x" * 1_000_000,),) * 24)

PING, STATISTICS, DEBUG, QUIT, RESET = b"\x0e", b"\x09", b"\x0d", b"\x01", b"\x1f"


@pytest.fixture
async def house(server):
    async with running_proxy(server) as made:
        yield made


async def refused(attempt):
    """The error that an attempt to get in was answered with."""
    with pytest.raises(Refused) as caught:
        await attempt
    return caught.value.error


# --- getting in ------------------------------------------------------------------------


async def test_a_client_is_greeted_like_by_the_server_behind(server, house):
    client = await house.greeted()
    assert client.greeting.server_version == server.version
    assert client.greeting.connection_id > 0
    assert not client.greeting.capabilities & Capability.SSL


async def test_a_login_may_name_a_target(house):
    client = await house.client("plain:-@primary")
    assert (await client.query("SELECT 1")).values == [b"1"]


@pytest.mark.parametrize(
    ("user", "password", "database", "code"),
    [
        ("eve", "wrong", None, 1045),
        ("nobody", "", None, 1045),
        ("eve", "sesame", "commerce", 1044),
        ("root", "", "nowhere", 1049),
        ("root", "", "plain@replica", 1105),
    ],
)
async def test_who_may_not_come_in_is_told_why_and_never_read_again(
    server, other_server, user, password, database, code
):
    async with running_proxy(server, other_server, users=(ADMIN, EVE)) as house:
        client = await house.greeted()
        with structlog.testing.capture_logs() as logs:
            error = await refused(client.log_in(user, password, database))
            client.send("SELECT 'too late'")
            assert await client.is_closed()
        assert error.code == code
        assert "SELECT 'too late'" not in server.heard
        assert "sesame" not in str(logs)


async def test_without_users_only_this_machine_gets_in(server, monkeypatch):
    from proxy.net import Link

    monkeypatch.setattr(Link, "is_loopback", property(lambda _: False))
    async with running_proxy(server) as house:
        error = await refused(house.greeted())
        assert error.code == 1130
        assert b"serves its own machine only" in error.message


async def test_one_connection_too_many_is_told_instead_of_a_greeting(server):
    async with running_proxy(server, max_connections=2) as house:
        first = await house.client()
        await house.client()
        assert (await refused(house.greeted())).code == 1040
        assert (await first.query("SELECT 1")).values == [b"1"]
        first.vanish()
        await until(lambda: len(house.app._sessions) == 1)
        await house.client()


async def test_who_does_not_finish_the_login_in_time_is_left(server):
    async with running_proxy(server, connect_timeout_s=0.05) as house:
        logged_in = await house.client()
        client = await house.greeted()
        assert await client.is_closed()
        assert (await logged_in.query("SELECT 1")).values == [b"1"]


async def test_commands_may_come_in_the_same_segment_as_the_login(house):
    client = await house.greeted()
    login = client.login("root", "", "plain")
    from proxy.wire.handshake import encode_login

    client.write(frame(encode_login(login), 1) + frame(b"\x03SELECT 1", 0))
    client._framer.next_sequence = 2
    assert (await client.packet())[0] == 0
    assert (await client.answer())[0].values == [b"1"]


# --- commands --------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [b"", b"\x1b\x05", b"\x0c\x01"])
async def test_a_malformed_command_closes_this_connection_and_no_other(house, payload):
    other = await house.client()
    client = await house.client()
    client.write(frame(payload, 0))
    client._framer.next_sequence = 1
    error = await refused(client.packet())
    assert error.code == 1835
    assert await client.is_closed()
    assert (await other.query("SELECT 1")).values == [b"1"]


async def test_quit_closes_without_a_word(house):
    client = await house.client()
    client.write(frame(QUIT, 0))
    assert await client.is_closed()
    await until(lambda: not house.app._sessions)


async def test_pipelined_commands_are_answered_in_order(server, house):
    gate = asyncio.Event()
    server.once("first", Silence(gate, rows_of(1)))
    server.on("second", rows_of(2))
    server.on("third", Error(1064, "third"))
    client = await house.client()
    for sql in ("SELECT first", "SELECT second", "SELECT third"):
        client.send(sql)
    client.write(frame(PING, 0))
    await until(lambda: "SELECT first" in server.heard)
    assert "SELECT second" not in server.heard
    gate.set()
    assert (await client.answer())[0].values == [b"1"]
    assert (await client.answer())[0].values == [b"2"]
    assert (await client.answer())[0].message == "third"
    assert (await client.answer())[0].ok is not None


async def test_a_client_that_sends_too_much_ahead_is_not_read_until_it_is_done(server, house):
    gate = asyncio.Event()
    server.once("first", Silence(gate, rows_of(1)))
    client = await house.client()
    client.send("SELECT first")
    await until(lambda: "SELECT first" in server.heard)
    large = b"\x03SELECT '" + b"x" * 100_000 + b"'"
    for _ in range(200):
        client.write(frame(large, 0))
    (session,) = house.app._sessions.values()
    await until(lambda: session._queued_bytes > QUEUED_BYTES_MAX)
    assert session._queued_bytes < 3 * QUEUED_BYTES_MAX
    assert not session._link._transport.is_reading()
    gate.set()
    assert (await client.answer())[0].values == [b"1"]
    for _ in range(200):
        assert (await client.answer())[0].values == [b"1"]
    assert session._queued_bytes == 0
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_slow_client_stops_its_server_and_gets_everything_in_the_end(server, house):
    server.on("FROM t", BIG)
    client = await house.client()
    await client.query("SELECT 1")
    client.stop_reading()
    client.send("SELECT a FROM t")
    await until(lambda: server.relays and server.relays[0].is_stalled)
    (session,) = house.app._sessions.values()
    await until(lambda: session._link.blocked)
    assert session._link._transport.get_write_buffer_size() < 2 << 20
    client.read_on()
    assert len((await client.answer())[0].rows) == 24


# --- several statements in one command -------------------------------------------------


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_several_statements_are_one_numbered_answer(server, house, capabilities):
    server.on("FROM t", rows_of(1, 2))
    server.on("CALL", Several((rows_of(7), Ok())))
    client = await house.client(capabilities=capabilities)
    client.send("SELECT id FROM t; SET @a = 1; SHOW DATABASES; CALL p(); USE plain; SELECT 1")
    rows, assigned, databases, first, second, used, last = await client.answer()
    assert rows.values == [b"1", b"2"]
    assert databases.values == [b"information_schema", b"plain"]
    assert first.values == [b"7"]
    assert last.values == [b"1"]
    for result in (rows, assigned, databases, first, second, used):
        assert result.status & Status.MORE_RESULTS_EXISTS
    assert not last.status & Status.MORE_RESULTS_EXISTS


async def test_the_first_error_ends_the_command(server, house):
    server.on("bad", Error(1064, "no"))
    client = await house.client()
    client.send("SELECT 1; SELECT bad; SELECT 'never'")
    first, second = await client.answer()
    assert first.values == [b"1"]
    assert second.code == 1064
    assert "SELECT 'never'" not in server.heard
    client.send("SELECT 1; USE nowhere; SELECT 'never'")
    assert [result.code for result in await client.answer()] == [0, 1049]


async def test_who_did_not_ask_for_several_statements_may_not_send_them(server, house):
    client = await house.client(capabilities=MODERN & ~Capability.MULTI_STATEMENTS)
    for sql in ("SELECT 1; DELETE FROM t", "BEGIN; DELETE FROM t", "USE plain; SELECT 1"):
        assert (await client.query(sql)).code == 1064
    assert not any("DELETE" in text for text in server.heard)
    assert (await client.command(b"\x1b\x00\x00")).ok is not None
    client.send("SELECT 1; SELECT 1")
    assert len(await client.answer()) == 2
    assert (await client.command(b"\x1b\x01\x00")).ok is not None
    assert (await client.query("SELECT 1; SELECT 1")).code == 1064


# --- a fresh session -------------------------------------------------------------------


async def test_another_user_has_its_own_rights(server, other_server):
    async with running_proxy(server, other_server, users=(ADMIN, EVE)) as house:
        client = await house.client("commerce")
        await client.change_user("eve", "sesame")
        assert (await client.query("USE commerce")).code == 1044
        assert (await client.query("USE plain")).error is None
        error = await refused(client.change_user("root", "wrong"))
        assert error.code == 1045
        assert await client.is_closed()


async def test_a_change_of_user_may_not_overtake_what_is_running(server, house):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(0)))
    client = await house.client()
    client.send("SELECT SLEEP(9)")
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    with pytest.raises(EOFError):
        await client.change_user("root")
    await until(lambda: not house.app._sessions)


# --- failures --------------------------------------------------------------------------


async def test_a_fault_of_ours_is_an_internal_error_and_logged_once(server, house, monkeypatch):
    client = await house.client()
    await client.query("SELECT 1")
    (session,) = house.app._sessions.values()

    def fail(*_):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(session._parts.executor, "settle", fail)
    monkeypatch.setattr(session._parts.preparation, "place", fail)
    with structlog.testing.capture_logs() as logs:
        direct = await client.query("SELECT 1")
        monkeypatch.undo()
        monkeypatch.setattr(session._parts.preparation, "place", fail)
        long_way = await client.query("SHOW TABLES FROM x")
    for result in (direct, long_way):
        assert result.code == 1105
        assert result.message == (
            f"internal error (connection {session.connection_id}; the proxy's log says more)"
        )
    assert [line["event"] for line in logs] == ["internal error"] * 2
    assert all(line["connection"] == session.connection_id for line in logs)


async def test_a_lost_server_is_an_error_and_the_connection_goes_on(server, house):
    client = await house.client()
    await client.query("SELECT 1")
    server.once("INSERT", HangUp())
    result = await client.query("INSERT INTO t VALUES (1)")
    assert result.code == 1105
    assert "whether it took effect is unknown" in result.message
    assert (await client.query("SELECT 1")).values == [b"1"]
    assert server.heard.count("INSERT INTO t VALUES (1)") == 1


async def test_a_read_whose_connection_broke_is_answered_all_the_same(server, house):
    client = await house.client()
    await client.query("SELECT 1")
    server.once("FROM t", HangUp())
    server.on("FROM t", rows_of(5))
    assert (await client.query("SELECT id FROM t")).values == [b"5"]


async def test_a_write_that_a_read_only_server_refused_is_tried_again(server, house):
    client = await house.client()
    await client.query("SELECT 1")
    server.once("INSERT", Error(1290, "running with the --read-only option"))
    assert (await client.query("INSERT INTO t VALUES (1)")).error is None
    assert server.heard.count("INSERT INTO t VALUES (1)") == 2


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_an_error_behind_some_rows_is_numbered_right(server, house, capabilities):
    client = await house.client(capabilities=capabilities)
    await client.query("SELECT 1")
    # 5 bytes of count, 27 of definition, 100 a row: the break is between two rows.
    server.once("FROM t", HangUp(Rows(("a",), ((b"x" * 95,),) * 900), 5 + 27 + 700 * 100))
    result = await client.query("SELECT a FROM t")
    assert len(result.rows) == 700
    assert result.code == 1105
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_break_inside_a_row_closes_the_connection_rather_than_lie(server, house):
    client = await house.client()
    await client.query("SELECT 1")
    server.once("FROM t", HangUp(BIG, 1_500_000))
    with pytest.raises((EOFError, ConnectionError)):
        await client.query("SELECT a FROM t")


async def test_a_session_whose_state_was_lost_is_closed(server, house):
    client = await house.client()
    await client.query("SET @a = 1")
    server.break_connections()
    result = await client.query("SELECT @a")
    assert result.code == 2013
    assert await client.is_closed()


# --- clients that leave ----------------------------------------------------------------


@pytest.mark.parametrize("way", ["direct", "long"])
async def test_what_a_vanished_client_was_running_is_killed(server, house, way):
    client = await house.client()
    if way == "direct":
        await client.query("SELECT 1")
    server.once("SLEEP", Silence())
    client.send("SELECT SLEEP(99)")
    await until(lambda: "SELECT SLEEP(99)" in server.heard)
    (connection,) = server.relays
    with structlog.testing.capture_logs() as logs:
        client.vanish()
        await until(lambda: f"KILL {connection.id}" in server.controlled)
        await until(lambda: not server.relays)
    assert [line["event"] for line in logs] == ["session closed"]


async def test_a_vanished_clients_transaction_is_rolled_back(server, house):
    client = await house.client()
    for sql in ("SET @secret = 1", "BEGIN", "INSERT INTO t VALUES (1)"):
        assert (await client.query(sql)).error is None
    (connection,) = server.relays
    client.vanish()
    await until(lambda: not connection.in_transaction)
    assert connection.user_variables == set()


async def test_a_client_that_leaves_a_slow_answer_leaves_nothing_behind(server, house):
    server.on("FROM t", BIG)
    client = await house.client()
    client.stop_reading()
    client.send("SELECT a FROM t")
    await until(lambda: server.relays and server.relays[0].is_stalled)
    client.vanish()
    await until(lambda: not server.relays)
    await until(lambda: not house.app._sessions)


# --- KILL ------------------------------------------------------------------------------


# --- STREAM ----------------------------------------------------------------------------


@pytest.fixture
async def streaming(server):
    add_message_table(server)
    async with running_proxy(server) as made:
        yield made


async def stream(house, sql="STREAM * FROM msg", **options):
    client = await house.client(**options)
    client.send(sql)
    assert await client.head() == 2
    return client


async def insert(server, house, number, message):
    """Insert a message through the proxy; the claim that follows finds it."""
    server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(number, message),)))
    client = await house.client()
    result = await client.query(f"INSERT INTO msg (id, message) VALUES ({number}, 'x')")
    assert result.error is None


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_messages_arrive_as_rows_without_an_end(server, streaming, capabilities):
    client = await stream(streaming, capabilities=capabilities)
    for number in (5, 6):
        await insert(server, streaming, number, b"hello")
        assert await client.row() == (str(number).encode(), b"hello")


async def test_kill_query_ends_a_stream_and_the_connection_goes_on(server, streaming):
    client, killer = await stream(streaming), await streaming.client()
    await insert(server, streaming, 5, b"hello")
    await client.row()
    await killer.query(f"KILL QUERY {client.greeting.connection_id}")
    assert (await refused(client.row())).code == 1317
    assert (await client.query("SELECT 1")).values == [b"1"]
    client.send("STREAM * FROM msg")
    assert await client.head() == 2


async def test_quit_in_a_stream_ends_both_at_once(streaming):
    client = await stream(streaming)
    client.write(frame(PING, 0) + frame(QUIT, 0))
    assert await client.is_closed()
    await until(lambda: not streaming.app._sessions)
    assert not streaming.app._registry._attached


async def test_a_client_that_vanishes_leaves_its_stream(streaming):
    client = await stream(streaming)
    client.vanish()
    await until(lambda: not streaming.app._registry._attached)


async def test_a_command_sent_ahead_waits_for_the_streams_end(streaming):
    client, killer = await stream(streaming), await streaming.client()
    client.write(frame(PING, 0))
    await killer.query(f"KILL QUERY {client.greeting.connection_id}")
    assert (await refused(client.row())).code == 1317
    assert (await client.answer())[0].ok is not None


async def sent(session, number):
    """Wait until a stream has written so many rows behind its four packets of columns."""
    await until(lambda: session._parts.streams.current.sequence == (number + 4) % 256)


async def test_a_stream_that_has_caught_up_gets_the_next_batch(server, streaming):
    client = await stream(streaming)
    client.stop_reading()
    (session,) = [s for s in streaming.app._sessions.values() if s.is_streaming]
    number = 0
    while not session._link.blocked:
        number += 1
        await insert(server, streaming, number, b"x" * 1_000_000)
        await sent(session, number)
    await insert(server, streaming, number + 1, b"late")
    client.read_on()
    for expected in range(1, number + 2):
        ident, _ = await client.row()
        assert ident == str(expected).encode()


async def test_a_shutdown_ends_streams_with_its_own_error(server):
    add_message_table(server)
    async with contextlib.AsyncExitStack() as stack:
        house = await stack.enter_async_context(running_proxy(server))
        client = await stream(house)
        stopping = asyncio.ensure_future(house.app.stop())
        assert (await refused(client.row())).code == 1053
        assert await client.is_closed()
        await stopping


async def test_a_shutdown_lets_statements_end(server):
    async with running_proxy(server) as house:
        gate = asyncio.Event()
        server.once("SLEEP", Silence(gate, rows_of(0)))
        idle, busy, hasty = [await house.client() for _ in range(3)]
        busy.send("SELECT SLEEP(9)")
        await until(lambda: "SELECT SLEEP(9)" in server.heard)
        stopping = asyncio.ensure_future(house.app.stop())
        assert await idle.is_closed()
        gate.set()
        assert (await busy.answer())[0].values == [b"0"]
        assert await busy.is_closed()
        assert await hasty.is_closed()
        await stopping


# --- what is configured ----------------------------------------------------------------


async def test_a_reader_only_reads_on_either_way(server):
    async with running_proxy(server, users=(READER,)) as house:
        client = await house.client(user="reader")
        for _ in range(2):
            assert (await client.query("SELECT 1")).values == [b"1"]
            assert (await client.query("INSERT INTO t VALUES (1)")).code == 1142
            assert (await client.query("STREAM * FROM msg")).code == 1142
        assert not any("INSERT" in text for text in server.heard)


async def test_a_transaction_keeps_to_one_shard_where_the_configuration_says_so(
    server, other_server
):
    single = TransactionMode.SINGLE
    async with running_proxy(server, other_server, transaction_mode=single) as house:
        client = await house.client("commerce")
        await client.query("BEGIN")
        await client.query("INSERT INTO t (id) VALUES (1)")
        result = await client.query(f"INSERT INTO t (id) VALUES ({1 << 63})")
        assert 'transaction_mode is "single"' in result.message


async def test_a_packet_larger_than_allowed_is_refused(server):
    async with running_proxy(server, max_allowed_packet_bytes=10_000) as house:
        client = await house.client()
        client.write(frame(b"\x03" + b"x" * 20_000, 0))
        client._framer.next_sequence = 0
        assert (await refused(client.packet())).code == 1153


async def test_nothing_secret_is_logged(server):
    with structlog.testing.capture_logs() as logs:
        async with running_proxy(server, users=(ADMIN, EVE)) as house:
            client = await house.client(user="eve", password="sesame")
            await client.query("SELECT 'credit card'")
            await refused(Client.connect(house.port, user="eve", password="open-sesame"))
    text = str(logs)
    assert "session opened" in text
    for secret in ("sesame", "credit card"):
        assert secret not in text
