import asyncio

import pytest

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.table.message_table import load
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.proxy.backends.pooling.multiplexing import FIRST_TRIAL
from streamfrom.proxy.errors import BackendLost, BackendUnavailable, PoolTimeout
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.sql import fast_path as module
from streamfrom.proxy.sql.compile.catalog import Catalog
from streamfrom.proxy.sql.fast_path import FastPath
from streamfrom.proxy.sql.prepared_statements import PreparedStatements
from streamfrom.proxy.sql.transaction_control import TransactionControl
from streamfrom.proxy.wire.constants import Status
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Error, HangUp, rows_of, until
from tests.proxy.fake_client import read_result
from tests.proxy.rigs import SessionRig, context_of, running_shard, said
from tests.proxy.sql.compilers import compiler_over
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


PLAIN = Keyspace("plain", (Shard.named("-"),))


class Registry:
    """Message tables come and go as a test likes."""

    def __init__(self):
        self.generation = 0
        self.tables = {}
        self.asked, self.taken, self.awaits = [], None, False
        self.here = self

    def know(self, name, table):
        self.tables[name] = table
        self.generation += 1

    def table(self, keyspace, name):
        return self.tables.get(name)

    def ack_early(self, *ack):
        self.asked.append(ack)
        return self.taken

    def awaits_acks(self, keyspace, shard, table):
        return self.awaits


class Scene:
    """The hot path of one session."""

    def __init__(self, session, *keyspaces):
        self.session = session
        self.registry = Registry()
        shards = [(k.name, shard.name) for k in keyspaces for shard in k.shards]
        runtimes = dict(zip(shards, session.shards, strict=True))
        catalog = Catalog(keyspaces, runtimes, self.registry)  # type: ignore[arg-type]
        self.compiler = compiler_over(catalog, self.registry, session.state)
        context = context_of(
            compiler=self.compiler,
            connections=session.executor.connections,
            executor=session.executor,
            registry=self.registry,
            state=session.state,
        )
        self.path = FastPath(
            context,
            PreparedStatements(),
            TransactionControl(context, None),  # type: ignore[arg-type]
        )

    def reply(self):
        return Reply(self.session.link.link, self.session.state, 1)

    async def send(self, sql):
        """Take the hot path; return how it ended, None where it was not taken."""
        at = len(self.session.link.written)
        ended = asyncio.get_running_loop().create_future()
        reply = self.reply()
        if not self.path.send(sql.encode(), reply, ended.set_result):
            return None
        outcome = await ended
        if outcome is not None and not self.session.executor.finish(outcome):
            return "again"
        return read_result(
            bytes(self.session.link.written[at:]), self.session.state.capabilities
        )


@pytest.fixture
async def scene(server):
    async with running_shard(server) as shard:
        session = SessionRig(shard)
        made = Scene(session, PLAIN)
        made.compiler.target.use("plain")
        await session.run("SELECT 'a connection'")
        yield made
        await session.leave()


@in_turn
@cases(sql=str)
async def test_what_is_not_plain_takes_the_long_way(server, scene, sql):
    heard = len(server.heard)
    for _ in range(2):
        assert await scene.send(sql) is None
    assert server.heard[heard:] == []


async def test_a_long_template_is_read_and_planned_by_the_long_way_first(scene):
    sql = f"SELECT {'+'.join(f'a{number}' for number in range(2000))}"
    target = scene.compiler.target
    assert await scene.send(sql) is None
    statement = target.parse(sql.encode())
    assert await scene.send(sql) is None
    target.view.planner.plan(statement.shape)
    assert await scene.send(sql) is not None


async def test_a_begin_travels_with_the_first_statement(server, scene):
    heard = len(server.heard)
    for end in ("COMMIT", "ROLLBACK"):
        assert (await scene.send("BEGIN")).ok.status & Status.IN_TRANS
        assert server.heard[heard:] == []
        assert (await scene.send("DELETE FROM t")).ok.status & Status.IN_TRANS
        assert not (await scene.send(end)).ok.status & Status.IN_TRANS
        assert server.heard[heard:] == ["BEGIN", "DELETE FROM t", end]
        heard = len(server.heard)


async def test_a_begin_whose_answer_the_client_wants_is_sent_at_once(proxy, server):
    client = await proxy.client("plain")
    await client.query("SET SESSION session_track_transaction_info = 'STATE'")
    await client.query("BEGIN")
    assert said(server)[-1] == "BEGIN"


@pytest.mark.parametrize("before", ["SAVEPOINT a", "SET @a = 1", "SELECT GET_LOCK('a', 0)"])
@pytest.mark.parametrize("begin", ["BEGIN", "START TRANSACTION READ WRITE"])
async def test_a_begin_comes_before_what_cannot_travel_with_it(proxy, server, begin, before):
    client = await proxy.client("plain")
    await client.query(before)
    for sql in (begin, "SELECT * FROM t", "COMMIT"):
        assert (await client.query(sql)).error is None
    assert said(server)[-3:] == [begin, "SELECT * FROM t", "COMMIT"]


async def test_nothing_runs_outside_of_a_transaction_whose_begin_is_refused(server, scene):
    server.once("BEGIN", Error(1047, "not yet"))
    await scene.send("BEGIN")
    with pytest.raises(BackendLost):
        await scene.send("SELECT * FROM t")
    assert scene.session.executor.branches.is_broken
    assert scene.session.shards[0].pool.connections == 0


EARLY = load("plain", raw_table("msg", DEFAULT_COMMENT + ",vt_ack=early"))
ACK = "UPDATE msg SET time_acked = 1800000000000000005 WHERE id IN (1, 2)"


async def test_an_ack_of_what_is_in_flight_is_answered_before_any_server_is_asked(
    server, scene
):
    scene.registry.know("msg", EARLY)
    scene.registry.taken = 2
    heard = len(server.heard)
    result = await scene.send(ACK)
    assert (result.ok.affected_rows, result.ok.info) == (
        2,
        b"Rows matched: 2  Changed: 2  Warnings: 0",
    )
    assert scene.registry.asked == [("plain", "-", "msg", (b"1", b"2"), 1800000000000000005)]
    assert server.heard[heard:] == []
    assert scene.session.state.diagnostics.row_count == 2
    assert scene.session.published == []


async def test_an_ack_that_cannot_be_early_is_sent_unless_rows_are_to_be_waited_for(
    server, scene
):
    scene.registry.know("msg", EARLY)
    assert (await scene.send(ACK)).error is None
    assert "time_acked = 1800000000000000005" in server.heard[-1]
    scene.registry.awaits = True
    for sql in (ACK, "DELETE FROM msg WHERE id = 1"):
        assert await scene.send(sql) is None, "the long way waits for the rows"
    assert (await scene.send("INSERT INTO msg (id) VALUES (9)")).error is None


async def test_a_table_that_becomes_a_message_table_is_noticed(server, scene):
    sql = "UPDATE msg SET time_acked = 1800000000000000005 WHERE id = 1"
    await scene.send(sql)
    assert server.heard[-1] == sql
    scene.registry.know("msg", load("plain", raw_table("msg")))
    await scene.send(sql)
    assert server.heard[-1] != sql
    scene.registry.know("msg", TableLoadError("msg", "no"))
    assert await scene.send(sql) is None
    scene.registry.know("msg", None)
    await scene.send(sql)
    assert server.heard[-1] == sql


async def test_shapes_are_forgotten_before_they_fill_the_memory(scene, monkeypatch):
    monkeypatch.setattr(module, "_SHAPES_MAX", 3)
    for number in range(10):
        await scene.send(f"SELECT 1 AS a{number}")
    assert scene.compiler.target.view is not None
    assert len(scene.compiler.target.view.direct) <= 3


async def test_what_was_not_sent_is_left_to_the_long_way_or_is_the_answer(scene):
    for error in (BackendLost("plain", "-"), BackendUnavailable("plain", "-", "down")):
        assert scene.path.send(b"SELECT 1", scene.reply(), lambda _: None)
        assert not scene.session.executor.finish(error)
        scene.session.executor.connections.break_off()
        await until(lambda: not scene.session.shards[0].pool.lent)
    assert scene.path.send(b"SELECT 1", scene.reply(), lambda _: None)
    with pytest.raises(PoolTimeout):
        scene.session.executor.finish(PoolTimeout("plain", "-", 1.0))


async def test_inside_a_transaction_nothing_is_left_to_a_second_attempt(server, scene):
    await scene.session.begin()
    await scene.session.run("SELECT 1")
    server.once("INSERT", Error(1290, "running with the --read-only option"))
    assert (await scene.send("INSERT INTO t VALUES (1)")).code == 1290
    server.once("FROM t", HangUp())
    with pytest.raises(BackendLost):
        await scene.send("SELECT id FROM t")


QUICK = "SELECT id FROM t WHERE id = 5"


def pace_of(scene, sql):
    direct = scene.compiler.target.view.direct[scene.compiler.target.parse(sql.encode()).shape]
    return direct.latency


async def earn(scene):
    """Show that QUICK is quick."""
    for _ in range(FIRST_TRIAL):
        await scene.send(QUICK)
    assert pace_of(scene, QUICK).is_quick


async def test_a_plain_read_that_is_answered_at_once_becomes_quick(server, scene):
    server.on("FROM t", rows_of(5))
    await earn(scene)
    await scene.send("SELECT COUNT(*) FROM t")
    assert pace_of(scene, "SELECT COUNT(*) FROM t") is None


async def test_a_read_of_a_message_table_is_never_shared(server, scene):
    scene.registry.know("msg", load("plain", raw_table("msg")))
    await scene.send("SELECT id FROM msg WHERE id = 5")
    assert pace_of(scene, "SELECT id FROM msg WHERE id = 5") is None
