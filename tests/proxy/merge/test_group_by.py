import ast

import pytest

from streamfrom.proxy.merge.group_by import Grouping
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import number, texts


def group(sql, columns=("a", "b"), table=("a", "b", "c")):
    return Grouping(texts(sql), [number(name) for name in columns], frozenset(table))


@cases(sql=str, groups=ast.literal_eval)
def test_groups_are_columns_aliases_positions_or_all_that_is_distinct(sql, groups):
    assert [each.text for each in group(sql).groups] == groups


@pytest.mark.parametrize(
    "item", ["5 + 5", "CONCAT('a', 'b')", "NOW()", "-7", "CAST(5 AS UNSIGNED)"]
)
def test_what_is_made_of_literals_is_a_constant(item):
    (group_, output, _) = group(f"SELECT a, {item}, SUM(b) FROM t GROUP BY a").outputs
    assert output.is_constant
    assert not group_.is_constant


@pytest.mark.parametrize(
    "item", ["LAST_INSERT_ID()", "CAST(5 AS SIGNED)", "unknown", "DATABASE()"]
)
def test_what_a_connection_knows_or_may_be_a_column_is_no_constant(item):
    with pytest.raises(Unsupported, match="a column that is not grouped"):
        group(f"SELECT a, {item}, SUM(b) FROM t GROUP BY a")


def test_having_on_groups_goes_to_the_shards_and_on_aggregates_is_tested_here():
    found = group("SELECT a FROM t GROUP BY a HAVING COUNT(*) > 3 AND a <> 5 AND LENGTH(a) < 9")
    assert found.pushed == [b"(a <> 5)", b"(LENGTH(a) < 9)"]
    assert found.tests == [(1, ">", 3)]


def test_an_alias_hides_no_column_in_the_list_in_aggregates_and_in_what_is_grouped():
    found = group(
        "SELECT UPPER(a) AS a, SUM(b) AS b, MAX(b) AS c, COUNT(*) FROM t GROUP BY UPPER(a)"
        " HAVING SUM(b) > 5 AND b < 7 AND MIN(b) > 1 ORDER BY SUM(b), b"
    )
    assert [each.text for each in found.groups] == [b"UPPER(a)"]
    assert found.outputs[0].group == 0
    assert found.tests == [(1, ">", 5), (1, "<", 7), (4, ">", 1)]
    assert found.final_order == [(1, False), (1, False)]


def test_a_name_alone_is_grouped_by_as_a_column_and_sorted_by_as_an_alias():
    found = group("SELECT COUNT(*) AS a, IFNULL(b, 0) AS b FROM t GROUP BY b, a ORDER BY a")
    assert [each.text for each in found.groups] == [b"b", b"a"]
    assert found.final_order == [(0, False)]


@cases(having=str, operands=ast.literal_eval, tail=str.encode)
def test_a_condition_of_another_form_is_computed_whole(having, operands, tail):
    found = group(f"SELECT a FROM t GROUP BY a HAVING {having}")
    ((place, operator, number),) = found.tests
    assert (operator, number) == ("<>", 0)
    assert [operand for _, operand in found.outputs[place].operands] == operands
    assert found.outputs[place].tail == tail
    assert found.outputs[place].is_condition


@cases(sql=str, sentence=str)
def test_what_the_parts_do_not_tell_is_refused_by_name(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        group(sql)
    assert sentence in str(refused.value)
