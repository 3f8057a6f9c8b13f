"""Two shards; the transaction begins on the first."""

import asyncio
from contextlib import nullcontext

import pytest

from streamfrom.engine.clock import SystemClock
from streamfrom.proxy.errors import (
    CommitPending,
    CommitRefused,
    CommitUnknown,
    TransactionBroken,
)
from streamfrom.proxy.twophase.coordinator import Coordinator
from streamfrom.proxy.twophase.decisions import Decisions
from streamfrom.proxy.twophase.xid import FORMAT_ID, GlobalId
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.proxy.fake_answers import HANG_S, Error, HangUp, Ok, Rows, Silence, until
from tests.proxy.rigs import SessionRig, add_decisions


A, B = "a" * 16, "b" * 16
WHOLE = GlobalId(A, "1" * 32)
XID = WHOLE.branch(B)
NEW = Effect(EffectKind.NEW, (2,))
PREPARED = Rows(
    ("formatID", "gtrid_length", "bqual_length", "data"),
    ((b"%d" % FORMAT_ID, b"60", b"16", f"{WHOLE}{B}".encode()),),
    types=(*[FieldType.LONG] * 3, FieldType.VAR_STRING),
)
DECIDED = Rows(("id",), ((str(WHOLE).encode(),),))
UNDECIDED = Rows(("id",))


@pytest.fixture(autouse=True)
def kept(server, other_server):
    """Both servers keep decisions."""
    add_decisions(server, A)
    add_decisions(other_server, B)


@pytest.fixture
def decisions():
    return Decisions(lambda: "f" * 16)


@pytest.fixture
def patience_s():
    """Whoever answers is waited for, however busy the machine is."""
    return HANG_S


@pytest.fixture
def coordinator(decisions, patience_s):
    return Coordinator(
        decisions, SystemClock(), patience_s=patience_s, new_number=lambda: "1" * 32
    )


in_vain = pytest.mark.parametrize("patience_s", [0.02])


@pytest.fixture
async def session(low, high, coordinator):
    made = SessionRig(low, high, coordinator=coordinator)
    yield made
    await made.leave()


async def on_both(session):
    await session.begin()
    for shard in (0, 1):
        await session.run("INSERT INTO t VALUES (1)", shard=shard)
        session.branches.happened(session.shards[shard], "msg", NEW)


def steps(server):
    """What a server was told about the transaction, the names left out."""
    words = {"BEGIN": "BEGIN", "COMMIT": "COMMIT", "ROLLBACK": "ROLLBACK", "XA": None}
    told = []
    for text in server.heard:
        verb = text.split()[0]
        if "streamfrom.decisions" in text:
            told.append("DECIDE")
        elif verb in words:
            told.append(words[verb] or " ".join(text.split()[:2]))
    return told


BEGUN = ["XA START"]
PREPARE = ["XA END", "XA PREPARE"]


async def test_the_first_shard_decides_once_all_others_are_prepared(
    server, other_server, session, low, high, coordinator, decisions
):
    await on_both(session)
    asked = []
    gate = asyncio.Event()
    other_server.once("XA PREPARE", Silence(gate))
    task = asyncio.create_task(session.branches.commit())
    await until(lambda: "XA PREPARE" in steps(other_server))
    asked.append(steps(server))
    assert coordinator.live == {WHOLE}
    gate.set()
    await task
    assert asked == [["BEGIN", "DECIDE"]]
    assert steps(server) == ["BEGIN", "DECIDE", "COMMIT"]
    assert steps(other_server) == [*BEGUN, *PREPARE, "XA COMMIT"]
    assert other_server.heard.count(f"XA COMMIT {XID}") == 1
    assert [name for name, *_ in session.published] == ["-80", "80-"]
    assert (low.pool.lent, high.pool.lent) == (0, 0)
    assert coordinator.live == set()
    await decisions.flush()
    assert any("DELETE FROM streamfrom.decisions" in text for text in server.controlled)


async def test_a_shard_that_ends_its_part_by_itself_breaks_the_transaction(server, session):
    await on_both(session)
    connection = next(c for c in server.relays if c.in_transaction)
    connection.in_transaction = False
    await session.run("SELECT f()", shard=0)
    with pytest.raises(TransactionBroken, match="'ks/-80' ended its part by itself"):
        await session.run("SELECT 1", shard=1)


INSERT = "INSERT INTO streamfrom.decisions"
UNDONE = ["XA END", "XA ROLLBACK"]
REFUSED_PREPARE = r"^shard 'ks/80-' refused to commit, and the transaction was rolled back on every shard: XA_R"


@pytest.mark.parametrize(
    ("at", "text", "answer", "error", "words", "first", "other"),
    [
        (1, "XA PREPARE", Error(1402, "XA_RBROLLBACK: was rolled back", "XA100"), CommitRefused,
         REFUSED_PREPARE, [], [*PREPARE, *UNDONE]),
        (0, INSERT, Error(1142, "INSERT command denied", "42000"), CommitRefused, "command denied", [], UNDONE),
        # The table was replaced.
        (0, INSERT, Ok(affected_rows=0), CommitRefused, "is not the one that it was", [], UNDONE),
        (1, "XA PREPARE", HangUp(), TransactionBroken, r"'ks/80-' lost .*; nothing was committed", [], PREPARE),
        # The first shard reads only; the other one, which is tried in turn, writes.
        (0, INSERT, Error(1792, "in a READ ONLY transaction"), TransactionBroken,
         "READ ONLY transaction; nothing was committed", [], ["DECIDE", *UNDONE]),
        (0, "COMMIT", Error(1180, "Got error 5 during COMMIT"), CommitRefused, "during COMMIT",
         ["COMMIT"], [*PREPARE, *UNDONE]),
    ],
)  # fmt: skip
async def test_what_fails_before_the_decision_stands_is_rolled_back_on_every_shard(
    server, other_server, session, high, at, text, answer, error, words, first, other
):
    await on_both(session)
    (server, other_server)[at].once(text, answer)
    server.on("FOR UPDATE NOWAIT", UNDECIDED)
    with pytest.raises(error, match=words) as failed:
        await session.branches.commit()
    if error is CommitRefused and isinstance(answer, Error):
        assert failed.value.wire_code() == (answer.code, answer.sqlstate)
    assert steps(server) == ["BEGIN", "DECIDE", *first, "ROLLBACK"]
    assert steps(other_server) == [*BEGUN, *other]
    assert (high.pool.lent, session.published) == (0, [])


async def test_a_decision_outside_of_the_transaction_is_none(server, other_server, session):
    await on_both(session)
    connection = next(c for c in server.relays if c.in_transaction)
    connection.in_transaction = False
    with pytest.raises(CommitRefused):
        await session.branches.commit()
    assert "XA PREPARE" not in steps(other_server)


@pytest.mark.parametrize(
    ("rows", "outcome", "end"),
    [
        ((Error(3572, "NOWAIT is set"), DECIDED), nullcontext(), "XA COMMIT"),
        ((UNDECIDED,), pytest.raises(TransactionBroken, match="nothing was"), "XA ROLLBACK"),
    ],
)
async def test_a_decision_whose_answer_was_lost_is_what_its_row_says(
    server, other_server, session, rows, outcome, end
):
    await on_both(session)
    server.once("COMMIT", HangUp())
    server.once("FOR UPDATE NOWAIT", *rows)
    with outcome:
        await session.branches.commit()
    assert steps(other_server)[-1] == end
    assert len(session.published) == 2 * (end == "XA COMMIT")


@in_vain
async def test_as_long_as_nobody_knows_nothing_is_undone(
    server, other_server, session, high, coordinator
):
    await on_both(session)
    server.once("COMMIT", HangUp())
    server.on("FOR UPDATE NOWAIT", Error(3572, "NOWAIT is set"))
    with pytest.raises(CommitUnknown) as unknown:
        await session.branches.commit()
    assert str(unknown.value) == (
        "whether the transaction is committed is not known: shard 'ks/-80' was lost while it"
        " committed. It is prepared on ks/80- and will be completed or rolled back there, as"
        " 'ks/-80' did, once that shard answers: check before you repeat it"
    )
    assert steps(other_server) == [*BEGUN, *PREPARE]
    assert high.pool.connections == 0
    assert session.published == []
    assert coordinator.live == set()


@in_vain
async def test_a_shard_that_does_not_follow_in_time_is_named(server, other_server, session):
    await on_both(session)
    other_server.once("XA COMMIT", HangUp())
    other_server.on("XA COMMIT", Error(1397, "XAER_NOTA: Unknown XID", "XAE04"))
    other_server.on("XA RECOVER", PREPARED)
    with pytest.raises(CommitPending) as pending:
        await session.branches.commit()
    assert str(pending.value) == (
        "the transaction is committed, but not to be seen yet on ks/80- (no answer); it is"
        " prepared there and will be completed: do not repeat it"
    )
    assert len(session.published) == 2


async def test_a_client_that_leaves_in_the_middle_changes_nothing(
    server, other_server, session, low, high
):
    await session.run("SET @a = 1", shard=0)
    await on_both(session)
    gate = asyncio.Event()
    other_server.once("XA PREPARE", Silence(gate))
    task = asyncio.create_task(session.branches.commit())
    await until(lambda: "XA PREPARE" in steps(other_server))
    await session.leave()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    await until(lambda: steps(other_server)[-1:] == ["XA COMMIT"])
    await until(lambda: (low.pool.lent, high.pool.lent) == (0, 0))
    # The first connection held a variable of a session that is over.
    assert steps(server) == ["BEGIN", "DECIDE", "COMMIT", "ROLLBACK"]
    assert "RESET" in server.heard
    assert len(session.published) == 2


async def test_a_session_that_reads_only_commits_without_a_decision(
    server, other_server, session
):
    await on_both(session)
    for each in (server, other_server):
        each.on("INSERT INTO streamfrom.decisions", Error(1792, "in a READ ONLY transaction"))
    await session.branches.commit()
    assert steps(server) == ["BEGIN", "DECIDE", "ROLLBACK"]


async def test_what_began_in_two_phases_ends_so_where_a_server_tells_late_that_it_reads_only(
    server, other_server, session
):
    # SET TRANSACTION READ ONLY, and a first statement that failed: an error has no flags.
    await on_both(session)
    session.branches.entered(reads_only=True)
    await session.branches.commit()
    assert steps(other_server) == [*BEGUN, *PREPARE, "XA COMMIT"]
