"""What a statement gives for its operands."""

import pytest

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE
from tests.sqlparse_ext.facts import conditions, shape, statement


def test_a_list_and_an_expression_have_no_single_value():
    found = statement("UPDATE t SET a = f(1) WHERE b IN (1,2)")
    with pytest.raises(TypeError):
        found.value(found.shape.conditions["b"][0])
    with pytest.raises(TypeError):
        found.value(found.shape.assignments["a"])
    assert found.values([None, OPAQUE]) is None
    assert found.values([None]) == [None]


def test_shapes_are_keys_by_identity():
    one, other = shape("SELECT 1"), shape("SELECT 1")
    assert one != other
    assert {one: 1, other: 2}[one] == 1


def test_values_that_the_server_converts_are_not_known():
    sql = b"SELECT * FROM t WHERE a = 'th\xe9' AND b = 'tea' AND c = x'e9'"
    assert conditions(sql, SqlMode.OTHER_CHARSET) == {"a": None, "b": [b"tea"], "c": [b"\xe9"]}
