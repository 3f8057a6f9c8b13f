"""How a proxy ends while clients are at work."""

import asyncio

import pytest

from tests.proxy.fake_answers import HANG_S, Error, Ok, Rows, Silence, rows_of, until
from tests.proxy.fake_client import Client
from tests.proxy.rigs import add_message_table, claimed, running_proxy
from tests.proxy.sessions.test_session import refused


LONG_S = 10 * HANG_S


def stopping(proxy):
    """Begin a stop; it has told everybody once this returns to the loop."""
    return asyncio.ensure_future(proxy.app.stop())


async def test_a_stop_with_nothing_to_do_tells_idle_clients_and_is_over_at_once(server):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        clients = [await proxy.client() for _ in range(3)]
        silent = await proxy.greeted()
        async with asyncio.timeout(HANG_S):
            await proxy.app.stop()
        for client in clients:
            assert (await client.farewell()).code == 1053
            assert await client.is_closed()
        assert await silent.is_closed()


async def test_nobody_can_connect_any_more(server):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        client = await proxy.client()
        await client.query("BEGIN")
        port = proxy.port
        end = stopping(proxy)
        await until(proxy.app.services.is_stopping)
        with pytest.raises(ConnectionRefusedError):
            await Client.greeted(port)
        assert (await client.query("COMMIT")).ok
        await end


async def test_who_was_greeted_before_is_told_1053_by_its_login(server):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        late, client = await proxy.greeted(), await proxy.client()
        await client.query("BEGIN")
        end = stopping(proxy)
        await until(proxy.app.services.is_stopping)
        assert (await refused(late.log_in("root"))).code == 1053
        await client.query("ROLLBACK")
        await end


@pytest.mark.parametrize("last", ["COMMIT", "ROLLBACK"])
async def test_a_transaction_goes_on_to_its_end(server, last):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        client, idle = await proxy.client(), await proxy.client()
        await client.query("BEGIN")
        await client.query("INSERT INTO t VALUES (1)")
        end = stopping(proxy)
        assert (await idle.farewell()).code == 1053
        assert (await client.query("INSERT INTO t VALUES (2)")).ok
        assert (await client.query(last)).ok
        assert last in server.heard
        assert (await client.farewell()).code == 1053
        async with asyncio.timeout(HANG_S):
            await end


async def test_a_transaction_over_shards_goes_on_to_its_end(server, other_server):
    async with running_proxy(server, other_server, shutdown_grace_s=LONG_S) as proxy:
        client = await proxy.client("commerce")
        await client.query("BEGIN")
        await client.query("INSERT INTO t (id) VALUES (1)")
        end = stopping(proxy)
        await until(proxy.app.services.is_stopping)
        assert (await client.query(f"INSERT INTO t (id) VALUES ({1 << 63})")).ok
        statement, *_ = await client.prepare("COMMIT")
        assert (await client.execute(statement)).ok
        assert "COMMIT" in server.heard
        assert "COMMIT" in other_server.heard
        await end


async def test_a_transaction_that_nobody_ends_is_rolled_back_and_the_client_told(server):
    async with running_proxy(server, shutdown_grace_s=0.05) as proxy:
        client = await proxy.client()
        await client.query("BEGIN")
        await client.query("INSERT INTO t VALUES (1)")
        (backend,) = (relay for relay in server.relays if relay.in_transaction)
        await proxy.app.stop()
        assert (await client.farewell()).code == 1053
        assert not backend.in_transaction
        assert "COMMIT" not in server.heard


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("answer", [Ok(), Error(1180, "Got error 28 during COMMIT")])
async def test_a_commit_under_way_is_answered_after_the_grace(server, prepared, answer):
    async with running_proxy(server, shutdown_grace_s=0.05, failover_buffer_s=LONG_S) as proxy:
        client = await proxy.client()
        statement, *_ = await client.prepare("COMMIT")
        await client.query("BEGIN")
        await client.query("INSERT INTO t VALUES (1)")
        gate = asyncio.Event()
        server.once("COMMIT", Silence(gate, answer))
        if prepared:
            client.send_execute(statement)
        else:
            client.send("COMMIT")
        end = stopping(proxy)
        await asyncio.sleep(0.1)
        assert not end.done()
        gate.set()
        result = (await client.answer())[0]
        assert result.code == (0 if isinstance(answer, Ok) else 1180)
        assert not any("KILL" in text for text in server.controlled)
        await end


@pytest.mark.parametrize("sticky", [False, True])
async def test_a_commit_that_no_server_answers_is_said_to_be_unknown(server, sticky):
    async with running_proxy(server, shutdown_grace_s=0.05, failover_buffer_s=0.05) as proxy:
        client = await proxy.client()
        if sticky:
            await client.query("CREATE TEMPORARY TABLE tt (a INT)")
        await client.query("BEGIN")
        await client.query("INSERT INTO t VALUES (1)")
        server.once("COMMIT", Silence())
        client.send("COMMIT")
        await until(lambda: "COMMIT" in server.heard)
        end = stopping(proxy)
        result = (await client.answer())[0]
        assert result.code == 1105
        assert "whether the statement took effect is unknown" in result.message
        assert await client.is_closed()
        await end


async def test_a_statement_that_takes_too_long_is_stopped_and_the_client_told(server):
    async with running_proxy(server, shutdown_grace_s=0.05) as proxy:
        client = await proxy.client()
        server.once("UPDATE", Silence())
        client.send("UPDATE t SET a = 1")
        await until(lambda: "UPDATE t SET a = 1" in server.heard)
        end = stopping(proxy)
        assert (await client.answer())[0].code == 1053
        assert any(text.startswith("KILL QUERY") for text in server.controlled)
        await end


async def test_a_statement_under_way_and_those_sent_behind_it_are_answered(server):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        client = await proxy.client()
        gate = asyncio.Event()
        server.once("SLEEP", Silence(gate, rows_of(0)))
        client.send("SELECT SLEEP(1)")
        client.send("SELECT 2")
        await until(lambda: "SELECT SLEEP(1)" in server.heard)
        end = stopping(proxy)
        await until(proxy.app.services.is_stopping)
        gate.set()
        assert (await client.answer())[0].values == [b"0"]
        assert (await client.answer())[0].ok is None
        assert (await client.farewell()).code == 1053
        await end


async def test_acks_are_taken_after_the_streams_have_ended(server):
    add_message_table(server)
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        stream, acks = await proxy.client(), await proxy.client()
        stream.send("STREAM * FROM msg")
        await stream.head()
        server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(5, b"x"),)))
        await acks.query("INSERT INTO msg (id, message) VALUES (5, 'x')")
        assert (await stream.row())[0] == b"5"
        end = stopping(proxy)
        assert (await refused(stream.row())).code == 1053
        assert await stream.is_closed()
        await asyncio.sleep(0.05)
        ack = await acks.query("UPDATE msg SET time_acked = 1800000000000000005 WHERE id = 5")
        assert ack.ok
        assert (await acks.farewell()).code == 1053, "nothing is left to wait for"
        async with asyncio.timeout(HANG_S):
            await end


async def test_no_stream_begins_once_a_stop_has_begun(server):
    add_message_table(server)
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        late = await proxy.client()
        await late.query("BEGIN")
        end = stopping(proxy)
        await asyncio.sleep(0.05)
        late.send("STREAM * FROM msg")
        await late.head()
        assert (await refused(late.row())).code == 1053
        await late.query("COMMIT")
        async with asyncio.timeout(HANG_S):
            await end


async def test_a_stream_that_sent_nothing_holds_up_nobody(server):
    add_message_table(server)
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        stream, idle = await proxy.client(), await proxy.client()
        stream.send("STREAM * FROM msg")
        await stream.head()
        end = stopping(proxy)
        assert (await refused(stream.row())).code == 1053
        assert (await idle.farewell()).code == 1053
        async with asyncio.timeout(HANG_S):
            await end


async def test_a_second_signal_waits_for_nobody(server):
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        client, busy = await proxy.client(), await proxy.client()
        await client.query("BEGIN")
        server.once("COMMIT", Silence())
        await busy.query("BEGIN")
        await busy.query("INSERT INTO t VALUES (1)")
        busy.send("COMMIT")
        await until(lambda: "COMMIT" in server.heard)
        end = stopping(proxy)
        await until(proxy.app.services.is_stopping)
        proxy.hurry.set()
        async with asyncio.timeout(HANG_S):
            await end
            assert (await busy.answer())[0].code == 1105
            assert (await client.farewell()).code == 1053
