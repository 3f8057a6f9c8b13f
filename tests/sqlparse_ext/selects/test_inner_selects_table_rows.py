import ast

from streamfrom.sqlparse_ext.selects.inner_selects import read_table_rows
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


@cases(sql=str, columns=ast.literal_eval)
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


@cases(sql=str)
def test_other_statements_have_no_such_rows(sql):
    assert read_table_rows(statement(sql).shape.template) is None
