import ast
import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.diagnostics_area import CarriedFoundRows, LastDiagnostics
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.diagnostics_queries import (
    AnswerHere,
    DiagnosticsQueries,
    diagnostics_of_error,
    warnings_answer,
)
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import text_row
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases


HERE: Any = SimpleNamespace(found_rows=None)
THERE: Any = SimpleNamespace(found_rows=None)
ROWS = [text_row([b"Warning", b"1292", b"cut"]), text_row([b"Error", b"1064", b"bad"])]


def parse(sql):
    return StatementCache().get(sql.encode())


def diagnostics(**facts):
    made = LastDiagnostics(asyncio.get_running_loop().create_future())
    for name, value in facts.items():
        setattr(made, name, value)
    made.known.set_result(None)
    return made


@pytest.fixture
def state():
    return SessionState(0, Settings())


async def test_elsewhere_the_numbers_are_in_the_text(state):
    state.diagnostics = diagnostics(found_rows=5, row_count=-1, rows=ROWS)
    sql = "SELECT FOUND_ROWS() f, ROW_COUNT() r, @@warning_count w, @@error_count e"
    assert DiagnosticsQueries(state, parse(sql)).packet_for(HERE) == query(
        b"SELECT IF(TRUE, 5, FOUND_ROWS()) f, IF(TRUE, -1, ROW_COUNT()) r,"
        b" IF(TRUE, CAST(2 AS UNSIGNED), @@warning_count) w,"
        b" IF(TRUE, CAST(1 AS UNSIGNED), @@error_count) e"
    )


async def test_the_connection_of_the_last_statement_is_asked_when_another_is_used(
    state, monkeypatch
):
    def take_leave(backend, owner):
        told = diagnostics(found_rows=9)
        assert owner.keeps_diagnostics(backend, told)

    monkeypatch.setattr(
        "streamfrom.proxy.execution.diagnostics_queries.take_diagnostics", take_leave
    )
    state.answered_at = THERE
    queries = DiagnosticsQueries(state, parse("SELECT FOUND_ROWS() f"))
    assert queries.packet_for(HERE) is None
    await queries.prepare_on(HERE)
    assert queries.packet_for(HERE) == query(b"SELECT IF(TRUE, 9, FOUND_ROWS()) f")


async def test_show_warnings_is_answered_from_what_is_left(state):
    state.diagnostics = diagnostics(columns=(b"c",), rows=ROWS)
    queries = DiagnosticsQueries(state, parse("SHOW WARNINGS"))
    assert queries.packet_for(HERE) is None
    with pytest.raises(AnswerHere) as asked:
        await queries.prepare_on(HERE)
    assert warnings_answer(parse("SHOW WARNINGS"), asked.value.diagnostics, 0) == (
        (b"c",),
        ROWS,
    )
    assert warnings_answer(parse("SHOW ERRORS"), asked.value.diagnostics, 0) == (
        (b"c",),
        ROWS[1:],
    )


async def test_an_error_of_the_proxys_own_is_told_like_a_servers():
    told = diagnostics_of_error(Unsupported("so"))
    _, rows = warnings_answer(parse("SHOW ERRORS"), told, 0)
    assert list(rows) == [text_row([b"Error", b"1235", b"unsupported: so"])]


async def test_without_warnings_the_answer_is_empty():
    columns, rows = warnings_answer(parse("SHOW WARNINGS"), None, 0)
    assert (len(columns), rows) == (3, ())


@cases(sql=str, rows=ast.literal_eval)
async def test_servers_let_ask_for_some_of_them_and_how_many_there_are(sql, rows):
    columns, found = warnings_answer(parse(sql), diagnostics(columns=(b"c",), rows=ROWS), 0)
    assert (len(columns), list(found)) == (1, list(rows))


@pytest.mark.parametrize("sql", ["GET DIAGNOSTICS @n = NUMBER", "SHOW WARNINGS LIMIT @a"])
async def test_other_ways_to_ask_are_refused(sql):
    with pytest.raises(Unsupported):
        warnings_answer(parse(sql), diagnostics(), 0)


def test_a_count_that_a_write_elsewhere_left_as_it_was_is_put_in():
    state = SessionState(0, Settings())
    here: Any = SimpleNamespace(found_rows=CarriedFoundRows(5))
    state.answered_at = here
    sql = "SELECT FOUND_ROWS() f, ROW_COUNT() r"
    assert DiagnosticsQueries(state, parse(sql)).packet_for(here) == query(
        b"SELECT IF(TRUE, 5, FOUND_ROWS()) f, ROW_COUNT() r"
    )
    warnings = parse("SHOW WARNINGS")
    assert DiagnosticsQueries(state, warnings).packet_for(here) == query(warnings.sql)


async def test_a_count_that_another_server_is_being_asked_for_is_waited_for():
    state = SessionState(0, Settings())
    coming = LastDiagnostics(asyncio.get_running_loop().create_future())
    here: Any = SimpleNamespace(found_rows=CarriedFoundRows(0))
    here.found_rows.of = coming
    state.answered_at = here
    queries = DiagnosticsQueries(state, parse("SELECT FOUND_ROWS()"))
    assert queries.packet_for(here) is None
    waiting = asyncio.ensure_future(queries.prepare_on(here))
    coming.found_rows = 7
    coming.known.set_result(None)
    # In the same turn of the loop, too.
    assert queries.packet_for(here) == query(
        b"SELECT IF(TRUE, 7, FOUND_ROWS()) AS `FOUND_ROWS()`"
    )
    await waiting
    assert state.answered_at is here


def test_behind_use_no_row_is_counted_wherever_it_is_asked():
    state = SessionState(0, Settings())
    state.answered_since = True
    asked = parse("SELECT ROW_COUNT() r FROM t")
    assert DiagnosticsQueries(state, asked).packet_for(HERE) == query(b"SELECT 0 r FROM t")
    state.answered_at = HERE
    assert DiagnosticsQueries(state, asked).packet_for(HERE) == query(b"SELECT 0 r FROM t")
