"""The SELECTs that a statement is made of."""

import ast

from streamfrom.sqlparse_ext.selects.inner_selects import read_inner_selects, without_rows
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def parts(sql):
    return read_inner_selects(statement(sql).shape.template)


def texts(sql):
    found = parts(sql)
    assert found is not None
    return [each.statement(statement(sql)).sql.decode() for each in found.excerpts]


@cases(sql=str, expected=ast.literal_eval, operators=ast.literal_eval)
def test_the_parts_are_statements_of_their_own(sql, expected, operators):
    found = parts(sql)
    assert found is not None
    assert texts(sql) == expected
    assert found.operators == operators


@cases(sql=str)
def test_of_other_forms_there_are_none(sql):
    assert parts(sql) is None


def test_what_is_outside_of_the_parts_has_its_own_tables():
    found = parts("WITH x AS (SELECT a FROM t) SELECT * FROM x JOIN ref ON ref.id = x.a")
    assert found is not None
    assert found.names == {"x"}
    assert [table.name for table in found.outside.tables] == ["ref"]


def test_texts_take_the_places_of_parts():
    sql = "SELECT 'a' UNION ALL (SELECT 'bcd') ORDER BY 1 LIMIT 7"
    found = parts(sql)
    assert found is not None
    given = statement(sql)
    assert found.with_parts(given, {1: b"SELECT x"}) == (
        b"SELECT 'a' UNION ALL (SELECT x) ORDER BY 1 LIMIT 7"
    )
    assert found.body(given, {0: b"A", 1: b"B"}) == b"A UNION ALL (B)"


def test_values_that_are_bound_go_to_the_parts_that_they_stand_in():
    sql = "SELECT a FROM t WHERE id = ? UNION ALL SELECT ? FROM t WHERE id IN (?, 8) LIMIT ?"
    given = statement(sql).bind((1, 2, 3, 4), lambda place: b"%d" % (place + 1))
    found = read_inner_selects(given.shape.template)
    assert found is not None
    one, other = (each.statement(given) for each in found.excerpts)
    assert one.values(one.shape.conditions["id"]) == [1]
    assert other.arguments == (2, 3)
    assert other.spell is not None
    assert other.spell(1) == b"3"


@cases(sql=str, expected=str)
def test_a_limit_of_none_keeps_the_columns(sql, expected):
    assert without_rows(statement(sql)) == expected.encode()
