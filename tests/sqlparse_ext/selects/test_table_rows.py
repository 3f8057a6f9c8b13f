import pytest

from streamfrom.sqlparse_ext.selects.table_rows import read_table_rows
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def read(sql):
    found = read_table_rows(statement(sql).shape.template)
    assert found is not None
    return found


@cases(sql=str, rows=str, rest=str)
def test_the_rows_stand_in_the_place_of_the_table(sql, rows, rest):
    found = read(sql)
    assert found.statement(statement(sql)).sql.decode() == rows
    assert found.with_parts(statement(sql), {0: b"ROWS"}).decode() == rest


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT SUM(a * `B`), COUNT(*) FROM t WHERE c = 'd'", {"a", "b", "c"}),
        ("SELECT a, 2 * a FROM t ORDER BY t.d", {"a", "d"}),
        ("SELECT *, SUM(a) FROM t", None),
        ("SELECT DISTINCT t.* FROM t", None),
    ],
)
def test_the_columns_that_may_be_needed_are_names_in_the_text(sql, columns):
    wanted = read(sql).wanted
    assert (wanted and wanted & {"a", "b", "c", "d"}) == columns


def test_the_columns_that_are_named_are_selected():
    sql = "SELECT SUM(a) AS s FROM t WHERE `B` > 1"
    found, whole = read(sql), statement(sql)
    assert found.ask_columns() == b"SHOW COLUMNS FROM `t`"
    assert (
        found.statement(whole, ["A", "b", "c"]).sql == b"SELECT `A`, `b` FROM t WHERE `B` > 1"
    )
    assert found.statement(whole, ["c"]).sql == b"SELECT 1 FROM t WHERE `B` > 1"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(a) FROM t FOR UPDATE",
        "SELECT DEFAULT(a), STD(a) FROM t",
        "SELECT STD(_rowid) FROM t",
        "SELECT SUM(a) FROM t, u",
        "SELECT SUM(a) FROM (SELECT 1 AS a) AS t",
        "SELECT SUM(a) FROM t WHERE a > (SELECT 1)",
        "SELECT SUM(a) FROM s.t",
        "SELECT SUM(@a) FROM t",
        "SELECT SUM(a) INTO @b FROM t",
        "SELECT SUM(a) FROM t UNION SELECT 1",
        "SELECT 1",
        "UPDATE t SET a = 1",
    ],
)
def test_other_statements_have_no_such_rows(sql):
    assert read_table_rows(statement(sql).shape.template) is None
