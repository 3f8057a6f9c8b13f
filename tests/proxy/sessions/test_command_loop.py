import asyncio

import pytest
import structlog

from streamfrom.proxy.execution.executor import Executor
from streamfrom.proxy.sessions.command_loop import QUEUED_BYTES_MAX
from streamfrom.proxy.sql.compile.session_target import SessionTarget
from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.framing import frame
from tests.proxy.fake_answers import HangUp, Rows, Silence, rows_of, until
from tests.proxy.fake_client import MODERN, OLD


async def test_a_client_that_sends_too_much_ahead_is_not_read_until_it_is_done(server, proxy):
    gate = asyncio.Event()
    server.once("first", Silence(gate, rows_of(1)))
    client = await proxy.client()
    client.send("SELECT first")
    await until(lambda: "SELECT first" in server.heard)
    large = b"\x03SELECT '" + b"x" * 100_000 + b"'"
    for _ in range(60):
        client.write(frame(large, 0))
    memory = proxy.app.services.memory_of("root")
    await until(lambda: memory.used_bytes > QUEUED_BYTES_MAX)
    for _ in range(100):
        await asyncio.sleep(0)
    assert memory.used_bytes < 3 * QUEUED_BYTES_MAX, "no more is read from the client"
    gate.set()
    assert (await client.answer())[0].values == [b"1"]
    for _ in range(60):
        assert (await client.answer())[0].values == [b"1"]
    assert memory.used_bytes == 0
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_client_that_reads_no_answers_has_no_more_of_its_commands_carried_out(
    server, proxy
):
    server.on("FROM t", rows_of("x" * 200_000))
    client = await proxy.client()
    for _ in range(100):
        client.send("SELECT a FROM t")
    (session,) = proxy.app.services.sessions.values()
    memory = proxy.app.services.memory_of("root")
    await until(lambda: memory.used_bytes and session.work.process().command == "Sleep")
    for _ in range(100):
        await asyncio.sleep(0)
    assert server.heard.count("SELECT a FROM t") < 100
    client.send("SELECT last")
    for _ in range(100):
        assert (await client.answer())[0].values == [b"x" * 200_000]
    assert (await client.answer())[0].values == [b"1"]


async def test_who_did_not_ask_for_several_statements_may_not_send_them(server, proxy):
    client = await proxy.client(capabilities=MODERN & ~Capability.MULTI_STATEMENTS)
    for sql in ("SELECT 1; DELETE FROM t", "BEGIN; DELETE FROM t", "USE plain; SELECT 1"):
        assert (await client.query(sql)).code == 1064
    assert not any("DELETE" in text for text in server.heard)
    assert (await client.command(b"\x1b\x00\x00")).ok is not None
    client.send("SELECT 1; SELECT 1")
    assert len(await client.answer()) == 2
    assert (await client.command(b"\x1b\x01\x00")).ok is not None
    assert (await client.query("SELECT 1; SELECT 1")).code == 1064


async def test_a_fault_of_ours_is_an_internal_error_and_logged_once(server, proxy, monkeypatch):
    client = await proxy.client()
    await client.query("SELECT 1")

    def fail(*_):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(Executor, "settle", fail)
    monkeypatch.setattr(SessionTarget, "resolve", fail)
    with structlog.testing.capture_logs() as logs:
        direct = await client.query("SELECT 1")
        monkeypatch.undo()
        monkeypatch.setattr(SessionTarget, "resolve", fail)
        long_way = await client.query("SHOW TABLES FROM x")
        monkeypatch.undo()
        monkeypatch.setattr(SessionTarget, "parse", fail)
        read = await client.query("SELECT 2")
        monkeypatch.undo()
    assert (await client.query("SELECT 1")).values == [b"1"]
    for result in (direct, long_way, read):
        assert result.code == 1105
        assert result.message == (
            f"internal error (connection {client.greeting.connection_id}; the proxy's log says more)"
        )
    assert [line["event"] for line in logs] == ["internal error"] * 3
    assert all(line["connection"] == client.greeting.connection_id for line in logs)


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_an_error_behind_some_rows_is_numbered_right(server, proxy, capabilities):
    client = await proxy.client(capabilities=capabilities)
    await client.query("SELECT 1")
    # 5 bytes of count, 27 of definition, 100 a row: the break is between two rows.
    server.once("FROM t", HangUp(Rows(("a",), ((b"x" * 95,),) * 900), 5 + 27 + 700 * 100))
    result = await client.query("SELECT a FROM t")
    assert len(result.rows) == 700
    assert result.code == 1105
    assert (await client.query("SELECT 1")).values == [b"1"]
