import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends import shard as shard_module
from streamfrom.proxy.errors import BackendUnavailable
from streamfrom.proxy.execution.retry_rules import Ending
from streamfrom.proxy.execution.session_connections import Retries, named
from tests.proxy.fake_answers import Silence, until
from tests.proxy.keyspaces import HIGH
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
    assert wish.got == []
    other = SessionRig(shard)
    await other.run("SELECT 1")
    assert (shard.pool.connections, shard.pool.size > 1) == (1, True)
    await other.leave()


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
    ack: Any = GatheredAck()
    session.executor.connections.gathered = ack
    (telling,) = session.executor.interrupt()
    assert (ack.is_left, ack.is_told) == (True, False)
    await telling
    assert ack.is_told


async def test_an_ack_that_is_written_with_others_is_killed_and_not_sent_again(server, shard):
    session = SessionRig(shard)
    backend = await shard.pool.acquire(session.state, "db")
    ack: Any = GatheredAck()
    session.executor.connections.gathered = ack
    session.executor.connections.active[backend] = shard
    await asyncio.gather(*session.executor.interrupt())
    assert (ack.is_stopped, ack.is_left, ack.is_told) == (True, False, False)
    assert f"KILL QUERY {backend.thread_id}" in server.controlled
    session.executor.connections.active.clear()
    shard.pool.discard(backend)


async def test_a_client_that_leaves_lets_others_acks_be_written(server, shard):
    session = SessionRig(shard)
    backend = await shard.pool.acquire(session.state, "db")
    ack: Any = GatheredAck()
    session.executor.connections.gathered = ack
    session.executor.connections.active[backend] = shard
    session.executor.forget()
    await asyncio.gather(*session.spawned)
    assert ack.is_left
    assert not backend.is_closed
    assert not any(sql.startswith("KILL") for sql in server.controlled)
    shard.pool.release(backend)


# Attempts to run one statement: who waits for which shard, until when.
class Shard:
    def __init__(self, *, comes_back=True):
        self.comes_back = comes_back
        self.deadlines: list[float] = []

    async def wait_available(self, deadline_s):
        self.deadlines.append(deadline_s)
        return self.comes_back


class Case:
    """A session outside a transaction, and the attempts of its statement."""

    def __init__(self, *, is_ack=False, autocommit=True, buffer_s=60.0):
        settings = SimpleNamespace(autocommit=autocommit)
        self.state: Any = SimpleNamespace(is_stopped=False, settings=settings)
        self.branches: Any = SimpleNamespace(has_begun=False, is_broken=False)
        deadline_s = asyncio.get_running_loop().time() + buffer_s
        session: tuple[Any, Any] = self.state, self.branches
        self.retries: Any = Retries(*session, deadline_s, False, is_ack, False)


async def test_each_shard_is_waited_for_until_the_same_moment():
    shards = Shard(), Shard()
    retries = Case().retries
    assert await retries.again(Ending.UNSENT, *shards)
    assert await retries.again(Ending.READ_ONLY, *shards)
    assert len({moment for shard in shards for moment in shard.deadlines}) == 1
    assert [len(shard.deadlines) for shard in shards] == [2, 2]


async def test_without_a_buffer_or_in_a_transaction_nothing_waits_nor_for_a_shard_that_stays_away():
    shard = Shard()
    assert not await Case(buffer_s=0.0).retries.again(Ending.UNSENT, shard)
    assert shard.deadlines == []
    case = Case()
    case.branches.has_begun = True
    assert await case.retries.again(Ending.READ_ONLY, Shard())
    assert not await case.retries.again(Ending.READ_ONLY, Shard())
    assert not await Case().retries.again(Ending.UNSENT, Shard(comes_back=False))


@pytest.mark.parametrize("autocommit", [True, False])
async def test_an_ack_that_a_deadlock_undid_is_sent_again_if_it_commits_by_itself(autocommit):
    retries = Case(is_ack=True, autocommit=autocommit).retries
    assert await retries.again(Ending.DEADLOCK) is autocommit


# What all shards answer alike.
async def where(client, server, other_server, sql="SELECT NOW()", prepared=None):
    """Return which of the servers answer a statement: "12" if both are sent it."""
    for each in (server, other_server):
        each.heard.clear()
    answer = client.query(sql) if prepared is None else client.execute(prepared)
    assert (await answer).error is None
    return "".join(
        number
        for number, each in zip("12", (server, other_server), strict=True)
        if any(sql in text for text in each.heard)
    )


@pytest.mark.parametrize("is_prepared", [False, True])
async def test_a_statement_without_tables_moves_to_another_shard_when_its_own_falls_silent(
    server, other_server, proxy, client, monkeypatch, is_prepared
):
    prepared = (await client.prepare("SELECT NOW()"))[0] if is_prepared else None
    servers = server, other_server
    assert await where(client, *servers, prepared=prepared) == "1"
    for text in ("SELECT NOW()", "@@global.read_only"):
        server.on(text, Silence())
    asked = asyncio.ensure_future(where(client, *servers, prepared=prepared))
    await until(lambda: any("SELECT NOW()" in text for text in server.heard))
    monkeypatch.setattr(shard_module, "ANSWERS_WITHIN_S", 0.02)
    proxy.app.shards["commerce", "-80"].suspect()
    assert await asked == "12"
    assert await where(client, *servers, prepared=prepared) == "2"
    assert await where(client, *servers, "SHOW VARIABLES") == "2"


async def test_a_statement_stays_at_a_silent_server_while_no_other_one_answers(
    server, other_server, proxy, client
):
    first, second = (proxy.app.shards["commerce", name] for name in ("-80", "80-"))
    other_server.read_only = True
    await second.probe()
    assert not second.is_answering
    gate = asyncio.Event()
    server.on("SELECT NOW()", Silence(gate))
    asked = asyncio.ensure_future(where(client, server, other_server))
    await until(lambda: "SELECT NOW()" in server.heard)
    first.pool.fell_silent()
    gate.set()
    assert await asked == "1"
    assert server.heard.count("SELECT NOW()") == 1


async def test_a_session_stays_where_it_has_a_transaction_or_a_lock(
    server, other_server, proxy, client
):
    servers = server, other_server
    await client.query("BEGIN")
    await client.query(f"SELECT id FROM t WHERE id = {HIGH}")
    assert await where(client, *servers) == "2"
    await client.query("COMMIT")
    assert await where(client, *servers) == "1"
    await client.query("SELECT GET_LOCK('a', 1)")
    server.read_only, first = True, proxy.app.shards["commerce", "-80"]
    await first.probe()
    assert not first.is_answering
    assert await where(client, *servers) == "1"
