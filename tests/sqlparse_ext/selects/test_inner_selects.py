"""The SELECTs that a statement is made of."""

import ast

from streamfrom.sqlparse_ext.selects.inner_selects import (
    read_derived,
    read_inner_selects,
    read_table_rows,
    without_rows,
)
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


def counts_rows(sql):
    found = read_inner_selects(statement(sql).shape.template)
    return found is not None and found.counts_rows


@cases(sql=str)
def test_the_rows_of_a_derived_table_are_counted(sql):
    assert counts_rows(sql)


@cases(sql=str)
def test_any_other_form_is_no_such_count(sql):
    assert not counts_rows(sql)


def test_a_select_from_a_derived_table_is_read_as_one_from_a_table():
    sql = "SELECT d.a, SUM(b) FROM (SELECT a, b FROM t ORDER BY a) AS d WHERE d.b > 1 GROUP BY d.a"
    template = statement(sql).shape.template
    select = read_derived(template)
    assert select is not None
    assert select.is_derived
    assert select.group[0].column == "a"
    assert template[slice(*select.table_span)] == b"(SELECT a, b FROM t ORDER BY a)"
    assert select.table.alias == "d"


def read(sql):
    found = read_table_rows(statement(sql).shape.template)
    assert found is not None
    return found


@cases(sql=str, rows=str, rest=str)
def test_the_rows_stand_in_the_place_of_the_table(sql, rows, rest):
    found = read(sql)
    assert found.statement(statement(sql)).sql.decode() == rows
    assert found.with_parts(statement(sql), {0: b"ROWS"}).decode() == rest


@cases(sql=str, columns=ast.literal_eval)
def test_the_columns_that_may_be_needed_are_names_in_the_text(sql, columns):
    wanted = read(sql).wanted
    assert (wanted and wanted & {"a", "b", "c", "d"}) == columns


def test_the_columns_that_are_named_are_selected():
    sql = "SELECT SUM(a) AS s FROM t WHERE `B` > 1"
    found, whole = read(sql), statement(sql)
    assert found.ask_columns() == [b"SHOW COLUMNS FROM `t`"]
    assert found.statement(whole, ["A", "b", "c"]).sql == b"SELECT `a` FROM t WHERE `B` > 1"
    assert found.statement(whole, ["c"]).sql == b"SELECT 1 FROM t WHERE `B` > 1"


def test_columns_of_one_name_have_their_tables_in_the_rows_of_a_join():
    sql = (
        "SELECT T.a, STD(v.a), V.b, c, T.f(d), s.v.b FROM t AS T JOIN u V ON T.id = V.id, w"
        " WHERE v.e > 1 GROUP BY T.A"
    )
    found, whole = read(sql), statement(sql)
    assert found.tables == ("t", "u", "w")
    rows = found.statement(whole, ["id", "a", "c", "id", "a", "b", "d", "e", "d"]).sql
    assert rows.decode() == (
        "SELECT `T`.`a` AS `T.a`, `V`.`a` AS `V.a`, `V`.`b` AS `b`, `c` FROM t AS T JOIN u V"
        " ON T.id = V.id, w WHERE v.e > 1"
    )
    assert found.with_parts(whole, {0: b"ROWS"}).decode() == (
        "SELECT `streamfrom`.`T.a`, STD(`streamfrom`.`V.a`), `streamfrom`.`b`, c, T.f(d), s.v.b"
        " FROM (ROWS) AS `streamfrom` GROUP BY `streamfrom`.`T.a`"
    )


@cases(sql=str)
def test_other_statements_have_no_such_rows(sql):
    assert read_table_rows(statement(sql).shape.template) is None
