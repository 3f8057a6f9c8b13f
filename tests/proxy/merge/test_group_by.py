import pytest

from streamfrom.proxy.merge.group_by import Grouping
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import number, texts


def group(sql, columns=("a", "b"), table=("a", "b", "c")):
    return Grouping(texts(sql), [number(name) for name in columns], frozenset(table))


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        ("SELECT a, COUNT(*) FROM t GROUP BY a", [b"a"]),
        ("SELECT a + 1 x, COUNT(*) FROM t GROUP BY x", [b"a + 1"]),
        ("SELECT COUNT(*), a + 1 FROM t GROUP BY 2, b", [b"a + 1", b"b"]),
        ("SELECT DISTINCT b, a FROM t", [b"b", b"a"]),
        ("SELECT DISTINCT * FROM t", [b"`a`", b"`b`"]),
        ("SELECT DISTINCT a, A FROM t", [b"a"]),
        ("SELECT COUNT(*) FROM t", []),
    ],
)
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


@pytest.mark.parametrize(
    ("having", "operands", "tail"),
    [
        ("COUNT(*) > 1 OR a = 1", [1, 0], b""),
        ("MAX(b) > 'x'", [1], b" > 'x'"),
        ("SUM(b) BETWEEN 1 AND 5", [1], b""),
        ("NOT (SUM(b) = 1)", [1], b""),
        ("COUNT(*) > a", [1, 0], b""),
    ],
)
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


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT a, b FROM t GROUP BY a", "a column that is not grouped"),
        ("SELECT *, COUNT(*) FROM t", "* beside groups or aggregates"),
        ("SELECT SUM(a) + RAND() FROM t", "volatile"),
        (
            "SELECT SUM(a) + GROUP_CONCAT(b) FROM t",
            "GROUP_CONCAT without ORDER BY over several",
        ),
        (
            "SELECT SUM(a) + GROUP_CONCAT(b ORDER BY b) FROM t",
            "an expression of GROUP_CONCAT over several shards",
        ),
        (
            "SELECT GROUP_CONCAT(b ORDER BY b), GROUP_CONCAT(b ORDER BY a) FROM t",
            "GROUP_CONCAT of several lists over several shards",
        ),
        ("SELECT SUM(a) AS x FROM t HAVING x / 2 > 1", "an expression of the alias 'x'"),
        (
            "SELECT SUM(a) b FROM t GROUP BY c HAVING b + 1 > 2",
            "an expression of the alias 'b'",
        ),
        ("SELECT GROUP_CONCAT(a ORDER BY a LIMIT 3) FROM t", "this aggregate over several sha"),
        ("SELECT DISTINCT a FROM t GROUP BY a", "DISTINCT with GROUP BY"),
        (
            "SELECT DISTINCT a FROM t ORDER BY UPPER(a)",
            "DISTINCT with ORDER BY of what is not selected",
        ),
        ("SELECT DISTINCT *, a FROM t", "DISTINCT with * beside other items"),
        ("SELECT a AS b, COUNT(*) FROM t GROUP BY b", "a column that is not grouped"),
        ("SELECT a AS b, COUNT(*) FROM t GROUP BY t.b", "a column that is not grouped"),
        (
            "SELECT a + 1 AS x FROM t GROUP BY a ORDER BY MAX(x)",
            "an expression of the alias 'x'",
        ),
        ("SELECT -a AS a FROM t GROUP BY a HAVING a > 1", "this HAVING"),
        ("SELECT -a AS a, SUM(b) FROM t GROUP BY a HAVING a + SUM(b) > 1", "of the alias 'a'"),
        ("SELECT MAX(a) AS b FROM t GROUP BY c ORDER BY t.b", "an expression of the alias 'b'"),
        ("SELECT COUNT(*) FROM t GROUP BY 'x'", "GROUP BY this literal"),
        ("SELECT 5, COUNT(*) FROM t GROUP BY 1", "GROUP BY a constant"),
        ("SELECT COUNT(*) FROM t GROUP BY RAND()", "volatile"),
        ("SELECT COUNT(*) FROM t HAVING 1 = 0", "this HAVING"),
        ("SELECT a FROM t GROUP BY a ORDER BY b", "a column that is not grouped"),
        ("SELECT UPPER(a) FROM t GROUP BY a ORDER BY 1", "ORDER BY this expression of groups"),
        ("SELECT a FROM t GROUP BY a ORDER BY 7", "ORDER BY this position"),
        ("SELECT COUNT(DISTINCT a), 5 FROM t", "a constant beside an aggregate with DISTINCT"),
        ("SELECT COUNT(DISTINCT a), 5 + 5 FROM t", "a constant beside an aggregate with DIST"),
        ("SELECT STD(a) FROM t", "STD over several shards"),
    ],
)
def test_what_the_parts_do_not_tell_is_refused_by_name(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        group(sql)
    assert sentence in str(refused.value)
