"""The tables of queries that need a real parser."""

import ast

from tests.cases import cases
from tests.sqlparse_ext.facts import tables, uses


@cases(sql=str, expected=ast.literal_eval)
def test_all_tables_are_found(sql, expected):
    assert sorted(tables(sql)) == sorted(expected)
    assert "UNPARSED" not in uses(sql)
    if not sql.startswith(("SELECT", "WITH", "(")):
        assert tables(sql)[:1] == expected[:1]


@cases(sql=str)
def test_what_is_not_understood_is_unparsed(sql):
    assert "UNPARSED" in uses(sql)


def test_unparsed_statements_still_name_the_tables_they_show():
    assert tables("SELECT * FROM a JOIN ks.b INTO @x") == ["a", "ks.b"]
