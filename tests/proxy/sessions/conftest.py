"""A running proxy in front of two scripted servers, for the tests of what its sessions do."""

import pytest

from tests.proxy.house import Desk, add_message_table, running_proxy, running_shard


@pytest.fixture
async def house(server, other_server):
    async with running_proxy(server, other_server) as made:
        yield made


@pytest.fixture
async def client(house):
    return await house.client("commerce")


@pytest.fixture
async def messages(server, other_server):
    for each in (server, other_server):
        add_message_table(each)
    async with running_proxy(server, other_server) as made:
        yield made


@pytest.fixture
async def shard(server):
    async with running_shard(server, pool_size=2) as runtime:
        yield runtime


@pytest.fixture
async def desk(shard):
    made = Desk(shard)
    yield made
    await made.leave()
