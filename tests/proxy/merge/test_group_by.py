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


def test_an_output_is_a_group_an_aggregate_or_made_of_groups():
    outputs = group("SELECT UPPER(a), a, SUM(b), 5 FROM t GROUP BY a").outputs
    assert [output.group for output in outputs] == [None, 0, None, None]
    assert [output.call is not None for output in outputs] == [False, False, True, False]
    assert outputs[3].is_constant


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


def test_the_shards_order_the_groups_as_the_client_wants_them():
    found = group("SELECT a, b, COUNT(*) FROM t GROUP BY a, b, c ORDER BY b DESC")
    assert found.order == [(1, True), (0, False), (2, False)]
    assert found.final_order == []


def test_an_order_by_aggregates_comes_last():
    found = group("SELECT a, COUNT(*) c FROM t GROUP BY a ORDER BY c DESC, a, MAX(b)")
    assert found.order == [(0, False)]
    assert found.final_order == [(1, True), (0, False), (2, False)]
    assert found.width == 2
    assert found.outputs[2].text == b"MAX(b)"


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


def test_an_expression_of_aggregates_names_the_outputs_it_is_made_of():
    found = group(
        "SELECT a, SUM(b) / COUNT(*) AS m, a + SUM(b) FROM t GROUP BY a ORDER BY m + a"
    )
    assert found.width == 3
    assert [output.text for output in found.outputs[3:]] == [b"SUM(b)", b"COUNT(*)", b"m + a"]
    assert [[place for _, place in output.operands] for output in found.outputs] == [
        [], [3, 4], [0, 3], [], [], [1, 0],
    ]  # fmt: skip


@cases(having=str, operands=ast.literal_eval, tail=str.encode)
def test_a_condition_of_another_form_is_computed_whole(having, operands, tail):
    found = group(f"SELECT a FROM t GROUP BY a HAVING {having}")
    ((place, operator, number),) = found.tests
    assert (operator, number) == ("<>", 0)
    assert [operand for _, operand in found.outputs[place].operands] == operands
    assert found.outputs[place].tail == tail
    assert found.outputs[place].is_condition


def test_a_number_that_is_computed_is_compared_here():
    found = group("SELECT a FROM t GROUP BY a HAVING SUM(b) / COUNT(*) >= 1.5")
    assert found.tests == [(3, ">=", "1.5")]
    assert not found.outputs[3].is_condition


def test_aggregates_share_a_list_of_distinct_arguments():
    found = group("SELECT COUNT(DISTINCT a), SUM(DISTINCT A), MIN(DISTINCT b) FROM t")
    assert [argument.column for argument in found.distinct] == ["a"]
    assert found.lists == [(0,)]
    assert found.list_of == {0: 0, 1: 0}


def test_lists_of_distinct_arguments_have_the_arguments_in_common():
    found = group(
        "SELECT COUNT(DISTINCT b), COUNT(*), COUNT(DISTINCT a, b), SUM(DISTINCT a) FROM t"
    )
    assert [argument.column for argument in found.distinct] == ["b", "a"]
    assert found.lists == [(0,), (1, 0), (1,)]
    assert found.list_of == {0: 0, 2: 1, 3: 2}


@cases(sql=str, sentence=str)
def test_what_the_parts_do_not_tell_is_refused_by_name(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        group(sql)
    assert sentence in str(refused.value)
