"""A UNION as a SELECT from a derived table."""

import pytest

from streamfrom.sqlparse_ext.selects.unions import read_union
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from tests.sqlparse_ext.facts import statement


def wrapped(sql, *, is_distinct=False):
    found = statement(sql)
    union = read_union(found.shape.template, is_distinct=is_distinct)
    assert union is not None
    return union, union.wrapped(found)


@pytest.mark.parametrize(
    ("sql", "body", "tail"),
    [
        ("SELECT 1 UNION ALL SELECT 2", "SELECT 1 UNION ALL SELECT 2", ""),
        ("(SELECT 1)UNION(SELECT 2)ORDER BY 1;", "(SELECT 1)UNION(SELECT 2)", "ORDER BY 1;"),
        (
            "SELECT a FROM t WHERE a IN (1, 2) EXCEPT SELECT 'x)' # (\n ORDER  BY `a` LIMIT 1, 2",
            "SELECT a FROM t WHERE a IN (1, 2) EXCEPT SELECT 'x)'",
            " # (\n ORDER  BY `a` LIMIT 1, 2",
        ),
    ],
)
def test_what_sorts_and_limits_all_of_it_stays_outside(sql, body, tail):
    union, found = wrapped(sql)
    assert union.body(statement(sql)) == body.encode()
    assert found.sql == f"SELECT * FROM ({body}) AS `streamfrom`{tail}".encode()


def test_the_pieces_are_those_of_the_wrapped_text():
    sql = "SELECT a, b FROM t WHERE b = 'x' UNION SELECT a, b FROM u ORDER BY b DESC LIMIT 5, 7"
    union, found = wrapped(sql, is_distinct=True)
    template = fingerprint(found.sql, found.mode).template
    select = union.select
    assert template[slice(*select.source)].endswith(b" FROM u) AS `streamfrom`")
    assert template[slice(*select.distinct or (0, 0))] == b"DISTINCT"
    assert [order.expression.column for order in select.order] == ["b"]
    assert select.limit is not None
    assert found.value(select.limit.count) == 7
    assert found.value(select.limit.offset) == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "(SELECT 1 UNION SELECT 2) ORDER BY 1",
        "WITH w AS (SELECT 1) SELECT * FROM w UNION SELECT 2",
        "SELECT 1 UNION SELECT 2 FOR UPDATE",
        "SELECT 1 UNION SELECT 2 INTO @x",
        "; SELECT 1 UNION SELECT 2",
        "SELECT 1 UNION SELECT 2 LIMIT 1 + 1",
    ],
)
def test_any_other_form_is_not_read(sql):
    assert read_union(statement(sql).shape.template, is_distinct=False) is None
