import pytest

from streamfrom.proxy.execution.session_tracking import bring_insert_id, spread_insert_id
from tests.cases import cases
from tests.proxy.fake_answers import Error, Ok, until
from tests.sqlparse_ext.facts import shape


@pytest.mark.parametrize("sql", ["SET profiling = 1", "SET ROLE boss"])
async def test_nobody_else_gets_a_connection_that_shows_what_was_run_on_it_or_keeps_a_role(
    server, shard, session, sql
):
    await session.run(sql)
    await session.leave()
    await until(lambda: not shard.pool.connections)
    assert shard.pool.lent == 0


async def test_without_autocommit_a_savepoint_keeps_its_connection(server, shard, session):
    await session.run("SET autocommit = 0")
    assert (shard.pool.lent, session.branches.in_transaction) == (0, False)
    await session.run("SAVEPOINT a")
    assert shard.pool.lent == 1
    await session.run("RELEASE SAVEPOINT a")
    assert shard.pool.lent == 1
    await session.run("COMMIT")
    assert shard.pool.lent == 0


async def test_without_autocommit_a_refused_statement_may_have_opened_one(
    server, shard, session
):
    await session.run("SET autocommit = 0")
    server.once("INSERT INTO", Error(1062, "Duplicate entry", "23000"))
    await session.run("INSERT INTO t VALUES (1)")
    assert session.branches.in_transaction
    assert shard.pool.lent == 1


@pytest.mark.parametrize("answer", [Ok(), Error(1609, "no format description")])
async def test_what_an_applier_of_a_binary_log_leaves_goes_to_nobody(
    server, shard, session, answer
):
    server.once("BINLOG", answer)
    await session.run("BINLOG 'x'")
    assert shard.pool.lent == 1  # the next one reads what this one described
    await session.leave()
    assert shard.pool.connections == 0


@cases(sql=str)
async def test_what_failed_may_have_begun_a_transaction_until_an_answer_says(
    server, shard, session, sql
):
    server.once(sql, Error(1644, "Unhandled user-defined exception", "45000"))
    await session.run(sql)
    assert shard.pool.lent == 1
    assert session.state.transaction is None  # nothing that another shard would have to join
    await session.run("SELECT * FROM t")
    assert shard.pool.lent == 0
    assert not session.branches.in_transaction


async def test_a_statement_on_several_shards_finds_the_last_insert_id_on_each(
    server, other_server, both
):
    asks = shape("UPDATE t SET a = 1 WHERE id = LAST_INSERT_ID()")
    server.once("VALUES ()", Ok(last_insert_id=41))
    await both.run("INSERT INTO t VALUES ()", shard=0)
    taken = [await shard.pool.acquire(both.state, "db") for shard in both.shards]
    for backend in taken:
        await bring_insert_id(both.state, backend, asks)
    await spread_insert_id(both.state, taken, asks)
    told = [relays[0].last_insert_id for relays in (server.relays, other_server.relays)]
    assert told == [41, 41]
    for shard, backend in zip(both.shards, taken, strict=True):
        shard.pool.release(backend)
    # Another id is made: no connection may tell the old one, also where a row names its id.
    other_server.once("VALUES ()", Ok(last_insert_id=42))
    await both.run("INSERT INTO t VALUES ()", shard=1)
    server.once("VALUES (90)", NAMED)
    await both.run("INSERT INTO t VALUES (90)", shard=0)
    assert (await both.run("SELECT LAST_INSERT_ID()", shard=0)).values == [b"42"]


NAMED = Ok(last_insert_id=90, names_its_id=True)
