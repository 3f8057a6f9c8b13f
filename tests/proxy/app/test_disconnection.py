"""How a proxy ends while clients are at work."""

import asyncio

import pytest

from tests.proxy.fake_answers import HANG_S, until
from tests.proxy.fake_client import Client
from tests.proxy.rigs import add_message_table, running_proxy
from tests.proxy.sessions.test_session import refused


LONG_S = 10 * HANG_S


async def test_once_a_stop_has_begun_nobody_connects_logs_in_or_opens_a_stream(server):
    add_message_table(server)
    async with running_proxy(server, shutdown_grace_s=LONG_S) as proxy:
        late, client, port = await proxy.greeted(), await proxy.client(), proxy.port
        await client.query("BEGIN")
        end = asyncio.ensure_future(proxy.app.stop())
        await until(proxy.app.services.is_stopping)
        with pytest.raises(ConnectionRefusedError):
            await Client.greeted(port)
        assert (await refused(late.log_in("root"))).code == 1053
        client.send("STREAM * FROM msg")
        await client.head()
        assert (await refused(client.row())).code == 1053
        assert (await client.query("COMMIT")).ok
        async with asyncio.timeout(HANG_S):
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
