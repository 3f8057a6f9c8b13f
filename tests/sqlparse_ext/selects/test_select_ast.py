import pytest

from streamfrom.sqlparse_ext.selects.select_reader import read_select
from tests.sqlparse_ext.facts import statement


def read(sql):
    found = read_select(statement(sql).shape.template)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("item", "is_constant", "has_aggregate"),
    [
        ("1", True, False),
        ("NULL", True, False),
        ("(TRUE)", True, False),
        ("1 + 1", False, False),
        ("a", False, False),
        ("COUNT(*)", False, True),
        ("1 + MAX(a)", False, True),
    ],
)
def test_an_expression_knows_what_it_is_made_of(item, is_constant, has_aggregate):
    expression = read(f"SELECT {item} FROM t").items[0].expression
    assert expression is not None
    assert expression.is_constant is is_constant
    assert expression.has_aggregate is has_aggregate


@pytest.mark.parametrize(
    ("sql", "has_aggregate"),
    [
        ("SELECT a FROM t ORDER BY a", False),
        ("SELECT MAX(a) FROM t", True),
        ("SELECT 1 FROM t HAVING COUNT(*) > 1", True),
        ("SELECT 1 FROM t ORDER BY SUM(a)", True),
    ],
)
def test_an_aggregate_anywhere_makes_groups(sql, has_aggregate):
    assert read(sql).has_aggregate is has_aggregate
