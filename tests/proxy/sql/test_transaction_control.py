import pytest

from streamfrom.proxy.config.file import TransactionMode
from streamfrom.proxy.wire.constants import Status
from tests.proxy.fake_answers import HangUp
from tests.proxy.rigs import running_proxy, said


@pytest.mark.parametrize("by_variable", [False, True])
async def test_a_transaction_over_several_shards_may_be_chained_to_the_next(
    server, other_server, client, by_variable
):
    if by_variable:
        await client.query("SET completion_type = 'CHAIN'")
    for sql in ("START TRANSACTION READ ONLY", "SELECT * FROM t"):
        await client.query(sql)
    ended = await client.query("COMMIT" if by_variable else "ROLLBACK AND CHAIN")
    assert ended.status & Status.IN_TRANS
    await client.query("SELECT * FROM t")
    for each in (server, other_server):
        assert said(each)[-2:] == ["START TRANSACTION READ ONLY", "SELECT * FROM t"]
    assert not (await client.query("ROLLBACK AND NO CHAIN")).status & Status.IN_TRANS


@pytest.mark.parametrize(
    ("mode", "begin", "code", "reason"),
    [
        ("multi", "START TRANSACTION WITH CONSISTENT SNAPSHOT", 1235, "CONSISTENT SNAPSHOT"),
        ("single", "BEGIN", 1105, "may not use 'commerce/80-'"),
        ("single", "SET autocommit = 0", 1105, "may not use 'commerce/80-'"),
    ],
)
async def test_what_may_not_be_on_several_shards_is_refused_before_the_first_row(
    server, other_server, mode, begin, code, reason
):
    mode = TransactionMode(mode)
    async with running_proxy(server, other_server, transaction_mode=mode) as proxy:
        client = await proxy.client(None)
        assert (await client.query(begin)).error is None
        refused = await client.query("SELECT * FROM commerce.t")
    assert (refused.code, reason in refused.message) == (code, True)
    assert not any("SELECT * FROM" in sql for sql in said(server) + said(other_server))


@pytest.mark.parametrize("begin", ["BEGIN", "SET autocommit = 0"])
async def test_a_savepoint_that_is_not_set_is_an_error_before_a_shard_has_begun(
    server, client, begin
):
    for set_before, asked, known in (
        ("", "RELEASE SAVEPOINT a", False),
        ("", "ROLLBACK TO a", False),
        ("SAVEPOINT b", "ROLLBACK TO SAVEPOINT a", False),
        ("SAVEPOINT a", "ROLLBACK TO A", True),
        ("SAVEPOINT a; SAVEPOINT b; ROLLBACK TO a", "RELEASE SAVEPOINT b", False),
        ("SAVEPOINT a; SAVEPOINT b; ROLLBACK TO a", "RELEASE SAVEPOINT a", True),
        ("SAVEPOINT a; SAVEPOINT b; RELEASE SAVEPOINT a", "ROLLBACK TO b", False),
        ("SAVEPOINT a; SAVEPOINT b; SAVEPOINT a; ROLLBACK TO b", "ROLLBACK TO a", False),
        ("SAVEPOINT a; SAVEPOINT b; SAVEPOINT a", "ROLLBACK TO b", True),
    ):
        before = len(said(server))
        for sql in (begin, *filter(None, set_before.split("; "))):
            assert (await client.query(sql)).error is None
        answer = await client.query(asked)
        if known:
            assert answer.error is None
        else:
            assert (answer.code, answer.message.endswith("does not exist")) == (1305, True)
        assert (await client.query("INSERT INTO t (id) VALUES (1)")).error is None
        assert asked not in said(server)[before:] or known
        await client.query("ROLLBACK")


@pytest.mark.parametrize("sql", ["COMMIT", "BEGIN"])
async def test_a_broken_transaction_that_is_to_be_committed_says_that_it_was_not(
    server, proxy, sql
):
    client = await proxy.client()
    await client.query("BEGIN")
    server.once("INSERT", HangUp())
    await client.query("INSERT INTO u VALUES (1)")
    result = await client.query(sql)
    assert "nothing was committed" in result.message
    assert (await client.query("BEGIN")).error is None
    assert (await client.query("INSERT INTO u VALUES (2)")).error is None
