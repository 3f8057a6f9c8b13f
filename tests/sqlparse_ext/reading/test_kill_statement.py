"""KILL: whom, and by what."""

import pytest

from streamfrom.sqlparse_ext.reading.kill_statement import killed_expression
from streamfrom.sqlparse_ext.statements import KillBy, KillScope, Opaque
from tests.sqlparse_ext.facts import statement


@pytest.mark.parametrize(
    ("sql", "scope", "by", "operand", "hard"),
    [
        ("KILL 5", KillScope.CONNECTION, KillBy.ID, 5, True),
        ("KILL CONNECTION 5", KillScope.CONNECTION, KillBy.ID, 5, True),
        ("kill query 7", KillScope.QUERY, KillBy.ID, 7, True),
        ("KILL HARD QUERY 7", KillScope.QUERY, KillBy.ID, 7, True),
        ("KILL SOFT CONNECTION 7", KillScope.CONNECTION, KillBy.ID, 7, False),
        ("KILL QUERY ID 8", KillScope.QUERY, KillBy.QUERY_ID, 8, True),
        ("KILL USER bob", KillScope.CONNECTION, KillBy.USER, "bob", True),
        ("KILL QUERY USER 'bob'@'%'", KillScope.QUERY, KillBy.USER, b"bob", True),
        ("KILL CONNECTION_ID()", KillScope.CONNECTION, KillBy.ID, None, True),
        ("KILL 5 + 1", KillScope.CONNECTION, KillBy.ID, None, True),
        ("KILL @x", KillScope.CONNECTION, KillBy.ID, None, True),
    ],
)
def test_kill(sql, scope, by, operand, hard):
    found = statement(sql)
    kill = found.shape.kill
    assert kill is not None
    assert (kill.scope, kill.by, kill.hard) == (scope, by, hard)
    if operand is None:
        assert kill.operand is Opaque.OPAQUE
    elif isinstance(kill.operand, str):
        assert kill.operand == operand
    else:
        assert found.value(kill.operand) == operand


@pytest.mark.parametrize(
    ("sql", "expression"),
    [
        ("KILL CONNECTION_ID()", "CONNECTION_ID()"),
        ("kill/**/hard connection @x + 5;", "@x + 5"),
        ("KILL QUERY (SELECT 'a')", "(SELECT 'a')"),
        ("KILL", ""),
        ("KILL QUERY ;", ""),
    ],
)
def test_the_expression_of_kill_is_found(sql, expression):
    assert killed_expression(statement(sql)).decode() == expression
