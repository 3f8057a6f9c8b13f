"""What a session does about its limits: statements that take too long, clients that are silent."""

import asyncio
import gc
import random
import tracemalloc

import pytest
from structlog.testing import capture_logs

from streamfrom.proxy.wire.commands import stmt_close, stmt_send_long_data
from streamfrom.proxy.wire.framing import frame
from tests.proxy.fake_answers import Error, Ok, Rows, Silence, rows_of, until
from tests.proxy.fake_client import MODERN, OLD, Refused
from tests.proxy.rigs import running_proxy


LIMIT_S = 3600.0


@pytest.fixture
async def proxy(server, other_server):
    async with running_proxy(server, other_server, statement_timeout_s=LIMIT_S) as made:
        yield made


def overdue(proxy):
    """Let all statements under way have taken too long."""
    now_s = asyncio.get_running_loop().time() + LIMIT_S + 1
    for session in proxy.app.services.sessions.values():
        session.work.keep_limits(now_s, proxy.app.services.config)


async def late_result(proxy, client, sql, *servers):
    """Return the result of a statement that has taken too long once *servers* have heard of it."""
    client.send(sql)
    await until(lambda: all(sql in server.heard for server in servers))
    overdue(proxy)
    return (await client.answer())[-1]


async def test_a_write_to_several_shards_that_was_stopped_is_undone(
    server, other_server, proxy
):
    client = await proxy.client("commerce")
    other_server.once("DELETE", Silence())
    found = await late_result(proxy, client, "DELETE FROM t", server, other_server)
    assert found.code == 3024
    assert "ROLLBACK" in server.heard


async def test_a_write_that_succeeded_all_the_same_is_not_denied(server, proxy, monkeypatch):
    from tests.proxy import fake_connection

    async def succeeds(self, _gate, answer):
        self.was_killed.clear()
        await self.was_killed.wait()
        return answer

    monkeypatch.setattr(fake_connection.Connection, "_silence", succeeds)
    client = await proxy.client()
    server.once("UPDATE", Silence(answer=Ok(affected_rows=3)))
    assert (await late_result(proxy, client, "UPDATE t SET a = 1", server)).error is None
    server.once("SLEEP", Silence(answer=rows_of(1)))
    assert (await late_result(proxy, client, "SELECT SLEEP(9)", server)).code == 3024


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_an_error_behind_some_rows_is_the_right_one(server, proxy, capabilities):
    client = await proxy.client(capabilities=capabilities)
    answer = Rows(("a",), ((b"1",),), then=Error(1317, "Query execution was interrupted"))
    server.once("SELECT a", Silence(answer=answer))
    assert (await late_result(proxy, client, "SELECT a FROM t", server)).code == 3024
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_server_that_cannot_be_stopped_loses_its_connection(server, monkeypatch):
    from streamfrom.proxy.sessions import command_loop

    monkeypatch.setattr(command_loop, "STOP_S", 0.05)
    server.once("KILL QUERY", *[Ok()] * 9)
    server.once("UPDATE", Silence())
    async with running_proxy(server, statement_timeout_s=0.05) as proxy:
        result = await (await proxy.client()).query("UPDATE t SET a = 1")
    assert result.code == 1105
    assert "whether it took effect is unknown" in result.message


def held_bytes(proxy, user="root"):
    return proxy.app.services.memory_of(user).used_bytes


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_clients_do_nothing_is_held_when_they_are_gone(server, seed):
    dice = random.Random(seed)
    async with running_proxy(
        server, connection_memory_bytes=400_000, max_allowed_packet_bytes=100_000
    ) as proxy:
        for _ in range(6):
            client = await proxy.client()
            known = []
            for _ in range(25):
                match dice.randrange(8):
                    case 0 | 1:
                        known.append((await client.prepare("SELECT ?"))[0])
                    case 2 if known:
                        client.write(stmt_close(known.pop(dice.randrange(len(known)))))
                    case 3 if known:
                        data = b"x" * dice.randrange(60_000)
                        client.write(stmt_send_long_data(dice.choice(known), 0, data))
                    case 4 if known:
                        await client.execute(dice.choice(known), b"")
                    case 5 if dice.random() < 0.3:
                        await client.command(b"\x1f")
                        known = []
                        assert held_bytes(proxy) == 0
                    case 6 if dice.random() < 0.3:
                        await client.change_user("root", "")
                        known = []
                        assert held_bytes(proxy) == 0
                    case 7:
                        large = b"\x03SELECT '" + b"x" * dice.randrange(90_000) + b"'"
                        client.write(frame(large, 0) * 2)
                        await client.answer()
                        await client.answer()
                    case _:
                        pass
            if dice.random() < 0.5:
                client.write(frame(b"\x03SELECT '" + b"x" * 80_000, 0)[:70_000])
            client.vanish()
            await until(lambda: held_bytes(proxy) == 0)


def kept_bytes():
    """How much of what the proxy's protocol has read is still held by somebody."""
    gc.collect()
    wire = tracemalloc.Filter(inclusive=True, filename_pattern="*/proxy/wire/framing.py")
    taken = tracemalloc.take_snapshot().filter_traces([wire]).statistics("filename")
    return sum(each.size for each in taken)


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def test_a_large_command_does_not_stay_with_a_client_that_is_idle(server, traced):
    async with running_proxy(server) as proxy:
        client = await proxy.client()
        large = b"SELECT '" + b"x" * 300_000 + b"'"
        gate = asyncio.Event()
        server.once("SELECT 'x", Silence(gate, rows_of(1)))
        client.send(large)
        await until(lambda: held_bytes(proxy) > 300_000)
        assert kept_bytes() > 300_000
        gate.set()
        assert (await client.answer())[0].values == [b"1"]
        assert held_bytes(proxy) == 0
        # The fake server reads by the same code, and keeps what it read last.
        server.break_connections()
        await until(lambda: kept_bytes() < 100_000)
        statement, *_ = await client.prepare("SELECT ?")
        client.write(stmt_send_long_data(statement, 0, b"x" * 300_000))
        assert (await client.query("SELECT 1")).values == [b"1"]
        assert kept_bytes() < 100_000


async def test_what_strangers_do_fills_no_log(server, monkeypatch):
    monkeypatch.setattr("streamfrom.proxy.log.QUIET_S", 3600)
    with capture_logs() as logs:
        async with running_proxy(server, connect_timeout_s=0.05) as proxy:
            for each in [await proxy.greeted() for _ in range(20)]:
                assert await each.is_closed()
        async with running_proxy(server) as proxy:
            for _ in range(20):
                broken = await proxy.greeted()
                broken.write(frame(b"GET / HTTP/1.1", 1))
                with pytest.raises(Refused):
                    await broken.packet(2)
            for _ in range(2):
                with pytest.raises(Refused):
                    await proxy.client(user="nobody")
    told = [(each["event"], each.get("count")) for each in logs if "host" in each]
    assert told.count(("login timed out", 1)) == 1
    # A guess of a password has a line each: guesses are slow.
    assert told[-3:] == [("connection refused", count) for count in (1, None, None)]
