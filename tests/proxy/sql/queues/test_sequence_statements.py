from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from streamfrom.engine.errors import SequenceError
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.errors import BackendUnavailable, NoDatabaseSelected
from streamfrom.proxy.sql.compile.catalog import Catalog
from streamfrom.proxy.sql.queues.sequence_statements import SequenceStatements
from tests.cases import cases
from tests.proxy.rigs import WaitingConnections, context_of
from tests.proxy.sql.compilers import compiler_over


VSCHEMA = """{"sharded": true, "vindexes": {"n": {"type": "numeric"}}, "tables": {
  "t": {"column_vindexes": [{"column": "id", "name": "n"}],
        "auto_increment": {"column": "ID", "sequence": "seq"}},
  "lost": {"column_vindexes": [{"column": "id", "name": "n"}],
           "auto_increment": {"column": "id", "sequence": "none"}}}}"""
SHARDED = Keyspace(
    "commerce", (Shard.named("-80"), Shard.named("80-")), parse_vschema(VSCHEMA, "commerce")
)
LOOKUP = Keyspace(
    "lookup",
    (Shard.named("0"),),
    parse_vschema('{"tables": {"seq": {"type": "sequence"}}}', "lookup"),
)


class Sequences:
    def __init__(self):
        self.next_value = 100
        self.failures = 0

    async def is_sequence(self, table):
        return table == "seq"

    async def reserve(self, table, count):
        if self.failures:
            self.failures -= 1
            raise BackendUnavailable("lookup", "0", "away")
        first, self.next_value = self.next_value, self.next_value + count
        return first


class Shelf:
    """The parts that sequencing takes, with one sequence `lookup.seq`."""

    def __init__(self, use="commerce"):
        self.sequences = Sequences()
        waited = AsyncMock(return_value=True)
        runtimes = {
            (keyspace.name, shard.name): SimpleNamespace(
                database=keyspace.name, sequences=self.sequences, wait_available=waited
            )
            for keyspace in (SHARDED, LOOKUP)
            for shard in keyspace.shards
        }
        registry = SimpleNamespace(table=lambda *_: None)
        catalog = Catalog((SHARDED, LOOKUP), runtimes, registry)  # type: ignore[arg-type]
        self.compiler = compiler_over(catalog, registry)
        if use:
            self.compiler.target.use(use)
        self.connections = WaitingConnections()
        self.statements = SequenceStatements(
            context_of(
                connections=self.connections,
                compiler=self.compiler,
                catalog=catalog,
                registry=registry,
            )
        )

    async def filled(self, sql):
        found, first, *_ = await self.statements.filled(
            self.compiler.target.here(), self.compiler.target.parse(sql.encode())
        )
        return found.sql.decode(), first

    async def next(self, sql):
        statement = self.compiler.target.parse(sql.encode())
        if await self.statements.asked(statement) is None:
            return None
        (column,), ((value,),) = await self.statements.next(statement)
        return column.name, value


@cases(sql=str, use=str)
async def test_what_needs_no_value_takes_none(sql, use):
    shelf = Shelf(use)
    assert await shelf.filled(sql) == (sql, 0)
    assert shelf.sequences.next_value == 100


@pytest.mark.parametrize(
    ("sql", "use", "error", "sentence"),
    [
        ("SELECT NEXT 2 VALUES FROM t", "lookup", SequenceError, "t is not a sequence"),
        ("SELECT NEXT 2 VALUES FROM seq", "commerce", SequenceError, "seq is not a sequence"),
        ("SELECT NEXT VALUE FROM seq", None, NoDatabaseSelected, "No database selected"),
        ("SELECT NEXT 'x' VALUES FROM seq", "lookup", SequenceError, "invalid increment for"),
    ],
)
async def test_what_is_no_sequence_is_told(sql, use, error, sentence):
    with pytest.raises(error, match=sentence):
        await Shelf(use).next(sql)


async def test_a_shard_that_is_away_is_waited_for_outside_a_transaction():
    shelf = Shelf("lookup")
    shelf.sequences.failures = 2
    assert await shelf.next("SELECT NEXT VALUE FROM seq") == ("nextval", b"100")
    shelf.sequences.failures = 1
    shelf.connections.branches.has_begun = True
    with pytest.raises(BackendUnavailable):
        await shelf.next("SELECT NEXT VALUE FROM seq")
