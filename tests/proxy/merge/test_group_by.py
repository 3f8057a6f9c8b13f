import ast

import pytest

from streamfrom.proxy.merge.group_by import Grouping
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import texts


def group(sql, table=("a", "b", "c")):
    return Grouping(texts(sql), frozenset(table))


@cases(sql=str, groups=ast.literal_eval)
def test_groups_are_columns_aliases_positions_or_all_that_is_distinct(sql, groups):
    assert [each.text for each in group(sql).groups] == groups


@pytest.mark.parametrize(
    "item", ["LAST_INSERT_ID()", "CAST(5 AS SIGNED)", "unknown", "DATABASE()"]
)
def test_what_a_connection_knows_or_may_be_a_column_is_no_constant(item):
    with pytest.raises(Unsupported, match="a column that is not grouped"):
        group(f"SELECT a, {item}, SUM(b) FROM t GROUP BY a")


@cases(having=str, operands=ast.literal_eval, tail=str.encode)
def test_a_condition_of_another_form_is_computed_whole(having, operands, tail):
    found = group(f"SELECT a FROM t GROUP BY a HAVING {having}")
    (place,) = found.conditions
    assert [operand for _, operand in found.outputs[place].operands] == operands
    assert found.outputs[place].tail == tail
    assert found.outputs[place].is_condition


@cases(sql=str, sentence=str)
def test_what_the_parts_do_not_tell_is_refused_by_name(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        group(sql)
    assert sentence in str(refused.value)


def test_a_group_that_is_not_selected_is_a_value_of_a_condition():
    found = group("SELECT COUNT(*) FROM t GROUP BY a HAVING a + COUNT(*) > 5")
    (place,) = found.conditions
    assert [found.outputs[operand].group for _, operand in found.outputs[place].operands] == [
        0,
        None,
    ]
    assert found.width == 1
