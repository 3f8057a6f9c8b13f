import pytest
from sqlglot import exp, parse_one

from sqlparse_ext.selects.scopes import Scope, is_row_by_row, looks_at_other_rows
from sqlparse_ext.selects.sources import Reference


def column(name, table=""):
    return exp.column(name, table or None)


def test_a_name_is_a_source_a_tied_column_of_a_derived_table_or_unknown():
    outer = Scope(None)
    outer.add("a", 0)
    scope = Scope(outer)
    scope.add("b", 1)
    scope.add("d", None)
    scope.names["e"] = {"k": Reference(2, "id")}
    assert scope.find(column("X", "B")) == Reference(1, "x")
    assert scope.find(column("x", "a")) == Reference(0, "x")
    assert scope.find(column("k", "e")) == Reference(2, "id")
    assert scope.find(column("n", "e")) is None
    assert scope.find(column("x", "d")) is None
    assert scope.find(column("x")) is None


def test_a_name_without_its_table_is_that_of_an_only_table():
    scope = Scope(None)
    scope.add("a", 0)
    assert scope.find(column("x")) == Reference(0, "x")
    scope = Scope(None)
    scope.names["d"] = {"x": Reference(0, "x")}
    assert scope.find(column("x")) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE b > 1", True),
        ("SELECT a, SUM(b) FROM t GROUP BY a HAVING SUM(b) > 1", True),
        ("SELECT SUM(b) FROM t", False),
        ("SELECT 1 FROM t HAVING COUNT(*) > 1", False),
        ("SELECT a, SUM(b) FROM t GROUP BY a WITH ROLLUP", False),
    ],
)
def test_one_row_of_all_rows_is_not_row_by_row(sql, expected):
    select = parse_one(sql, dialect="mysql")
    assert isinstance(select, exp.Select)
    assert is_row_by_row(select) is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, SUM(b) FROM t GROUP BY a", False),
        ("SELECT a FROM t LIMIT 3", True),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u LIMIT 1 OFFSET 2)", True),
        ("SELECT a, ROW_NUMBER() OVER (ORDER BY b) FROM t", True),
        ("SELECT a, @n := @n + 1 FROM t", True),
        ("SELECT a, @n FROM t", True),
    ],
)
def test_limits_windows_and_variables_look_at_other_rows(sql, expected):
    assert looks_at_other_rows(parse_one(sql, dialect="mysql")) is expected
