"""What a WHERE clause says for certain, and what it must not be taken to say."""

import ast

import pytest

from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import conditions, shape


@in_turn
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 5", {"id": [5]}),
        ("5 = id", {"id": [5]}),
        ("t.id = 5", {"id": [5]}),
        ("`t`.`id` = 'x'", {"id": [b"x"]}),
        ("ks.t.ID = 5", {"id": [5]}),
        ("id = -5 AND b = 1.50", {"id": [-5], "b": [Number("1.50")]}),
        ("id IN (1, 2, 3)", {"id": [1, 2, 3]}),
        ("id IN (7)", {"id": [7]}),
        ("id in (1, NULL, 'x')", {"id": [1, None, b"x"]}),
        ("id = NULL", {"id": [None]}),
        ("id <=> 5", {"id": [5]}),
        ("a = 1 AND id IN (2,3) && c = 4", {"a": [1], "id": [2, 3], "c": [4]}),
        ("(id = 5) AND ((b = 6) AND (c = 7))", {"id": [5], "b": [6], "c": [7]}),
        ("id = 5 AND (a = 1 OR b = 2)", {"id": [5]}),
        ("a BETWEEN 1 AND 2 AND id = 5", {"id": [5]}),
        ("a BETWEEN 1 AND b BETWEEN 2 AND 3 AND id = 5", {"id": [5]}),
        ("a NOT BETWEEN 1 AND 2 AND id = 5", {"id": [5]}),
        ("CASE WHEN a = 1 AND b = 2 THEN 1 ELSE 0 END AND id = 5", {"id": [5]}),
        ("id = 5 AND x IN (SELECT y FROM u WHERE z = 6)", {"id": [5]}),
        ("id = 5 AND NOT a = 6", {"id": [5]}),
        ("id = x'00ff' AND b = _binary'q'", {"id": [b"\x00\xff"], "b": [b"q"]}),
        ("id = 5 AND id = 6", {"id": [5]}),
        ("t.end = 5 AND t.or = 6", {"end": [5], "or": [6]}),
        ("id = 5 ORDER BY a", {"id": [5]}),
        ("id = 5 /* 'x' */ LIMIT 3", {"id": [5]}),
    ],
)
def test_conditions_that_bound_the_rows(where, expected):
    assert conditions(f"SELECT * FROM ks.t WHERE {where}") == expected
    if "ORDER" not in where and "LIMIT" not in where:
        assert conditions(f"DELETE FROM ks.t WHERE {where}") == expected
        assert conditions(f"UPDATE ks.t SET q = 9 WHERE {where}") == expected


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
