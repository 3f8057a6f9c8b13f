"""How a session sends and reads; what its locks mean is in tests/integration/test_elections.py."""

import asyncio

import pytest

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.errors import BackendLost
from tests.proxy.fake_answers import Error, HangUp, Silence, rows_of


@pytest.fixture
async def lost():
    return asyncio.Event()


@pytest.fixture
async def session(server, lost):
    made = LockSession(await open_backend("ks", "-", server.dsn(), database="db"), lost.set)
    yield made
    made.close()


def asks(first, *others):
    answers = [(yield StoreQuery(first.encode(), 1))]
    for text in others:
        answers += [(yield StoreQuery(text.encode(), 1))]
    return answers


async def test_a_transaction_begins_with_its_first_statement_and_is_undone_when_refused(
    server, session
):
    server.on("UPDATE", Error(1213, "Deadlock found", "40001"))
    before = len(server.heard)
    with pytest.raises(ServerRefused):
        await session.transact(lambda: asks("SELECT 1", "UPDATE t"))
    assert server.heard[before:] == ["START TRANSACTION", "SELECT 1", "UPDATE t", "ROLLBACK"]


async def test_conversations_take_turns(server, session):
    gate = asyncio.Event()
    server.on("SLEEP", Silence(gate, rows_of(0)))
    first = asyncio.ensure_future(session.converse(asks("SELECT SLEEP(1)")))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(session.ping())
    await asyncio.sleep(0.01)
    assert not second.done()
    gate.set()
    # A ping that waited proves nothing of the time in which it waited.
    (_, first_ns), second_ns = await first, await second
    assert second_ns > first_ns


async def test_a_server_that_hangs_up_is_told_of(server, session, lost):
    server.on("FROM t", HangUp())
    with pytest.raises(BackendLost):
        await session.converse(asks("SELECT n FROM t"))
    await lost.wait()
    with pytest.raises(BackendLost):
        await session.ping()
