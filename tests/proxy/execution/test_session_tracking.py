import pytest

from streamfrom.proxy.backends.diagnostics_area import CarriedFoundRows
from streamfrom.proxy.backends.handover import hand_over_now
from streamfrom.proxy.execution.session_tracking import bring_insert_id
from tests.proxy.fake_answers import Error, Ok, Rows, until
from tests.proxy.rigs import ExecutorRig, running_shard
from tests.sqlparse_ext.facts import shape


WHAT_IS_LEFT = "SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID(), LAST_INSERT_ID(0)"


@pytest.mark.parametrize("sql", ["SET @a = 1", "SELECT GET_LOCK('a', 1)", "LOCK TABLES t READ"])
async def test_state_that_cannot_be_rebuilt_keeps_the_connection(server, shard, desk, sql):
    await desk.run(sql)
    assert shard in desk.branches.held
    assert shard.pool.lent == 1
    await desk.run("SELECT 1")
    assert server.logins == 1


async def test_what_a_departed_session_left_is_undone_before_the_connection_changes_hands(
    server, shard, desk
):
    await desk.run("SET @a = 1")
    await desk.run("SET autocommit = 0")
    await desk.run("INSERT INTO t VALUES (1)")
    await desk.leave()
    (connection,) = server.relays
    assert connection.user_variables == set()
    assert not connection.in_transaction
    assert shard.pool.lent == 0
    other = ExecutorRig(shard)
    await other.run("SELECT 1")
    assert server.logins == 1
    assert connection.autocommit


async def test_nobody_else_gets_a_connection_that_shows_what_was_run_on_it(server, shard, desk):
    await desk.run("SET profiling = 1")
    await desk.leave()
    await until(lambda: not shard.pool.connections)
    assert shard.pool.lent == 0


async def test_a_transaction_keeps_its_connection_until_it_ends(server, shard, desk):
    await desk.run("BEGIN")
    assert shard.pool.lent == 1
    assert desk.branches.in_transaction
    await desk.run("INSERT INTO t VALUES (1)")
    await desk.run("COMMIT")
    assert shard.pool.lent == 0
    assert not desk.branches.in_transaction
    assert desk.state.transaction is None


async def test_without_autocommit_a_savepoint_keeps_its_connection(server, shard, desk):
    await desk.run("SET autocommit = 0")
    await desk.run("SAVEPOINT a")
    assert shard.pool.lent == 1
    await desk.run("RELEASE SAVEPOINT a")
    assert shard.pool.lent == 1
    await desk.run("COMMIT")
    assert shard.pool.lent == 0


async def test_without_autocommit_any_statement_opens_one(server, shard, desk):
    await desk.run("SET autocommit = 0")
    assert not desk.branches.in_transaction
    await desk.run("SELECT * FROM t")
    assert desk.branches.in_transaction
    assert shard.pool.lent == 1


async def test_without_autocommit_a_refused_statement_may_have_opened_one(server, shard, desk):
    await desk.run("SET autocommit = 0")
    server.once("INSERT INTO", Error(1062, "Duplicate entry", "23000"))
    await desk.run("INSERT INTO t VALUES (1)")
    assert desk.branches.in_transaction
    assert shard.pool.lent == 1


@pytest.mark.parametrize("answer", [Ok(), Error(1609, "no format description")])
async def test_what_an_applier_of_a_binary_log_leaves_goes_to_nobody(
    server, shard, desk, answer
):
    server.once("BINLOG", answer)
    await desk.run("BINLOG 'x'")
    assert shard.pool.lent == 1  # the next one reads what this one described
    await desk.leave()
    assert shard.pool.connections == 0


@pytest.mark.parametrize(
    "sql",
    [
        "CALL p()",
        "EXECUTE p",
        "BEGIN NOT ATOMIC SELECT 1; END",
        "IF 1 THEN SELECT 1; END IF",
        "SET STATEMENT max_statement_time = 1 FOR CALL p()",
    ],
)
async def test_what_failed_may_have_begun_a_transaction_until_an_answer_says(
    server, shard, desk, sql
):
    server.once(sql, Error(1644, "Unhandled user-defined exception", "45000"))
    await desk.run(sql)
    assert shard.pool.lent == 1
    assert desk.state.transaction is None  # nothing that another shard would have to join
    await desk.run("SELECT * FROM t")
    assert shard.pool.lent == 0
    assert not desk.branches.in_transaction


async def test_a_deadlock_ends_the_transaction_as_on_one_server(server, shard, desk):
    await desk.run("BEGIN")
    server.once("UPDATE", Error(1213, "Deadlock found", "40001"))
    assert (await desk.run("UPDATE t SET a = 1")).code == 1213
    assert desk.state.transaction is None
    assert shard.pool.lent == 0


@pytest.mark.parametrize(
    ("answer", "has_residue"),
    [
        (Ok(), False),
        (Ok(warnings=1), True),
        (Ok(last_insert_id=7), False),
        (Error(1062, "Duplicate"), True),
    ],
)
async def test_what_another_session_could_notice_is_remembered(
    server, shard, desk, answer, has_residue
):
    server.on("INSERT INTO", answer)
    await desk.run("INSERT INTO t VALUES (1)")
    (backend,) = shard.pool._idle
    assert backend.has_residue is has_residue


async def test_the_last_insert_id_goes_where_it_is_asked_for(server, other_server):
    async with running_shard(server) as one, running_shard(other_server) as two:
        desk = ExecutorRig(one, two)
        server.on("INSERT INTO", Ok(last_insert_id=41))
        await desk.run("INSERT INTO t VALUES ()", shard=0)
        assert (await desk.run("SELECT LAST_INSERT_ID()", shard=1)).values == [b"41"]
        assert (await desk.run("SELECT LAST_INSERT_ID()", shard=1)).values == [b"41"]
        assert other_server.heard.count("SET last_insert_id = 41") == 1
        await desk.leave()


NAMED = Ok(last_insert_id=90, names_its_id=True)


@pytest.mark.parametrize("asks", [1, 2])
async def test_a_row_that_names_its_id_keeps_the_id_that_another_connection_made(server, asks):
    async with running_shard(server, pool_size=1) as shard:
        desk, other = ExecutorRig(shard), ExecutorRig(shard)
        server.once("INSERT INTO t VALUES ()", Ok(last_insert_id=41))
        await desk.run("INSERT INTO t VALUES ()")
        for _ in range(asks):
            await other.run("SELECT 1")
            server.once("INSERT INTO t VALUES (90)", NAMED)
            await desk.run("INSERT INTO t VALUES (90)")
        assert (await desk.run("SELECT LAST_INSERT_ID()")).values == [b"41"]
        await other.run("SELECT 1")
        assert (await desk.run("SELECT LAST_INSERT_ID()")).values == [b"41"]
        await desk.leave()
        await other.leave()


@pytest.mark.parametrize("made_at", [0, 1])
async def test_of_two_connections_the_one_that_made_an_id_last_tells_it(
    server, other_server, made_at
):
    async with running_shard(server) as one, running_shard(other_server) as two:
        desk = ExecutorRig(one, two)
        shards = (made_at, 1 - made_at)
        for number, shard in enumerate((*shards, *shards), 1):
            (server, other_server)[shard].once("VALUES ()", Ok(last_insert_id=40 + number))
            await desk.run("INSERT INTO t VALUES ()", shard=shard)
        for shard in shards:
            (server, other_server)[shard].on("VALUES (90)", NAMED)
            await desk.run("INSERT INTO t VALUES (90)", shard=shard)
            assert (await desk.run("SELECT LAST_INSERT_ID()", shard=shard)).values == [b"44"]
        assert (await desk.run("SELECT LAST_INSERT_ID()", shard=made_at)).values == [b"44"]
        await desk.leave()


@pytest.mark.parametrize(
    "sql",
    [
        "CALL p()",
        "INSERT INTO t VALUES (); SELECT 1",
        "INSERT INTO t VALUES () RETURNING a",
        "LOAD DATA INFILE 'f' INTO TABLE t",
    ],
)
async def test_an_id_that_no_answer_tells_follows_the_session(server, sql):
    async with running_shard(server, pool_size=1) as shard:
        desk, other = ExecutorRig(shard), ExecutorRig(shard)
        server.on("RETURNING", Rows(("a",), ((b"1",),)))
        await desk.run(sql)
        (connection,) = server.relays
        connection.last_insert_id = 41
        await other.run("SELECT 1")
        assert (await desk.run("SELECT LAST_INSERT_ID()")).values == [b"41"]
        await desk.leave()
        await other.leave()


@pytest.mark.parametrize(
    ("sql", "on_server"),
    [("SET last_insert_id = 0", 0), ("UPDATE t SET a = LAST_INSERT_ID(0)", 41)],
)
async def test_what_sets_the_insert_id_to_0_finds_the_one_before(server, sql, on_server):
    async with running_shard(server, pool_size=1) as shard:
        desk, other = ExecutorRig(shard), ExecutorRig(shard)
        server.once("INSERT", Ok(last_insert_id=41))
        await desk.run("INSERT INTO t VALUES ()")
        await other.run("SELECT 1")
        await desk.run(sql)
        assert (desk.state.id_before, server.relays[0].last_insert_id) == (0, on_server)
        await desk.leave()
        await other.leave()


async def test_a_connection_that_breaks_does_not_take_the_last_insert_id_along(
    server, shard, desk
):
    server.once("INSERT INTO", Ok(last_insert_id=41))
    await desk.run("INSERT INTO t (a) VALUES (1)")
    (backend,) = shard.pool._idle
    backend.abort()
    await until(lambda: not shard.pool.connections)
    other = await shard.pool.acquire(desk.state, "db")
    await bring_insert_id(desk.state, other, shape("SELECT LAST_INSERT_ID()"))
    assert "SET last_insert_id = 41" in server.heard
    shard.pool.release(other)


async def test_the_last_insert_id_outlives_the_connection_it_was_made_on(server):
    async with running_shard(server, pool_size=1) as shard:
        desk, other = ExecutorRig(shard), ExecutorRig(shard)
        server.once("INSERT INTO", Ok(last_insert_id=41))
        await desk.run("INSERT INTO t VALUES ()")
        await other.run("SELECT 1")
        assert (await other.run("SELECT LAST_INSERT_ID()")).values == [b"0"]
        assert (await desk.run("SELECT LAST_INSERT_ID()")).values == [b"41"]
        assert "RESET" not in server.heard
        await desk.leave()
        await other.leave()


@pytest.mark.parametrize(
    ("sql", "answer", "counts", "asks"),
    [
        ("SELECT a FROM t", Rows(("a",), ((b"1",), (b"2",))), (2, -1), 0),
        ("SELECT a FROM t LIMIT 1, 1", Rows(("a",), ((b"2",),)), (3, -1), 1),
        ("DELETE FROM t", Ok(affected_rows=4), (0, 4), 0),
        ("DELETE FROM t", Ok(), (0, 0), 0),
        ("CREATE TABLE u (a INT)", Ok(), (0, 0), 0),
        ("UPDATE t SET a = 1", Ok(4, info=b"Rows matched: 7  Changed: 4"), (7, 4), 0),
        ("SELECT oops", Error(1054, "42S22", "no"), (3, -1), 1),
    ],
)
async def test_who_loses_a_connection_takes_the_counts_along(server, sql, answer, counts, asks):
    async with running_shard(server, pool_size=1) as shard:
        desk, other = ExecutorRig(shard), ExecutorRig(shard)
        server.once(sql, answer)
        await desk.run(sql)
        await other.run("SELECT 1")
        left = desk.state.left
        assert left is not None
        assert (left.found_rows, left.row_count) == counts
        assert server.heard.count(WHAT_IS_LEFT) == asks
        await desk.leave()
        await other.leave()


async def test_a_write_on_another_connection_leaves_the_count_of_the_session(
    server, other_server
):
    async with (
        running_shard(server, pool_size=1) as one,
        running_shard(other_server) as two,
    ):
        desk, other = ExecutorRig(one, two), ExecutorRig(one)
        server.once("SELECT a", Rows(("a",), ((b"1",), (b"2",))))
        await desk.run("SELECT a FROM t")
        await other.run("SELECT 1")
        await desk.run("DELETE FROM t", shard=1)
        (connection,) = two.pool._idle
        assert isinstance(connection.found_rows, CarriedFoundRows)
        assert connection.found_rows.told == 2
        assert desk.state.answered_at is connection
        await desk.run("DELETE FROM t")
        (connection,) = one.pool._idle
        assert isinstance(connection.found_rows, CarriedFoundRows)
        assert connection.found_rows.told == 2
        await desk.leave()
        await other.leave()


async def test_a_count_that_its_server_alone_knows_is_asked_for_behind_a_write_elsewhere(
    server, other_server
):
    async with running_shard(server) as one, running_shard(other_server) as two:
        desk = ExecutorRig(one, two)
        server.once(WHAT_IS_LEFT, Rows(tuple("abcd"), ((b"3", b"-1", b"0", b"0"),)))
        await desk.run("SELECT a FROM t LIMIT 1, 1")
        await desk.run("DELETE FROM t", shard=1)
        (connection,) = two.pool._idle
        found = connection.found_rows
        assert isinstance(found, CarriedFoundRows)
        await until(lambda: found.told is not None)
        assert found.told == 3
        await desk.leave()


async def test_an_insert_id_that_somebody_takes_away_at_this_moment_is_waited_for(
    server, shard, desk
):
    server.once("INSERT", Ok(last_insert_id=7))
    await desk.run("INSERT INTO t VALUES ()")
    (source,) = shard.pool._idle
    somebody = ExecutorRig(shard).state
    other = await shard.pool.acquire(somebody, "db")
    assert hand_over_now(source, somebody, source.settings, "db")
    await bring_insert_id(desk.state, other, shape("SELECT LAST_INSERT_ID()"))
    assert desk.state.last_insert_id == 7
    assert "SET last_insert_id = 7" in server.heard
    shard.pool.release(other)
