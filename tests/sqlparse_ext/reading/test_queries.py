"""SELECT, UPDATE and DELETE of one table."""

import ast

from streamfrom.sqlparse_ext.statements import OPAQUE, InsertSource, Kind
from tests.cases import cases
from tests.sqlparse_ext.facts import conditions, shape, statement, tables, uses


@cases(sql=str, expected=ast.literal_eval)
def test_a_plain_table_needs_no_parser(sql, expected):
    assert tables(sql) == expected
    assert "UNPARSED" not in uses(sql)


def test_modifiers_and_hints_do_not_hide_the_condition():
    assert conditions("UPDATE LOW_PRIORITY IGNORE t SET a = 1 WHERE id = 5") == {"id": [5]}
    assert conditions("SELECT * FROM t FORCE INDEX (a) WHERE id = 5") == {"id": [5]}
    assert conditions("DELETE FROM t AS x WHERE x.id = 5") == {"id": [5]}
    assert conditions("UPDATE t SET a = (SELECT 1 UNION SELECT 2) WHERE id = 5") == {"id": [5]}


def test_assignments_give_literals_null_and_opaque():
    found = statement(
        "UPDATE t x SET x.a = 5, `B` = NULL, c = b + 1, d = 'q', a = -6 WHERE id = 7"
    )
    assigned = found.shape.assignments
    assert assigned.keys() == {"a", "b", "c", "d"}
    assert found.value(assigned["a"]) == -6  # the last one counts
    assert found.value(assigned["b"]) is None
    assert assigned["c"] is OPAQUE
    assert found.value(assigned["d"]) == b"q"


# INSERT and REPLACE: target, lists and forms.
@cases(sql=str, table=str, columns=ast.literal_eval, source=str)
def test_forms(sql, table, columns, source):
    found = shape(sql)
    assert found.kind is (Kind.REPLACE if sql.startswith("REPLACE") else Kind.INSERT)
    assert found.insert is not None
    assert found.insert.columns == columns
    assert found.insert.source is InsertSource(source)
    assert tables(sql)[0] == table
    assert "UNPARSED" not in uses(sql)


def test_what_follows_the_rows():
    found = statement(
        "INSERT IGNORE INTO t (a, b) VALUES (1, 'x;)'), (2, NULL) AS new "
        "ON DUPLICATE KEY UPDATE a = 5, b = new.b, c = NULL"
    )
    insert = found.shape.insert
    assert insert is not None
    assert (insert.ignore, insert.on_duplicate, insert.row_alias) == (True, True, "new")
    assert found.value(found.shape.assignments["a"]) == 5
    assert found.shape.assignments["b"] is OPAQUE
    assert found.shape.assignments["c"] is None


@cases(sql=str, assigned=ast.literal_eval)
def test_assignments_behind_rows_a_query_or_set_keep_their_values(sql, assigned):
    found = statement(sql)
    assert {
        name: found.value(each) for name, each in found.shape.assignments.items()
    } == assigned


def test_the_set_form():
    found = statement("INSERT INTO t SET a = 1, b = NOW() AS n")
    insert = found.shape.insert
    assert insert is not None
    assert (found.value(insert.set["a"]), insert.set["b"]) == (1, OPAQUE)
    assert insert.row_alias == "n"


@cases(sql=str)
def test_leftovers_are_unparsed(sql):
    assert "UNPARSED" in uses(sql)
    assert shape(sql).insert is None
