"""What a SELECT does with its rows, by its looks."""

import ast

from sqlglot import exp, parse_one

from streamfrom.sqlparse_ext.selects.select_properties import is_row_by_row, looks_at_other_rows
from tests.cases import cases


@cases(sql=str, expected=ast.literal_eval)
def test_one_row_of_all_rows_is_not_row_by_row(sql, expected):
    select = parse_one(sql, dialect="mysql")
    assert isinstance(select, exp.Select)
    assert is_row_by_row(select) is expected


@cases(sql=str, expected=ast.literal_eval)
def test_limits_windows_and_variables_look_at_other_rows(sql, expected):
    assert looks_at_other_rows(parse_one(sql, dialect="mysql")) is expected
