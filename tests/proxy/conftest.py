"""Fake servers, a proxy in front of two of them, and a check that no failure in the loop goes unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import SessionRig, add_message_table, running_proxy, running_shard


@pytest.fixture
async def calm() -> AsyncIterator[None]:
    """Fail a test during which a callback or a task of the loop failed."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    yield
    assert not faults


@pytest.fixture
async def server(calm: None) -> AsyncIterator[FakeServer]:
    """A MySQL server."""
    async with FakeServer() as fake:
        yield fake


@pytest.fixture
async def other_server(calm: None) -> AsyncIterator[FakeServer]:
    """A second one."""
    async with FakeServer() as fake:
        yield fake


@pytest.fixture
async def proxy(server, other_server):
    """A proxy: keyspace `plain` on `server`, `commerce` on both (a ProxyRig)."""
    async with running_proxy(server, other_server) as made:
        yield made


@pytest.fixture
async def client(proxy):
    """A client of `proxy` that has logged in, in `commerce`."""
    return await proxy.client("commerce")


@pytest.fixture
async def messages(server, other_server):
    """The same as `proxy`, with a message table `msg` in both keyspaces."""
    for each in (server, other_server):
        add_message_table(each)
    async with running_proxy(server, other_server) as made:
        yield made


@pytest.fixture
async def shard(server):
    """The live side of the one shard of `plain`."""
    async with running_shard(server, pool_size=2) as runtime:
        yield runtime


@pytest.fixture
async def session(shard):
    """A session's executor in front of `shard`, without a client's socket (a SessionRig)."""
    made = SessionRig(shard)
    yield made
    await made.leave()


@pytest.fixture
async def low(server):
    """The lower half of a keyspace of two shards."""
    async with running_shard(server, "-80", keyspace="ks") as runtime:
        yield runtime


@pytest.fixture
async def high(other_server):
    """The upper half."""
    async with running_shard(other_server, "80-", keyspace="ks") as runtime:
        yield runtime


@pytest.fixture
async def both(low, high):
    """A session in front of the two halves (a SessionRig)."""
    made = SessionRig(low, high)
    yield made
    await made.leave()
