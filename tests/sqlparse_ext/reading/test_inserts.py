"""INSERT and REPLACE: target, lists and forms."""

import ast

from streamfrom.sqlparse_ext.statements import OPAQUE, InsertSource, Kind
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement, tables, uses


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


def test_assignments_behind_rows_with_functions_keep_their_values():
    found = statement("INSERT INTO t VALUES (1, f(2)), (3, f(4)) ON DUPLICATE KEY UPDATE a = 5")
    assert found.value(found.shape.assignments["a"]) == 5


def test_the_set_form():
    found = statement("INSERT INTO t SET a = 1, b = NOW() AS n ON DUPLICATE KEY UPDATE a = 2")
    insert = found.shape.insert
    assert insert is not None
    assert found.value(insert.set["a"]) == 1
    assert insert.set["b"] is OPAQUE
    assert insert.row_alias == "n"
    assert found.value(found.shape.assignments["a"]) == 2


def test_on_duplicate_is_not_mistaken_for_a_join():
    found = shape(
        "INSERT INTO t SELECT * FROM u JOIN v ON u.a = v.a ON DUPLICATE KEY UPDATE b = 1"
    )
    assert found.insert is not None
    assert found.insert.on_duplicate
    assert found.assignments.keys() == {"b"}


@cases(sql=str)
def test_leftovers_are_unparsed(sql):
    assert "UNPARSED" in uses(sql)
    assert shape(sql).insert is None
