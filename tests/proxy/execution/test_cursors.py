"""The rows that the proxy keeps for a client's cursor."""

import pytest

from streamfrom.proxy.wire.constants import Status
from tests.proxy.fake_answers import rows_of
from tests.proxy.fake_client import MODERN, OLD
from tests.proxy.rigs import running_proxy


@pytest.mark.parametrize("capabilities", [MODERN, OLD], ids=["modern", "old"])
async def test_rows_that_wait_for_a_cursor_count_as_memory_of_the_connection(
    server, other_server, capabilities
):
    for each in (server, other_server):
        each.on("SELECT a", rows_of(*range(500), column="a"))
    async with running_proxy(server, other_server, connection_memory_bytes=60_000) as proxy:
        client = await proxy.client("commerce", capabilities=capabilities)
        await client.prepare("SELECT a FROM t LIMIT 2000")
        await client.prepare("SELECT a FROM t LIMIT 3000")
        assert (await client.execute(1, flags=1)).status & Status.CURSOR_EXISTS
        # Two such answers are too much, until the first is fetched or closed.
        for end in (client.fetch(1, 2000), client.execute(1)):
            assert (await client.execute(2, flags=1)).code == 4082
            assert (await client.fetch(2, 1)).code == 1421
            assert len((await end).rows) == 1000
            assert (await client.execute(2, flags=1)).status & Status.CURSOR_EXISTS
            assert (await client.execute(1, flags=1)).code == 4082
            await client.execute(2)
            assert (await client.execute(1, flags=1)).status & Status.CURSOR_EXISTS
