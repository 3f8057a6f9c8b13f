"""Whole statements: what clients really send, and what is easily taken for something else."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.parser import explained_text
from streamfrom.sqlparse_ext.statements import Kind, Slot
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement, uses
from tests.sqlparse_ext.strategies import MODES, texts


@cases(sql=str, kind=str)
def test_what_clients_send_is_understood(sql, kind):
    assert shape(sql).kind.name == kind
    assert "UNPARSED" not in uses(sql)


@cases(sql=str, kind=str)
def test_nothing_is_taken_for_something_else(sql, kind):
    assert shape(sql).kind.name == kind


@pytest.mark.parametrize(
    "sql", ["", " ", ";", " ; ; ", "/* only a comment */", "-- x", "/*! */"]
)
def test_nothing_is_empty(sql):
    assert shape(sql).kind is Kind.EMPTY


@cases(sql=str.encode, inner=str.encode)
def test_the_statement_inside_an_explain(sql, inner):
    assert explained_text(statement(sql)) == inner


@given(sql=st.one_of(texts, st.binary(max_size=80)), mode=MODES)
def test_any_text_has_a_shape_or_is_a_wrong_stream(sql, mode):
    try:
        found = StatementCache().get(sql, mode)
    except SqlError:
        return
    explained_text(found)
    operands = [operand for each in found.shape.conditions.values() for operand in each]
    for operand in (*operands, *found.shape.assignments.values()):
        if isinstance(operand, Slot):
            found.value(operand)
