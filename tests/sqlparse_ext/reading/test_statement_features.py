"""Features that no tracker shows, each found in the ways people write it."""

import ast

from streamfrom.sqlparse_ext.reading.statement_features import asks_sequence, may_assign
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, uses


@cases(sql=str, expected=ast.literal_eval)
def test_uses(sql, expected):
    assert uses(sql) == expected


@cases(sql=str, names=ast.literal_eval)
def test_a_statement_names_its_variables(sql, names):
    assert shape(sql).variables == names


@cases(sql=str, assigns=ast.literal_eval)
def test_a_statement_that_may_set_one_is_told_from_those_that_read(sql, assigns):
    assert may_assign(shape(sql)) is assigns


@cases(sql=str, asks=str)
def test_a_value_of_a_sequence_is_seen_wherever_it_stands(sql, asks):
    assert asks_sequence(shape(sql)) is bool(asks)
