import asyncio

import pytest

from streamfrom.proxy.errors import (
    BackendError,
    BackendLost,
    PartialCommit,
    SessionLost,
    TransactionBroken,
    TransactionSpansShards,
)
from streamfrom.proxy.execution.session_state import Transaction
from streamfrom.proxy.execution.transaction import PendingEffects
from streamfrom.sqlparse_ext.writes.messages import Effect, EffectKind
from tests.proxy.fake_answers import Error, HangUp, until
from tests.proxy.rigs import ExecutorRig


ACK = Effect(EffectKind.ACK, (1,))
NEW = Effect(EffectKind.NEW, (2,))


@pytest.fixture
async def desk(low, high):
    made = ExecutorRig(low, high)
    yield made
    await made.leave()


async def on_both(desk, sql="INSERT INTO t VALUES (1)"):
    await desk.run(sql, shard=0)
    await desk.run(sql, shard=1)


def transactions(*servers):
    """What each server was told about transactions."""
    words = ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
    return [[text for text in server.heard if text.startswith(words)] for server in servers]


# --- effects ---------------------------------------------------------------------------


def test_effects_are_told_once_table_by_table():
    told = []
    effects = PendingEffects(lambda *args: told.append(args))
    effects.add("low", "a", ACK)  # type: ignore[arg-type]
    effects.add("high", "a", NEW)  # type: ignore[arg-type]
    effects.add("low", "a", NEW)  # type: ignore[arg-type]
    effects.committed()
    effects.committed()
    assert told == [("low", "a", [ACK, NEW]), ("high", "a", [NEW])]


def test_a_rollback_tells_nobody():
    told = []
    effects = PendingEffects(lambda *args: told.append(args))
    effects.add("low", "a", ACK)  # type: ignore[arg-type]
    effects.rolled_back()
    effects.committed()
    assert told == []


def test_behind_a_savepoint_only_the_tables_are_known():
    told = []
    effects = PendingEffects(lambda *args: told.append(args))
    for effect in (ACK, NEW):
        effects.add("low", "a", effect)  # type: ignore[arg-type]
    effects.partly_rolled_back()
    effects.committed()
    assert told == [("low", "a", [Effect(EffectKind.UNKNOWN, None)])]


async def test_outside_of_a_transaction_an_effect_is_told_at_once(desk, low):
    desk.branches.happened(low, "msg", ACK)
    assert desk.published == [("-80", "msg", [ACK])]
    await desk.begin()
    desk.branches.happened(low, "msg", NEW)
    assert len(desk.published) == 1
    await desk.branches.commit()
    assert desk.published[1:] == [("-80", "msg", [NEW])]


# --- branches --------------------------------------------------------------------------


async def test_a_shard_joins_when_a_statement_touches_it(server, other_server, desk):
    await desk.begin("START TRANSACTION READ ONLY")
    await desk.run("SELECT 1", shard=1)
    assert transactions(server, other_server) == [[], ["START TRANSACTION READ ONLY"]]
    await on_both(desk)
    assert transactions(server, other_server) == [["START TRANSACTION READ ONLY"]] * 2
    assert [str(shard) for shard, _ in desk.branches.open] == ["ks/80-", "ks/-80"]


async def test_a_late_branch_repeats_the_savepoints(server, other_server, desk):
    await desk.begin()
    await desk.run("SELECT 1", shard=0)
    for sql in (b"SAVEPOINT a", b"SAVEPOINT b", b"ROLLBACK TO a"):
        await desk.branches.savepoint(sql)
    await desk.run("SELECT 1", shard=1)
    expected = ["BEGIN", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a"]
    assert transactions(server, other_server) == [expected, expected]


async def test_a_savepoint_that_was_refused_is_not_repeated(server, other_server, desk):
    await desk.begin()
    await desk.run("SELECT 1", shard=0)
    server.once("ROLLBACK TO x", Error(1305, "SAVEPOINT x does not exist", "42000"))
    with pytest.raises(BackendError, match="does not exist"):
        await desk.branches.savepoint(b"ROLLBACK TO x")
    await desk.run("SELECT 1", shard=1)
    assert transactions(other_server) == [["BEGIN"]]


async def test_a_connection_that_joined_half_way_is_nobody_elses(server, low, desk):
    await desk.begin()
    await desk.branches.savepoint(b"SAVEPOINT a")
    server.once("SAVEPOINT a", Error(1064, "no"))
    with pytest.raises(BackendError):
        await desk.run("SELECT 1", shard=0)
    await until(lambda: low.pool.connections == 0)
    await until(lambda: not server.relays)


async def test_one_shard_is_the_limit_where_the_configuration_says_so(low, high, other_server):
    desk = ExecutorRig(low, high, may_span_shards=False)
    await desk.begin()
    await desk.run("SELECT 1", shard=0)
    with pytest.raises(
        TransactionSpansShards, match=r"uses shard 'ks/-80' and may not use 'ks/80-'"
    ):
        await desk.run("SELECT 1", shard=1)
    assert transactions(other_server) == [[]]
    assert high.pool.lent == 0
    await desk.run("SELECT 1", shard=0)
    await desk.leave()


# --- COMMIT and ROLLBACK ---------------------------------------------------------------


async def test_commits_go_out_in_the_order_of_joining(server, other_server, desk, low, high):
    await desk.begin()
    await desk.run("SELECT 1", shard=1)
    await desk.run("SELECT 1", shard=0)
    await desk.branches.commit()
    assert transactions(server, other_server) == [["BEGIN", "COMMIT"]] * 2
    assert (low.pool.lent, high.pool.lent) == (0, 0)
    assert desk.state.transaction is None
    assert not desk.branches.in_transaction


async def test_a_first_commit_that_fails_rolls_everything_back(server, other_server, desk, low):
    await desk.begin()
    await on_both(desk)
    desk.branches.happened(low, "msg", ACK)
    server.once("COMMIT", Error(1180, "Got error 5 during COMMIT"))
    with pytest.raises(BackendError, match="during COMMIT"):
        await desk.branches.commit()
    assert transactions(server, other_server) == [
        ["BEGIN", "COMMIT", "ROLLBACK"],
        ["BEGIN", "ROLLBACK"],
    ]
    assert desk.published == []
    assert not desk.branches.in_transaction


async def test_a_later_commit_that_fails_is_a_partial_commit_and_named_so(
    server, other_server, desk, low, high
):
    await desk.begin()
    await on_both(desk)
    desk.branches.happened(low, "msg", ACK)
    other_server.once("COMMIT", HangUp())
    with pytest.raises(PartialCommit) as partial:
        await desk.branches.commit()
    assert str(partial.value).startswith("partial commit: committed on ks/-80; not on ks/80- (")
    assert desk.published == [("-80", "msg", [ACK])]
    assert (low.pool.lent, high.pool.lent) == (0, 0)


async def test_a_rollback_reaches_every_branch_and_no_engine(server, other_server, desk, low):
    await desk.begin()
    await on_both(desk)
    desk.branches.happened(low, "msg", ACK)
    await desk.branches.rollback()
    assert transactions(server, other_server) == [["BEGIN", "ROLLBACK"]] * 2
    assert desk.published == []
    assert low.pool.lent == 0


async def test_a_branch_that_cannot_be_told_to_roll_back_is_closed(server, desk, low):
    await desk.begin()
    await desk.run("SELECT 1", shard=0)
    server.once("ROLLBACK", Error(1064, "no"))
    await desk.branches.rollback()
    assert low.pool.connections == 0


# --- a branch is lost ------------------------------------------------------------------


async def lose(desk, server, shard):
    """Break a branch while it is idle."""
    backend = desk.branches.held[shard]
    server.break_connections()
    await until(lambda: backend.is_closed)


async def test_a_lost_branch_takes_the_others_with_it_and_only_rollback_leads_out(
    server, other_server, desk, low, high
):
    await desk.begin()
    await on_both(desk)
    desk.branches.happened(low, "msg", ACK)
    other_server.once("UPDATE", HangUp())
    with pytest.raises(BackendLost):
        await desk.run("UPDATE t SET a = 1", shard=1)
    await until(lambda: not server.relays)
    for shard in (0, 1):
        with pytest.raises(TransactionBroken, match="send ROLLBACK, then begin again"):
            await desk.run("INSERT INTO t VALUES (2)", shard=shard)
    with pytest.raises(TransactionBroken):
        await desk.branches.savepoint(b"SAVEPOINT a")
    await desk.branches.rollback()
    assert (await desk.run("INSERT INTO t VALUES (3)", shard=0)).error is None
    assert desk.published == []
    assert "INSERT INTO t VALUES (2)" not in server.heard + other_server.heard


async def test_a_branch_that_was_lost_while_idle_is_noticed_before_anything_is_sent(
    server, desk, low
):
    await desk.begin()
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    await lose(desk, server, low)
    with pytest.raises(TransactionBroken, match="lost its connection"):
        await desk.run("INSERT INTO t VALUES (2)", shard=0)
    assert "INSERT INTO t VALUES (2)" not in server.heard


async def test_nothing_is_committed_when_a_branch_was_lost_before(
    server, other_server, desk, low, high
):
    await desk.begin()
    await on_both(desk)
    await lose(desk, other_server, high)
    with pytest.raises(
        TransactionBroken, match=r"shard 'ks/80-' lost .*; nothing was committed"
    ):
        await desk.branches.commit()
    assert transactions(server) == [["BEGIN", "ROLLBACK"]]
    assert not desk.branches.in_transaction
    assert low.pool.lent == 0


async def test_the_commit_of_a_broken_transaction_ends_it_and_says_so(server, desk, low):
    await desk.begin()
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    server.once("UPDATE", HangUp())
    with pytest.raises(BackendLost):
        await desk.run("UPDATE t SET a = 1", shard=0)
    with pytest.raises(TransactionBroken, match="nothing was committed"):
        await desk.branches.commit()
    assert desk.state.transaction is None


async def test_without_autocommit_a_lost_transaction_is_broken_too(server, desk):
    await desk.run("SET autocommit = 0", shard=0)
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    server.once("UPDATE", HangUp())
    with pytest.raises(BackendLost):
        await desk.run("UPDATE t SET a = 1", shard=0)
    with pytest.raises(TransactionBroken):
        await desk.run("INSERT INTO t VALUES (2)", shard=0)


async def test_a_deadlock_on_one_shard_undoes_the_others(server, other_server, desk):
    await desk.begin()
    await on_both(desk)
    server.once("UPDATE", Error(1213, "Deadlock found", "40001"))
    assert (await desk.run("UPDATE t SET a = 1", shard=0)).code == 1213
    assert desk.state.transaction is None
    await until(lambda: not other_server.relays)
    await desk.branches.commit()
    assert transactions(other_server) == [["BEGIN"]]


async def test_session_state_outlives_the_transaction_that_broke_around_it(
    server, other_server, desk, low
):
    await desk.run("SET @a = 1", shard=0)
    await desk.begin()
    await on_both(desk)
    other_server.once("UPDATE", HangUp())
    with pytest.raises(BackendLost):
        await desk.run("UPDATE t SET a = 1", shard=1)
    (connection,) = server.relays
    assert connection.user_variables == {"a"}
    assert connection.in_transaction
    with pytest.raises(TransactionBroken):
        await desk.run("SELECT @a", shard=0)
    await desk.branches.rollback()
    assert not connection.in_transaction
    assert (await desk.run("SELECT @a", shard=0)).error is None
    assert low.pool.lent == 1


async def test_after_a_deadlock_elsewhere_session_state_waits_for_rollback(server, desk):
    await desk.run("SET @a = 1", shard=0)
    await desk.begin()
    await on_both(desk)
    held = desk.branches.held[desk.shards[1]]
    desk.branches.undone(desk.shards[1], held)
    desk.shards[1].pool.release(held)
    with pytest.raises(TransactionBroken, match="rolled it back"):
        await desk.run("INSERT INTO t VALUES (2)", shard=0)
    await desk.branches.rollback()
    assert not server.relays[0].in_transaction


async def test_session_state_that_went_with_a_rollback_is_told_and_no_connection_leaks(
    server, desk, low
):
    await desk.run("SET @a = 1", shard=0)
    await desk.begin()
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    server.once("ROLLBACK", HangUp())
    await desk.branches.rollback()
    with pytest.raises(SessionLost):
        await desk.run("SELECT @a", shard=0)
    assert low.pool.lent == 0


# --- the end ---------------------------------------------------------------------------


async def test_a_session_that_leaves_is_rolled_back_and_its_connections_are_used_again(
    server, desk, low
):
    await desk.begin()
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    desk.branches.happened(low, "msg", ACK)
    await desk.leave()
    (connection,) = server.relays
    assert not connection.in_transaction
    assert desk.published == []
    other = ExecutorRig(low)
    await other.run("SELECT 1")
    assert server.logins == 1
    await other.leave()


async def test_a_session_that_leaves_during_its_commit_closes_the_connection(server, desk, low):
    await desk.begin()
    await desk.run("INSERT INTO t VALUES (1)", shard=0)
    server.once("COMMIT", HangUp())
    committing = asyncio.ensure_future(desk.branches.commit())
    await until(lambda: desk.branches.held[low].is_busy)
    desk.executor.forget()
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing
    await until(lambda: low.pool.connections == 0)


async def test_entering_keeps_the_transaction_that_is_there(desk):
    desk.branches.entered()
    assert desk.state.transaction == Transaction(b"START TRANSACTION", is_implicit=True)
    await desk.begin("BEGIN WORK")
    desk.branches.entered()
    assert desk.state.transaction == Transaction(b"BEGIN WORK")


async def test_a_transaction_has_begun_with_its_begin_or_else_with_its_first_shard(desk, low):
    branches = desk.branches
    assert not branches.has_begun
    await desk.begin()
    assert branches.has_begun
    await branches.rollback()
    await desk.run("SET autocommit = 0")
    branches.entered()
    assert branches.in_transaction
    assert not branches.has_begun
    await desk.run("SELECT id FROM t")
    assert branches.has_begun
    await branches.rollback()
    assert not branches.has_begun
    await branches.savepoint(b"SAVEPOINT a")
    assert branches.has_begun


async def test_a_transaction_that_lost_a_branch_is_broken(server, desk):
    await desk.begin()
    await desk.run("SELECT id FROM t")
    assert not desk.branches.is_broken
    server.once("FROM t", HangUp())
    with pytest.raises(BackendLost):
        await desk.run("SELECT id FROM t")
    assert desk.branches.is_broken
