"""What answers a statement, and that a description has the columns of the answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sql.answers.own_answers import OwnAnswers
from streamfrom.proxy.status.status_source import Sight
from streamfrom.proxy.wire.resultset import column_definition
from tests.proxy.fake_client import MODERN
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.proxy.sql.compilers import compiler


class RowsReply:
    def __init__(self):
        self.columns, self.answer = [], []

    def rows(self, columns, rows):
        self.columns, self.answer = columns, rows


class AnsweringSession:
    """A session whose account sees one keyspace; nothing that it asks a server for can be had."""

    def __init__(self) -> None:
        state = SessionState(int(MODERN), Settings())
        self.compiler = compiler("commerce", state)
        for runtime in self.compiler.here().runtimes:
            runtime.is_mariadb = True

        async def sight(_):
            return Sight({"commerce": frozenset()})

        async def fleet_processes():
            return [Process(7, "ann", "here", "commerce", "Sleep", 1, "", None)]

        context: Any = SimpleNamespace(
            compiler=self.compiler,
            catalog=SimpleNamespace(keyspaces=(PLAIN, SHARDED), tablets=list),
            connection_id=7,
            state=state,
            status=SimpleNamespace(shards={}),
            rights=SimpleNamespace(sight=sight),
            others=SimpleNamespace(fleet_processes=fleet_processes),
        )
        none: Any = SimpleNamespace(show=None, columns=None, next=None, run=None)
        self.context = context
        self.answers = OwnAnswers(context, none, none, none, none, none)

    async def ask(self, sql: str) -> tuple[list[bytes], list[Any]]:
        """Return the columns that a PREPARE describes and the rows, once those of the answer have proved to be the same."""
        statement = self.compiler.parse(sql.encode())
        answerer = await self.answers.answerer(statement)
        assert answerer is not None
        reply: Any = RowsReply()
        described = await self.answers.columns(answerer, statement)
        assert await self.answers.run(answerer, statement, reply)
        capabilities = self.context.state.capabilities
        assert described == [column_definition(each, capabilities) for each in reply.columns]
        return described, reply.answer


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT CONNECTION_ID()", [(b"7",)]),
        ("SHOW DATABASES", [(b"commerce",), (b"information_schema",)]),
        ("SHOW KEYSPACES", [(b"commerce",)]),
        ("SHOW VITESS_SHARDS", [(b"commerce/-80",), (b"commerce/80-",)]),
        ("SHOW VITESS_TABLETS", []),
        ("SHOW VITESS_TARGET", [(b"commerce",)]),
        ("SHOW VSCHEMA VINDEXES ON pin", []),
        ("SELECT id, shard FROM md5 WHERE id = NULL", []),
    ],
)
async def test_a_description_has_the_columns_of_the_answer(sql, rows):
    assert (await AnsweringSession().ask(sql))[1] == rows


async def test_a_list_of_processes_has_the_columns_of_the_server():
    columns, (row,) = await AnsweringSession().ask("SHOW PROCESSLIST")
    assert len(columns) == len(row) == 9
    assert row[:4] == (b"7", b"ann", b"here", b"commerce")
