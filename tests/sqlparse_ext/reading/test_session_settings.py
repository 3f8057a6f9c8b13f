"""SET in all its forms, those of every driver's first words included."""

import ast

import pytest

from streamfrom.sqlparse_ext.reading.session_settings import (
    passing_variables,
    split_set_statement,
    with_session_scope,
)
from streamfrom.sqlparse_ext.statements import Opaque
from tests.cases import cases
from tests.sqlparse_ext.facts import statement, uses


def items(sql):
    found = statement(sql)
    return [
        (
            item.kind.value,
            item.scope.value,
            item.name,
            "OPAQUE" if item.value is Opaque.OPAQUE else found.text(item.value),
            found.text(item.collation),
        )
        for item in found.shape.set
    ]


@cases(sql=str, expected=ast.literal_eval)
def test_items(sql, expected):
    assert items(sql) == expected


@cases(sql=str, names=ast.literal_eval)
def test_variables_of_one_statement_alone(sql, names):
    found = passing_variables(statement(sql).shape)
    assert found >= names
    assert bool(found) == bool(names)


@cases(sql=str, parts=ast.literal_eval)
def test_the_statement_behind_set_statement_is_found(sql, parts):
    found = split_set_statement(statement(sql))
    assert found == (None if parts is None else tuple(part.encode() for part in parts))


@pytest.mark.parametrize("sql", ["SET", "SET 5 = 6", "SET x", "SET STATEMENT a=1 FOR SELECT 1"])
def test_what_is_no_assignment_is_unparsed(sql):
    assert "UNPARSED" in uses(sql)


@cases(sql=str, scoped=str)
def test_a_variable_without_a_scope_is_given_the_session_s(sql, scoped):
    assert with_session_scope(statement(sql)).decode() == scoped


@cases(sql=str)
def test_nothing_else_is_given_a_scope(sql):
    assert with_session_scope(statement(sql)).decode() == sql
