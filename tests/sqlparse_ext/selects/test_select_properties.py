"""What a SELECT does with its rows, by its looks."""

import pytest
from sqlglot import exp, parse_one

from streamfrom.sqlparse_ext.selects.select_properties import is_row_by_row, looks_at_other_rows


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
