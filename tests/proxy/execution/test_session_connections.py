import asyncio
from typing import Any

import pytest

from streamfrom.proxy.errors import BackendUnavailable
from streamfrom.proxy.execution.session_connections import named
from tests.proxy.fake_answers import until
from tests.proxy.rigs import SessionRig, running_shard


class Wish:
    """What became of a connection that was wanted."""

    def __init__(self, session):
        self.got: list[Any] = []
        shard, got = session.shards[0], self.got.append
        session.executor.connections.acquire_soon(shard, "db", got, got)


async def test_a_server_that_is_gone_is_told_too(server, shard, session):
    server.stop()
    wish = Wish(session)
    await until(lambda: wish.got)
    assert isinstance(wish.got[0], BackendUnavailable)


async def test_a_session_that_departs_while_one_is_opened_leaves_it_to_others(server, shard):
    session = SessionRig(shard)
    wish = Wish(session)
    session.executor.forget()
    await asyncio.gather(*session.spawned)
    (backend,) = shard.pool.idle
    assert wish.got == []
    assert backend.owner is None


@pytest.mark.parametrize(
    ("database", "found"), [(None, None), ("mysql", "mysql"), ("view", "db_of_the_shard")]
)
async def test_a_view_has_another_name_on_each_shard(server, database, found):
    async with running_shard(server, "-80") as shard:
        shard.database = "db_of_the_shard"
        assert named(shard, database) == found


class GatheredAck:
    """An ack that others' connection writes, or is to write."""

    def __init__(self):
        self.is_left = self.is_stopped = self.is_told = False

    def interrupted(self):
        self.is_told = True


async def test_an_ack_that_waits_for_others_is_stopped_at_once_and_told_why_later(shard):
    session = SessionRig(shard)
    ack = session.executor.connections.gathered = GatheredAck()
    (telling,) = session.executor.interrupt()
    assert (ack.is_left, ack.is_told) == (True, False)
    await telling
    assert ack.is_told


async def test_an_ack_that_is_written_with_others_is_killed_and_not_sent_again(server, shard):
    session = SessionRig(shard)
    backend = await shard.pool.acquire(session.state, "db")
    ack = session.executor.connections.gathered = GatheredAck()
    session.executor.connections.active[backend] = shard
    await asyncio.gather(*session.executor.interrupt())
    assert (ack.is_stopped, ack.is_left, ack.is_told) == (True, False, False)
    assert f"KILL QUERY {backend.thread_id}" in server.controlled
    session.executor.connections.active.clear()
    shard.pool.discard(backend)


async def test_a_client_that_leaves_lets_others_acks_be_written(server, shard):
    session = SessionRig(shard)
    backend = await shard.pool.acquire(session.state, "db")
    ack = session.executor.connections.gathered = GatheredAck()
    session.executor.connections.active[backend] = shard
    session.executor.forget()
    await asyncio.gather(*session.spawned)
    assert ack.is_left
    assert not backend.is_closed
    assert not any(sql.startswith("KILL") for sql in server.controlled)
    shard.pool.release(backend)
