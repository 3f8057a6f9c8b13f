from types import SimpleNamespace

from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.sql.scatter.insert_selects import with_named_columns
from tests.cases import cases
from tests.proxy.rigs import WaitingConnections, context_of
from tests.proxy.sql.compilers import compiler


class InsertColumnsRig:
    """A session's naming before two shards whose servers know one table, `t`."""

    def __init__(self, use="commerce"):
        self.asked: list[tuple[str, str]] = []
        self.failures = 0
        self.waits = 0
        self.compiler = compiler(use)
        self.runtimes = self.compiler.target.here().runtimes
        for name, runtime in zip(("low", "high"), self.runtimes, strict=False):
            runtime.trouble = None
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
    session.runtimes[0].trouble = "away"
    await session.named("INSERT INTO t VALUES (1, 2)")
    assert [name for name, _ in session.asked] == ["high"]
    session = InsertColumnsRig()
    session.failures = 1
    assert "`id`" in await session.named("INSERT INTO t VALUES (1, 2)")
    assert session.waits == 1
