"""How a proxy ends while clients are at work."""

import asyncio

import pytest

from tests.proxy.fake_answers import HANG_S, until
from tests.proxy.fake_client import Client
from tests.proxy.rigs import add_message_table, running_proxy
from tests.proxy.sessions.test_session import refused


LONG_S = 10 * HANG_S


def stopping(proxy):
    """Begin a stop; it has told everybody once this returns to the loop."""
    return asyncio.ensure_future(proxy.app.stop())


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
