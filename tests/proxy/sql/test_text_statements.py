from types import SimpleNamespace

import pytest

from streamfrom.proxy.errors import (
    TooManyStatements,
    UnknownStatement,
)
from streamfrom.proxy.sql import text_statements
from streamfrom.proxy.sql.text_statements import TextStatements
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.rigs import context_of
from tests.proxy.sql.compilers import compiler


# Variables as a server describes them.
VARIABLES = {
    "@id": (ColumnDefinition("@id", type=FieldType.LONGLONG, charset=BINARY_CHARSET), b"5"),
    "@text": (ColumnDefinition("@text"), b"it's"),
    "@bytes": (
        ColumnDefinition("@bytes", type=FieldType.LONG_BLOB, charset=BINARY_CHARSET),
        b"\0\xff",
    ),
    "@none": (ColumnDefinition("@none"), None),
    "@sql": (ColumnDefinition("@sql"), b"SELECT ?"),
}


class Session:
    """The statements of a session in the sharded keyspace; what they run is in `ran`."""

    def __init__(self):
        self.prepared: list[str] = []
        self.ran: list[str] = []
        self.compiler = compiler("commerce")
        executor = SimpleNamespace(
            prepare_on=self.prepare_on, ask=self.ask, branches=SimpleNamespace(held=[])
        )
        self.statements = TextStatements(context_of(compiler=self.compiler, executor=executor))

    async def prepare_on(self, shard, database, sql):
        self.prepared.append(sql.decode())

    async def ask(self, shard, database, packet, shape):
        found = [
            VARIABLES[name]
            for name in packet.decode("latin-1").partition("SELECT ")[2].split(", ")
        ]
        columns = [column_definition(column) for column, _ in found]
        return SimpleNamespace(columns=columns, rows=[text_row([value for _, value in found])])

    async def run_one(self, statement, reply):
        self.ran.append(statement.sql.decode())
        return True

    async def run(self, sql):
        reply = SimpleNamespace(ok=lambda **_: None)
        statement = self.compiler.parse(sql.encode())
        return await self.statements.run(statement, reply, self.run_one)  # type: ignore[arg-type]


async def test_an_execution_is_the_text_with_the_values_in_it():
    session = Session()
    await session.run("PREPARE p FROM 'SELECT * FROM t WHERE id = ? AND a IN (?, ?, ?)'")
    assert session.prepared == ["SELECT * FROM t WHERE id = ? AND a IN (?, ?, ?)"]
    await session.run("EXECUTE P USING @id, @text, @bytes, @none")
    assert session.ran == [
        "SELECT * FROM t WHERE id = 5 AND a IN ('it''s', _binary x'00ff', NULL)"
    ]


async def test_the_text_may_be_in_a_variable_and_be_executed_at_once():
    session = Session()
    await session.run("EXECUTE IMMEDIATE @sql USING @id")
    assert session.ran == ["SELECT 5"]


async def test_what_no_server_prepares_is_kept_all_the_same():
    session = Session()
    await session.run("PREPARE p FROM 'STREAM * FROM msg'")
    await session.run("EXECUTE p")
    assert (session.prepared, session.ran) == ([], ["STREAM * FROM msg"])


async def test_a_statement_is_gone_once_it_is_deallocated_or_all_are():
    session = Session()
    for forget in ("DEALLOCATE PREPARE p", "DROP PREPARE p", None):
        await session.run("PREPARE p FROM 'SELECT 1'")
        if forget is None:
            session.statements.clear()
        else:
            await session.run(forget)
        with pytest.raises(UnknownStatement, match=r"\(p\) given to EXECUTE"):
            await session.run("EXECUTE p")


async def test_another_target_has_other_statements():
    session = Session()
    await session.run("PREPARE p FROM 'SELECT 1'")
    session.compiler.use("plain")
    with pytest.raises(Unsupported, match="in another keyspace or target"):
        await session.run("EXECUTE p")


async def test_there_is_a_bound_on_names(monkeypatch):
    monkeypatch.setattr(text_statements, "STATEMENTS_MAX", 2)
    session = Session()
    for name in ("a", "b", "b"):
        await session.run(f"PREPARE {name} FROM 'SELECT 1'")
    with pytest.raises(TooManyStatements):
        await session.run("PREPARE c FROM 'SELECT 1'")
