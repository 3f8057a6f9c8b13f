"""What a WHERE clause says for certain, and what it must not be taken to say."""

import ast

import pytest

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from tests.cases import cases
from tests.sqlparse_ext.facts import conditions, shape


@cases(where=str, expected=str)
def test_conditions_that_bound_the_rows(where, expected):
    assert repr(conditions(f"SELECT * FROM ks.t WHERE {where}")) == expected
    if "ORDER" not in where and "LIMIT" not in where:
        assert repr(conditions(f"DELETE FROM ks.t WHERE {where}")) == expected
        assert repr(conditions(f"UPDATE ks.t SET q = 9 WHERE {where}")) == expected


@cases(where=str)
def test_what_does_not_bound_a_column_is_not_listed(where):
    sql = f"SELECT * FROM t WHERE {where}"
    assert conditions(sql) == {}
    assert not shape(sql).condition_only


def test_an_or_behind_a_word_that_ends_the_clause_on_some_servers_is_seen():
    assert conditions("SELECT * FROM t WHERE id = 5 AND window = 3 OR 1") == {}


@pytest.mark.parametrize("mode", [SqlMode(0), SqlMode.PIPES_AS_CONCAT])
def test_pipes_never_bound_a_column(mode):
    assert conditions("SELECT * FROM t WHERE id = 5 || 'x'", mode) == {}


def test_an_alias_hides_the_name_of_the_table():
    assert conditions("SELECT * FROM t AS x WHERE x.id = 5") == {"id": [5]}
    assert conditions("SELECT * FROM t AS x WHERE t.id = 5") == {}


def test_joins_and_unions_have_no_conditions():
    assert conditions("SELECT * FROM t JOIN u ON t.a = u.a WHERE id = 5") == {}
    assert conditions("SELECT * FROM t, u WHERE id = 5") == {}
    assert conditions("SELECT * FROM t WHERE id = 5 UNION SELECT * FROM t") == {}
    assert conditions("SELECT * FROM (SELECT * FROM t) d WHERE id = 5") == {}
    assert conditions("UPDATE t, u SET t.a = 1 WHERE id = 5") == {}


@cases(where=str, guards=ast.literal_eval, only=ast.literal_eval)
def test_guards_and_whether_anything_else_is_there(where, guards, only):
    found = shape(f"UPDATE t SET a = 1 WHERE {where}")
    assert (found.guards, found.condition_only) == (guards, only)
