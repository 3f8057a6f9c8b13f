"""Features that no tracker shows, each found in the ways people write it."""

import ast

import pytest

from streamfrom.sqlparse_ext.reading.statement_features import (
    alias_at,
    asks_sequence,
    may_assign,
)
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.cases import cases, in_turn
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


def has_alias(item: str) -> bool:
    tokens = statement_tokens(shape(f"SELECT {item}").template)
    return alias_at(tokens, 1, len(tokens)) is not None


VALUES = [
    *["a", "t.a", "`a b`", "@a", "@@port", "1", "'s'", "NULL", "f()", "(a)", "CURRENT_USER"],
    *["a IS NOT NULL", "a IS TRUE", "a = 'x'", "a LIKE 'x' ESCAPE '!'", "a COLLATE utf8mb4_bin"],
    *["CASE a WHEN 1 THEN 2 ELSE b END", "a + INTERVAL 1 DAY", "a - INTERVAL f() SECOND"],
    *["DATE '2024-01-01'", "a = _latin1'x'", "NOT a", "a DIV b", "a IN (1, 2)", "-1"],
    *["a SOUNDS LIKE b", "a BETWEEN 1 AND 2", "BINARY a", "SUM(a) OVER w", "EXISTS(SELECT 1)"],
]  # fmt: skip


@in_turn
@pytest.mark.parametrize("value", VALUES)
def test_an_alias_is_known_with_and_without_as(value):
    assert not has_alias(value)
    for alias in ("u", "`u`", "day", "end", "value"):
        assert has_alias(f"{value} {alias}"), alias
        assert has_alias(f"{value} AS {alias}"), alias
    assert has_alias(f"{value} AS 'u'")
    # A string behind a string goes on with it.
    goes_on = value[-1] == "'" and not value.startswith("DATE")
    assert has_alias(f"{value} 'u'") is not goes_on
