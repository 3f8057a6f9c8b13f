import pytest

from streamfrom.proxy.errors import BackendError, BackendLost, TransactionBroken
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.proxy.fake_answers import Error, HangUp, until


ACK = Effect(EffectKind.ACK, (1,))


@pytest.fixture
def session(both):
    return both


async def on_both(session, sql="INSERT INTO t VALUES (1)"):
    await session.run(sql, shard=0)
    await session.run(sql, shard=1)


def transactions(*servers):
    """What each server was told about transactions."""
    words = ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    return [[text for text in server.heard if text.startswith(words)] for server in servers]


async def test_a_first_commit_that_fails_rolls_everything_back(
    server, other_server, session, low
):
    await session.begin()
    await on_both(session)
    session.branches.happened(low, "msg", ACK)
    server.once("COMMIT", Error(1180, "Got error 5 during COMMIT"))
    with pytest.raises(BackendError, match="during COMMIT"):
        await session.branches.commit()
    assert transactions(server, other_server) == [
        ["BEGIN", "COMMIT", "ROLLBACK"],
        ["BEGIN", "ROLLBACK"],
    ]
    assert session.published == []
    assert not session.branches.in_transaction


async def test_a_lost_branch_takes_the_others_with_it_and_only_rollback_leads_out(
    server, other_server, session, low, high
):
    await session.begin()
    await on_both(session)
    session.branches.happened(low, "msg", ACK)
    other_server.once("UPDATE", HangUp())
    with pytest.raises(BackendLost):
        await session.run("UPDATE t SET a = 1", shard=1)
    await until(lambda: not server.relays)
    for shard in (0, 1):
        with pytest.raises(TransactionBroken, match="send ROLLBACK, then begin again"):
            await session.run("INSERT INTO t VALUES (2)", shard=shard)
    with pytest.raises(TransactionBroken):
        await session.branches.savepoint(b"SAVEPOINT a")
    await session.branches.rollback()
    assert (await session.run("INSERT INTO t VALUES (3)", shard=0)).error is None
    assert session.published == []
    assert "INSERT INTO t VALUES (2)" not in server.heard + other_server.heard


async def test_a_branch_that_was_lost_while_idle_is_noticed_before_anything_is_sent(
    server, session, low
):
    await session.begin()
    await session.run("INSERT INTO t VALUES (1)", shard=0)
    backend = session.branches.held[low]
    server.break_connections()
    await until(lambda: backend.is_closed)
    with pytest.raises(TransactionBroken, match="lost its connection"):
        await session.run("INSERT INTO t VALUES (2)", shard=0)
    assert "INSERT INTO t VALUES (2)" not in server.heard


async def test_after_a_deadlock_elsewhere_session_state_waits_for_rollback(server, session):
    await session.run("SET @a = 1", shard=0)
    await session.begin()
    await on_both(session)
    held = session.branches.held[session.shards[1]]
    session.branches.undone(session.shards[1], held)
    session.shards[1].pool.release(held)
    with pytest.raises(TransactionBroken, match="rolled it back"):
        await session.run("INSERT INTO t VALUES (2)", shard=0)
    await session.branches.rollback()
    assert not server.relays[0].in_transaction
