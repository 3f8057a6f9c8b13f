"""Elections on real servers: what the lock, the term and the directory are made of."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from streamfrom.engine.fleet.directory import Directory, Member, Stranger
from streamfrom.engine.fleet.election import SILENCE_S
from streamfrom.engine.fleet.lock_connection import (
    MemberExists,
    NotWritable,
    acquire,
    dispatcher_lock,
    forget,
    join,
    read_directory,
    write_term,
)
from streamfrom.engine.messaging.conversation import ServerRefused, StoreQuery
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.errors import BackendLost
from tests.fixtures.database_servers import execute


pytestmark = pytest.mark.db


def member(name, fleet=""):
    return Member(
        name * 16, fleet, f"10.0.0.1:{ord(name)}", f"PEM {name}", ord(name), "1.0", "c"
    )


A, B = member("a"), member("b")


async def session_of(server, database, user="root", on_lost=lambda: None):
    dsn = Dsn(
        "127.0.0.1", server.port, None, user, Secret(""), database, SslMode.DISABLED, None
    )
    return LockSession(await open_backend("ks", "-", dsn, database=database), on_lost)


def statements(*texts):
    for text in texts:
        yield StoreQuery(text.encode())


@pytest.fixture
async def opened(server, database):
    """A function that opens a session for a member, joined unless told otherwise."""
    sessions = []

    async def opened(own, user="root", *, joined=True, on_lost=lambda: None):
        session = await session_of(server, database, user, on_lost)
        sessions.append(session)
        if joined:
            await session.converse(join(database, own))
        return session

    yield opened
    for session in sessions:
        session.close()


async def directory(session, database, own):
    read, _ = await session.converse(read_directory(database, own))
    found = Directory(own)
    found.take(read, 0)
    return found


async def test_one_of_two_has_the_lock_and_both_see_who(opened, database):
    first, second = await opened(A), await opened(B)
    assert (await first.converse(acquire(database, 0)))[0] is True
    assert (await second.converse(acquire(database, 0)))[0] is False
    for session, own in ((first, A), (second, B)):
        found = await directory(session, database, own)
        assert found.dispatcher == A
        assert found.members == {A.id: A, B.id: B}


async def test_terms_grow_from_dispatcher_to_dispatcher(opened, database):
    first = await opened(A)
    await first.converse(acquire(database, 0))
    assert (await first.converse(write_term(A)))[0] == 1
    second = await opened(B)
    waiting = asyncio.ensure_future(second.converse(acquire(database, 30)))
    first.close()
    began_s = time.monotonic()
    assert (await waiting)[0] is True
    assert time.monotonic() - began_s < 1
    assert (await second.converse(write_term(B)))[0] == 2


async def test_who_holds_the_lock_and_says_nothing_loses_it(opened, database):
    lost = asyncio.Event()
    silent, second = await opened(A, on_lost=lost.set), await opened(B)
    await silent.converse(acquire(database, 0))
    began_s = time.monotonic()
    assert (await second.converse(acquire(database, 30)))[0] is True
    waited_s = time.monotonic() - began_s
    assert waited_s > SILENCE_S - 0.5
    await lost.wait()
    with pytest.raises(BackendLost):
        await silent.ping()


async def test_pings_keep_the_lock(opened, database):
    first, second = await opened(A), await opened(B)
    await first.converse(acquire(database, 0))
    waiting = asyncio.ensure_future(second.converse(acquire(database, SILENCE_S + 2)))
    while not waiting.done():
        await first.ping()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.5)
    assert waiting.result()[0] is False


async def test_a_killed_dispatcher_cannot_write_once_its_successor_can(
    opened, database, server
):
    first, second = await opened(A), await opened(B)
    await first.converse(acquire(database, 0))
    execute(server, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    execute(server, f"INSERT INTO {database}.t VALUES (1, 0)")
    await first.converse(statements("BEGIN", "UPDATE t SET v = 1 WHERE id = 1"))
    waiting = asyncio.ensure_future(second.converse(acquire(database, 30)))
    lock = dispatcher_lock(database).decode()
    ((holder,),) = execute(server, f"SELECT IS_USED_LOCK('{lock}')")
    execute(server, f"KILL {holder}")
    assert (await waiting)[0] is True
    # It is rolled back before the lock is free: nothing of it is locked any more.
    free = execute(server, f"SELECT v FROM {database}.t FOR UPDATE SKIP LOCKED")
    assert free == ((0,),)
    with pytest.raises(BackendLost):
        await first.converse(statements("COMMIT"))


async def test_a_member_connects_once(opened, database):
    await opened(A)
    second = await opened(A, joined=False)
    with pytest.raises(MemberExists):
        await second.converse(join(database, A))
    assert await second.ping()


async def test_who_comes_back_finds_its_row_and_keeps_its_term(opened, database):
    first = await opened(A)
    await first.converse(acquire(database, 0))
    assert (await first.converse(write_term(A)))[0] == 1
    first.close()
    again = await opened(A, joined=False)
    while True:
        with contextlib.suppress(MemberExists):
            assert (await again.converse(join(database, A)))[0] is None
            break
    await again.converse(acquire(database, 5))
    assert (await again.converse(write_term(A)))[0] == 2


async def test_a_row_that_was_deleted_by_hand_is_written_again(opened, database, server):
    first = await opened(A)
    await first.converse(acquire(database, 0))
    execute(server, f"DELETE FROM {database}.streamfrom_members")
    assert (await directory(first, database, A)).dispatcher == A
    assert (await first.converse(write_term(A)))[0] == 1
    assert (await directory(first, database, A)).members == {A.id: A}


async def test_a_stranger_holds_the_lock(opened, database, connect, server):
    stranger = connect(server)
    with stranger.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (dispatcher_lock(database).decode(),))
    first = await opened(A)
    assert (await first.converse(acquire(database, 0)))[0] is False
    found = (await directory(first, database, A)).dispatcher
    assert found == Stranger(stranger.thread_id(), None)


async def test_another_fleet_waits_for_the_same_lock(opened, database):
    first = await opened(A)
    await first.converse(acquire(database, 0))
    other = replace(B, fleet="staging")
    second = await opened(other)
    assert (await second.converse(acquire(database, 0)))[0] is False
    found = await directory(second, database, other)
    assert isinstance(found.dispatcher, Stranger)
    assert found.dispatcher.fleet == ""
    assert found.members == {other.id: other}


@pytest.fixture
def poor_user(server, database):
    """A user that may work with the tables that are there, and make none."""
    execute(server, f"CREATE TABLE {database}.msg (id INT PRIMARY KEY)")
    execute(server, f"CREATE USER {database}@'%'")
    execute(server, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.msg TO {database}@'%'")
    yield database
    execute(server, f"DROP USER {database}@'%'")


async def test_an_account_that_may_make_no_table_dispatches_alone(opened, database, poor_user):
    first = await opened(A, poor_user, joined=False)
    assert "denied" in (await first.converse(join(database, A)))[0]
    assert (await first.converse(acquire(database, 0)))[0] is True
    assert (await first.converse(write_term(A)))[0] == 0
    assert (await directory(first, database, A)).dispatcher == A
    second = await opened(B, poor_user, joined=False)
    await second.converse(join(database, B))
    read, _ = await second.converse(read_directory(database, B))
    warnings = Directory(B).take(read, 0).warnings
    assert any("create it: CREATE TABLE" in text for text in warnings)


async def test_who_has_long_been_gone_is_deleted(opened, database, server):
    first, second = await opened(A), await opened(B)
    second.close()
    await first.converse(forget((B.id,)))
    rows = execute(server, f"SELECT member FROM {database}.streamfrom_members")
    assert [str(name) for (name,) in rows] == [A.id]


async def test_a_claim_on_the_locks_connection_is_one_transaction(opened, database, server):
    execute(server, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    execute(server, f"INSERT INTO {database}.t VALUES (1, 0)")
    first = await opened(A)
    await first.converse(acquire(database, 0))

    def claim():
        answer = yield StoreQuery(b"SELECT id, v FROM t FOR UPDATE SKIP LOCKED", 1)
        locked = execute(server, f"SELECT id FROM {database}.t FOR UPDATE SKIP LOCKED")
        yield StoreQuery(b"UPDATE t SET v = 1", commits=True)
        return answer.rows, locked

    (rows, locked), _ = await first.transact(claim)
    assert rows == [((b"1",), b"\x010")], "what was not asked for comes as the server's bytes"
    assert locked == ()
    with pytest.raises(ServerRefused):
        await first.transact(lambda: statements("UPDATE t SET v = 2", "nonsense"))
    assert execute(server, f"SELECT v FROM {database}.t FOR UPDATE SKIP LOCKED") == ((1,),)
    assert await first.ping()


async def test_a_refused_statement_leaves_the_connection_and_its_lock(opened, database):
    first = await opened(A)
    await first.converse(acquire(database, 0))
    with pytest.raises(ServerRefused):
        await first.converse(statements("SELECT nonsense"))
    assert (await directory(first, database, A)).dispatcher == A


async def test_a_cancelled_statement_gives_the_lock_up(opened, database):
    first, second = await opened(A), await opened(B)
    await first.converse(acquire(database, 0))
    sleeping = asyncio.ensure_future(first.converse(statements("SELECT SLEEP(20)")))
    await asyncio.sleep(0.05)
    sleeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sleeping
    assert (await second.converse(acquire(database, 15)))[0] is True


async def test_nobody_dispatches_from_a_read_only_server(breakable_servers, breakable_database):
    server, _ = breakable_servers
    session = await session_of(server, breakable_database)
    name = "super_read_only" if server.family is Family.MYSQL else "read_only"
    execute(server, f"SET GLOBAL {name} = 1")
    try:
        why, _ = await session.converse(join(breakable_database, A))
        assert why == "the server is read-only"
        assert (await session.converse(acquire(breakable_database, 0)))[0] is True
        with pytest.raises(NotWritable):
            await session.converse(write_term(A))
    finally:
        execute(server, f"SET GLOBAL {name} = 0")
        execute(server, "SET GLOBAL read_only = 0")
    assert (await session.converse(write_term(A)))[0] == 1
    session.close()
