"""Elections on real servers: what the lock, the term and the directory are made of."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from streamfrom.engine.fleet.directory import Directory, Member
from streamfrom.engine.fleet.election import SILENCE_S, LockHold
from streamfrom.engine.fleet.lock_connection import (
    Joined,
    LockLost,
    MemberExists,
    NotWritable,
    Numbers,
    NumberTaken,
    acquire,
    dispatcher_lock,
    enroll,
    join,
    keep,
    numbers,
    publish,
    read_directory,
    read_secret,
    write_term,
)
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.errors import BackendLost
from tests.fixtures.background import running
from tests.fixtures.database_servers import execute
from tests.fixtures.streams import eventually, run


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
            await session.converse(join(database, own, "s" * 32))
        return session

    yield opened
    for session in sessions:
        session.close()


async def acquired(session, database, wait_s=0):
    """Take part as the directory says; return how the session has the lock."""
    secret, _ = await session.converse(read_secret(database))
    return (await session.converse(acquire(database, secret, wait_s)))[0]


async def directory(session, database, own):
    secret, _ = await session.converse(read_secret(database))
    read, _ = await session.converse(read_directory(database, own, secret))
    found = Directory(own)
    found.take(read, 0)
    return found


async def test_who_holds_the_lock_and_says_nothing_loses_it(opened, database):
    lost = asyncio.Event()
    silent, second = await opened(A, on_lost=lost.set), await opened(B)
    began_s = time.monotonic()
    await acquired(silent, database)
    assert await acquired(second, database, 60) is LockHold.BOTH
    waited_s = time.monotonic() - began_s
    assert waited_s > SILENCE_S - 0.5
    await lost.wait()
    with pytest.raises(BackendLost):
        await silent.ping()


async def test_a_killed_dispatcher_cannot_write_once_another_can(opened, database, server):
    first, second = await opened(A), await opened(B)
    await acquired(first, database)
    execute(server, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    execute(server, f"INSERT INTO {database}.t VALUES (1, 0)")
    await first.converse(statements("BEGIN", "UPDATE t SET v = 1 WHERE id = 1"))
    waiting = asyncio.ensure_future(acquired(second, database, 60))
    lock = dispatcher_lock(database).decode()
    ((holder,),) = execute(server, f"SELECT IS_USED_LOCK('{lock}')")
    execute(server, f"KILL {holder}")
    assert await waiting is LockHold.BOTH
    # It is rolled back before the lock is free: nothing of it is locked any more.
    free = execute(server, f"SELECT v FROM {database}.t FOR UPDATE SKIP LOCKED")
    assert free == ((0,),)
    with pytest.raises(BackendLost):
        await first.converse(statements("COMMIT"))


async def test_a_member_connects_once_and_comes_back_with_the_next_term(opened, database):
    first = await opened(A)
    await acquired(first, database)
    assert (await first.converse(write_term(database)))[0] == 1
    again = await opened(A, joined=False)
    with pytest.raises(MemberExists):
        await again.converse(join(database, A, "s" * 32))
    first.close()
    while True:
        with contextlib.suppress(MemberExists):
            assert (await again.converse(join(database, A, "s" * 32)))[0].denied is None
            break
    await acquired(again, database, 60)
    assert (await again.converse(write_term(database)))[0] == 2


@pytest.fixture
def poor_user(server, database):
    """A user that may work with the tables that are there, and make none."""
    execute(server, f"CREATE TABLE {database}.msg (id INT PRIMARY KEY)")
    execute(server, f"CREATE USER {database}@'%'")
    execute(server, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.msg TO {database}@'%'")
    yield database
    execute(server, f"DROP USER {database}@'%'")


async def test_who_may_make_no_directory_dispatches_alone(opened, database, poor_user):
    first = await opened(A, poor_user, joined=False)
    joined, _ = await first.converse(join(database, A, "s" * 32))
    assert joined.secret is None
    assert "denied" in joined.denied
    assert await acquired(first, database) is LockHold.PLAIN
    assert (await first.converse(write_term(database)))[0] == 0
    assert (await first.converse(keep(database, None)))[0] is LockHold.PLAIN
    assert (await directory(first, database, A)).dispatcher == A
    second = await opened(B, poor_user)
    assert await acquired(second, database) is None
    read, _ = await second.converse(read_directory(database, B, None))
    warnings = Directory(B).take(read, 0).warnings
    assert any("CREATE DATABASE IF NOT EXISTS streamfrom" in text for text in warnings)


async def test_who_knows_the_directory_and_who_does_not_never_both_dispatch(opened, database):
    """The plain name, which both take, keeps them apart."""
    knows, knows_not = await opened(A), await opened(B)
    plain = acquire(database, None, 0)
    assert (await knows_not.converse(plain))[0] is LockHold.PLAIN
    assert await acquired(knows, database) is None
    waiting = asyncio.ensure_future(acquired(knows, database, 60))
    knows_not.close()
    hold, (secret, _) = await waiting, await knows.converse(read_secret(database))
    # A connection that the server is just ending has the plain name, and is nobody's.
    while hold is LockHold.SECRET:
        hold, _ = await knows.converse(keep(database, secret))
    assert hold is LockHold.BOTH
    third = await opened(member("c"))
    assert (await third.converse(acquire(database, None, 0)))[0] is None


async def test_a_held_plain_name_stops_nobody(opened, database, poor_user, connect, server):
    client = connect(server, user=poor_user)
    name = dispatcher_lock(database).decode()
    run(client, f"SELECT GET_LOCK('{name}', 0)")
    first, second = await opened(A), await opened(B)
    assert await acquired(first, database) is LockHold.SECRET
    assert await acquired(second, database) is None
    secret, _ = await first.converse(read_secret(database))
    assert (await first.converse(keep(database, secret)))[0] is LockHold.SECRET
    read, _ = await second.converse(read_directory(database, B, secret))
    assert (read.outsider, read.own) != (None, None)
    assert Directory(B).take(read, 0).dispatcher == A
    client.close()
    free = f"SELECT IS_FREE_LOCK('{name}')"
    await asyncio.to_thread(eventually, lambda: execute(server, free) == ((1,),))
    assert (await first.converse(keep(database, secret)))[0] is LockHold.BOTH
    # A proxy that does not know the secret is kept away again, and one that came before has the lock.
    assert (await second.converse(acquire(database, None, 0)))[0] is None


async def test_who_took_the_plain_name_is_found(opened, database, poor_user, connect, server):
    client = connect(server, user=poor_user)
    run(client, f"SELECT GET_LOCK('{dispatcher_lock(database).decode()}', 0)")
    first, second = await opened(A), await opened(B)
    await acquired(first, database)
    waiting = asyncio.ensure_future(second.converse(acquire(database, None, 60)))
    client.close()
    assert (await waiting)[0] is LockHold.PLAIN
    secret, _ = await first.converse(read_secret(database))
    with pytest.raises(LockLost):
        await first.converse(keep(database, secret))


async def test_a_dropped_directory_is_made_again_under_another_secret(opened, database, server):
    first = await opened(A)
    await acquired(first, database)
    before, _ = await first.converse(read_secret(database))
    execute(server, "DROP DATABASE streamfrom")
    read, _ = await first.converse(read_directory(database, A, before))
    assert (read.secret, read.entries) == (None, ())
    with pytest.raises(LockLost):
        await first.converse(keep(database, before))
    joined, _ = await first.converse(enroll(database, A, "t" * 32))
    assert joined == Joined("t" * 32, None)
    with pytest.raises(LockLost):
        await first.converse(keep(database, before))


async def test_no_two_members_have_one_number(opened, database, server):
    first = await opened(replace(A, id_prefix=7))
    with pytest.raises(NumberTaken):
        await first.converse(publish(database, replace(B, id_prefix=7)))
    assert (await first.converse(numbers(database)))[0] == Numbers({7: A.id}, frozenset({7}))
    execute(server, "DROP DATABASE streamfrom")
    assert (await first.converse(numbers(database)))[0] == Numbers({}, frozenset({7}))


async def test_a_claim_on_the_locks_connection_is_one_transaction(opened, database, server):
    execute(server, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    execute(server, f"INSERT INTO {database}.t VALUES (1, 0)")
    first = await opened(A)
    await acquired(first, database)

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


@pytest.mark.one_server  # which looks every five seconds whether its client is there
async def test_a_cancelled_statement_gives_the_lock_up(opened, database, server):
    first, second = await opened(A), await opened(B)
    await acquired(first, database)
    sleeping = asyncio.ensure_future(first.converse(statements("SELECT SLEEP(600)")))
    await asyncio.to_thread(eventually, lambda: running(server, "SLEEP(600)"))
    sleeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sleeping
    assert await acquired(second, database, 60) is LockHold.BOTH


async def test_nobody_dispatches_from_a_read_only_server(breakable_servers, breakable_database):
    server, _ = breakable_servers
    session = await session_of(server, breakable_database)
    name = "super_read_only" if server.family is Family.MYSQL else "read_only"
    execute(server, f"SET GLOBAL {name} = 1")
    try:
        joined, _ = await session.converse(join(breakable_database, A, "s" * 32))
        assert joined == Joined(None, "the server is read-only")
        assert (await session.converse(acquire(breakable_database, None, 0)))[0]
        with pytest.raises(NotWritable):
            await session.converse(write_term(breakable_database))
    finally:
        execute(server, f"SET GLOBAL {name} = 0")
        execute(server, "SET GLOBAL read_only = 0")
    await session.converse(enroll(breakable_database, A, "s" * 32))
    assert (await session.converse(write_term(breakable_database)))[0] == 1
    session.close()
