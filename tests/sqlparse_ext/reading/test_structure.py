"""The tables of queries that need a real parser."""

import ast

import pytest

from tests.cases import cases
from tests.sqlparse_ext.facts import tables, uses


@cases(sql=str, expected=ast.literal_eval)
def test_all_tables_are_found(sql, expected):
    assert sorted(tables(sql)) == sorted(expected)
    assert "UNPARSED" not in uses(sql)
    if not sql.startswith(("SELECT", "WITH", "(")):
        assert tables(sql)[:1] == expected[:1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a JOIN b INTO @x",
        "SELECT * FROM {oj a LEFT JOIN b ON 1}",
        "SELECT * FROM a JOIN b PROCEDURE ANALYSE()",
        "SELECT * FROM a JOIN",
        "SELECT " + "(" * 5000 + "SELECT 1 FROM t" + ")" * 5000,
        "SELECT * FROM a, b WHERE " + " OR ".join(["x = y"] * 2000),
        "UPDATE a, b",
        "SELECT * FROM t WHERE (id = 5",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
    ],
)
def test_what_is_not_understood_is_unparsed(sql):
    assert "UNPARSED" in uses(sql)


def test_unparsed_statements_still_name_the_tables_they_show():
    assert tables("SELECT * FROM a JOIN ks.b INTO @x") == ["a", "ks.b"]
