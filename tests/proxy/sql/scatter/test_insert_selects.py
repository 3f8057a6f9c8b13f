"""INSERT … SELECT whose rows are read first, before fake servers; real ones have it in test_routing.py and test_write_property.py."""

from types import SimpleNamespace

from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.sql.scatter.insert_selects import with_named_columns
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Rows, rows_of
from tests.proxy.rigs import WaitingConnections, context_of, said
from tests.proxy.sql.compilers import compiler


async def test_no_rows_are_no_insert(server, other_server, client):
    for each in (server, other_server):
        each.on("SELECT a FROM t", rows_of())
    result = await client.query("INSERT INTO t (id) SELECT a FROM t")
    assert result.ok is not None
    assert (result.ok.affected_rows, result.ok.info[:10]) == (0, b"Records: 0")
    assert len(said(server)) == len(said(other_server)) == 1


async def test_no_rows_are_returned_with_the_columns_that_they_would_have(
    server, other_server, client
):
    for each in (server, other_server):
        each.on("SELECT a, b FROM t", Rows(("a", "b")))
    server.on("RETURNING", Rows(("told", "twice")))
    result = await client.query(
        "INSERT INTO t (id, c) SELECT a, b FROM t RETURNING told, twice"
    )
    assert (result.columns, result.rows, result.error) == (2, [], None)
    assert said(server)[-1] == (
        "INSERT INTO t (id, c) SELECT NULL, NULL FROM DUAL WHERE FALSE RETURNING told, twice"
    )
    assert len(said(other_server)) == 1


@in_turn
@cases(sql=str, words=str)
async def test_what_cannot_be_exact_is_refused(server, other_server, client, sql, words):
    result = await client.query(sql)
    assert result.code == 1235
    assert words in result.message
    assert not any("INSERT" in each for each in said(server) + said(other_server))


async def test_rows_are_read_in_utf8mb4_alone(server, client):
    server.on("SELECT a FROM t", rows_of(1))
    insert = "INSERT INTO t (id) SELECT a FROM t WHERE id = 5"
    assert (await client.query("SET NAMES utf8mb4")).error is None
    assert (await client.query(insert)).error is None
    for names in ("SET NAMES latin1", "SET NAMES gbk", "SET character_set_results = NULL"):
        assert (await client.query(names)).error is None
        result = await client.query(insert)
        assert (result.code, "SET NAMES utf8mb4" in result.message) == (1235, True)


class InsertColumnsRig:
    """A session's naming before two shards whose servers know one table, `t`."""

    def __init__(self, use="commerce"):
        self.asked: list[tuple[str, str]] = []
        self.failures = 0
        self.waits = 0
        self.compiler = compiler(use)
        self.runtimes = self.compiler.target.here().runtimes
        for name, runtime in zip(("low", "high"), self.runtimes, strict=False):
            runtime.control = SimpleNamespace(records=self.records(name))
            runtime.wait_available = self.wait_available
        self.context = context_of(connections=WaitingConnections(), compiler=self.compiler)

    def records(self, name):
        async def records(sql):
            self.asked.append((name, sql))
            if self.failures:
                self.failures -= 1
                raise BackendUnavailable("commerce", "-80", "away")
            if "`t`" not in sql:
                raise BackendError(1146, "42S02", "Table 'db.named' doesn't exist")
            return [
                {"Field": "id", "Extra": ""},
                {"Field": "hidden", "Extra": "INVISIBLE"},
                {"Field": "na`me", "Extra": "VIRTUAL GENERATED"},
            ]

        return records

    async def wait_available(self, _):
        self.waits += 1
        return True

    async def named(self, sql):
        place = self.compiler.target.resolve(self.compiler.target.parse(sql.encode()))
        return (await with_named_columns(self.context, place)).statement.sql.decode()


async def test_the_columns_that_a_server_would_fill_are_named():
    session = InsertColumnsRig()
    assert await session.named("INSERT INTO t VALUES (1, 2)") == (
        "INSERT INTO t (`id`, `na``me`) VALUES (1, 2)"
    )
    assert session.asked == [("low", "SHOW COLUMNS FROM `t`")]
    await session.named("REPLACE INTO commerce.t VALUES (1, 2)")
    assert len(session.asked) == 2, "what a table was like a statement ago does not count"


@cases(sql=str, use=str)
async def test_nobody_is_asked_where_no_vindex_needs_names(sql, use):
    session = InsertColumnsRig(use)
    assert await session.named(sql) == sql
    assert session.asked == []


async def test_a_shard_that_is_there_is_asked_and_one_that_goes_away_is_waited_for():
    session = InsertColumnsRig()
    session.runtimes[0].is_answering = False
    await session.named("INSERT INTO t VALUES (1, 2)")
    assert [name for name, _ in session.asked] == ["high"]
    session = InsertColumnsRig()
    session.failures = 2
    assert "`id`" in await session.named("INSERT INTO t VALUES (1, 2)")
    assert session.waits
