import hashlib
from itertools import count

import pytest

from streamfrom.engine.fleet.directory import CREATE
from streamfrom.proxy.errors import KeyspaceRemoved, NoDecisionTable
from streamfrom.proxy.twophase.decisions import Decisions, TransactionOutcome, record
from streamfrom.proxy.twophase.xid import GlobalId
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.rigs import add_decisions, running_shard


OWN = "0123456789abcdef"
WHOLE = GlobalId(OWN, "1" * 32)
OWN_KEY = f"self {hashlib.sha256(b'db').hexdigest()[:32]}"
READ_SELF = f"SELECT branches FROM streamfrom.decisions WHERE id = '{OWN_KEY}'"
NONE = Error(1146, "Table 'streamfrom.decisions' doesn't exist", "42S02")


def row(*values):
    return Rows(tuple("abc"[: len(values)]), (tuple(value.encode() for value in values),))


@pytest.fixture
def decisions():
    numbers = count(1)
    return Decisions(lambda: f"{next(numbers):016x}")


def about_decisions(server):
    return [text for text in server.controlled if "streamfrom.decisions" in text]


async def test_a_missing_table_is_made_and_given_an_id(server, shard, decisions):
    server.once(READ_SELF, NONE, row(f"{1:016x} db"))
    server.once("INSERT INTO streamfrom.decisions", NONE)
    assert await decisions.table_of(shard) == f"{1:016x}"
    _, refused, create, write, _ = about_decisions(server)
    assert create == CREATE[-1]
    assert refused == write
    assert f"{1:016x} db".encode().hex() in write


async def test_two_shards_with_one_table_are_refused_unless_they_are_one_database(
    server, other_server, shard, decisions
):
    """As those of a keyspace that is renamed are for a moment."""
    for each in (server, other_server):
        add_decisions(each, OWN)
    await decisions.table_of(shard)
    async with running_shard(other_server, "80-") as other:
        with pytest.raises(NoDecisionTable, match="the id of the one of shard 'plain/-'"):
            await decisions.table_of(other)
    async with running_shard(server, "80-") as renamed:
        assert await decisions.table_of(renamed) == OWN
        assert decisions.known() == {OWN: renamed}
        renamed.retire(lambda: KeyspaceRemoved("plain"))
        assert decisions.known() == {OWN: shard}


async def test_a_table_that_cannot_be_made_says_why(server, shard, decisions):
    server.on("streamfrom.decisions", NONE)
    server.on("CREATE TABLE", Error(1142, "CREATE command denied to user 'u'", "42000"))
    with pytest.raises(NoDecisionTable, match="CREATE command denied") as refused:
        await decisions.table_of(shard)
    assert "'streamfrom.decisions' on shard 'plain/-'" in str(refused.value)
    assert "`streamfrom check`" in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (row(str(WHOLE)), TransactionOutcome.COMMITTED),
        (Rows(("id",)), TransactionOutcome.ROLLED_BACK),
        (Error(3572, "NOWAIT is set"), TransactionOutcome.UNKNOWN),
        (Error(1205, "Lock wait timeout exceeded"), TransactionOutcome.UNKNOWN),
        (NONE, TransactionOutcome.UNKNOWN),
    ],
)
async def test_the_row_says_what_became_of_a_transaction(
    server, shard, decisions, answer, outcome
):
    add_decisions(server, OWN)
    server.on("FOR UPDATE NOWAIT", answer)
    assert await decisions.outcome(shard, WHOLE) is outcome


async def test_another_table_says_nothing(server, shard, decisions):
    add_decisions(server, "f" * 16)
    server.on("FOR UPDATE NOWAIT", Rows(("id",)))
    assert await decisions.outcome(shard, WHOLE) is TransactionOutcome.UNKNOWN


async def test_rows_of_other_shards_of_the_server_are_left_out(server, shard, decisions):
    add_decisions(server, OWN)
    await decisions.table_of(shard)
    rows = ((str(WHOLE).encode(), b"b,c"), (b"mine", b"x"))
    server.on(f"LIKE 'streamfrom:{OWN}:%'", Rows(("id", "branches"), rows))
    assert await decisions.rows(shard) == {WHOLE: frozenset({"b", "c"})}


async def test_what_is_done_with_is_deleted_together_and_again_if_that_fails(
    server, shard, decisions
):
    other = GlobalId(OWN, "2" * 32)
    decisions.forget(shard, WHOLE)
    decisions.forget(shard, other)
    server.once("DELETE", Error(1290, "--read-only"))
    await decisions.flush()
    await decisions.flush()
    await decisions.flush()
    sql = f"DELETE FROM streamfrom.decisions WHERE id IN ('{WHOLE}', '{other}')"
    assert about_decisions(server) == [sql, sql]


def test_a_decision_is_written_for_the_database_that_the_name_means_and_no_other():
    sql = record("db", WHOLE, ["b", "c"], 7).decode()
    assert sql.startswith("INSERT INTO streamfrom.decisions (id, branches, time_created)")
    assert f"SELECT '{WHOLE}', 'b,c', 7 FROM" in sql
    assert sql.endswith(f"id = '{OWN_KEY}' AND branches = x'{f'{OWN} db'.encode().hex()}'")
