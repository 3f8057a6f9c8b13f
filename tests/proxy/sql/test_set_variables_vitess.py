"""Vitess's own session variables, kept and refused."""

import ast

import pytest

from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.config.file import TransactionMode
from streamfrom.proxy.errors import SessionVariable, WrongVariableValue
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sql.set_variables import (
    set_vitess_variables,
    sets_vitess_variables,
    vitess_variables,
)
from tests.cases import cases
from tests.proxy.fake_client import MODERN
from tests.proxy.keyspaces import HIGH
from tests.sqlparse_ext.facts import shape, statement


MULTI, SINGLE, TWOPC = TransactionMode


def state():
    return SessionState(int(MODERN), Settings())


def told(session, mode):
    values = vitess_variables(session, mode, shape("SELECT @@workload"))
    return values["@@WORKLOAD"], values["@@TRANSACTION_MODE"]


@cases(sql=str, expected=ast.literal_eval)
def test_what_sets_nothing_but_them(sql, expected):
    assert sets_vitess_variables(statement(sql)) is expected


@pytest.mark.parametrize(
    ("mode", "sql", "sentence"),
    [
        (MULTI, "SET workload = 'nonsense'", "of 'NONSENSE': 'oltp' and 'olap' are known"),
        (MULTI, "SET workload = 'dba'", "of 'DBA'"),
        (MULTI, "SET workload = NULL", "of 'NULL'"),
        (MULTI, "SET workload = CONCAT('ol', 'ap')", "of 'NULL'"),
        (MULTI, "SET transaction_mode = 'twopc'", 'the proxy\'s is "multi"'),
        (SINGLE, "SET transaction_mode = 'multi'", 'the proxy\'s is "single"'),
        (TWOPC, "SET transaction_mode = 'multi'", 'the proxy\'s is "twopc"'),
        (MULTI, "SET transaction_mode = 'unspecified'", "of 'UNSPECIFIED'"),
    ],
)
def test_what_would_not_be_true_is_refused_and_sets_nothing(mode, sql, sentence):
    session = state()
    before = told(session, mode)
    asked = statement(sql.replace("SET ", "SET @@workload = 'olap', "))
    with pytest.raises(WrongVariableValue, match=sentence) as caught:
        set_vitess_variables(session, mode, asked)
    assert caught.value.wire_code() == (1231, "42000")
    assert told(session, mode) == before


@pytest.mark.parametrize(
    "sql", ["SET GLOBAL workload = 'olap'", "SET @@global.transaction_mode = 1"]
)
def test_they_are_the_sessions_alone(sql):
    with pytest.raises(SessionVariable, match="can't be used with SET GLOBAL") as caught:
        set_vitess_variables(state(), MULTI, statement(sql))
    assert caught.value.wire_code() == (1228, "HY000")


async def test_a_session_that_keeps_to_one_shard_does_until_it_begins_anew(
    server, other_server, client
):
    both = f"INSERT INTO t (id) VALUES (1), ({HIGH})"
    assert (await client.query("SET transaction_mode = 'single'")).error is None
    await client.query("BEGIN")
    refused = await client.query(both)
    assert 'transaction_mode is "single"' in refused.message
    await client.query("ROLLBACK")
    assert (await client.query("SET transaction_mode = 'multi'")).error is None
    await client.query("BEGIN")
    assert (await client.query(both)).error is None
    await client.query("COMMIT")
