import ast
import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.diagnostics_queries import (
    DiagnosticsQueries,
    diagnostics_of_error,
    warnings_answer,
)
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


ROWS = [text_row([b"Warning", b"1292", b"cut"]), text_row([b"Error", b"1064", b"bad"])]


async def test_an_error_of_the_proxys_own_is_told_like_a_servers_and_without_warnings_nothing():
    told = diagnostics_of_error(Unsupported("so"))
    _, rows = warnings_answer(statement("SHOW ERRORS"), told, 0)
    assert list(rows) == [text_row([b"Error", b"1235", b"unsupported: so"])]
    columns, rows = warnings_answer(statement("SHOW WARNINGS"), None, 0)
    assert (len(columns), rows) == (3, ())


@cases(sql=str, rows=ast.literal_eval)
async def test_servers_let_ask_for_some_of_them_and_how_many_there_are(sql, rows):
    columns, found = warnings_answer(
        statement(sql), LastDiagnostics(columns=(b"c",), rows=ROWS), 0
    )
    assert (len(columns), list(found)) == (1, list(rows))


@pytest.mark.parametrize("sql", ["GET DIAGNOSTICS @n = NUMBER", "SHOW WARNINGS LIMIT @a"])
async def test_other_ways_to_ask_are_refused(sql):
    with pytest.raises(Unsupported):
        warnings_answer(statement(sql), LastDiagnostics(), 0)


async def test_a_count_that_another_server_is_being_asked_for_is_waited_for():
    state = SessionState(0, Settings())
    asked = asyncio.get_running_loop().create_future()
    coming = LastDiagnostics(asked=asked)
    here: Any = SimpleNamespace(found_rows=coming)
    state.answered_at = here
    queries = DiagnosticsQueries(state, statement("SELECT FOUND_ROWS()"))
    assert queries.packet_for(here) is None
    waiting = asyncio.ensure_future(queries.prepare_on(here))
    coming.found_rows = 7
    asked.set_result(None)
    # In the same turn of the loop, too.
    assert queries.packet_for(here) == query(
        b"SELECT IF(TRUE, 7, FOUND_ROWS()) AS `FOUND_ROWS()`"
    )
    await waiting
    assert state.answered_at is here
