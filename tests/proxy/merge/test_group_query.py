import pytest

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.group_query import GroupsQuery
from streamfrom.proxy.merge.row_merge import RowsQuery
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import answer, definitions, number, planned, texts


def plan(sql, columns=(), strings=(), table=("a", "b")):
    return planned(GroupsQuery(texts(sql), 1 << 20), columns, table, strings)


@cases(sql=str, asked=str)
def test_the_shards_are_asked_for_parts_of_groups_in_order(sql, asked):
    assert plan(sql).sql().decode() == asked


def run(sql, parts, *shards, columns=None):
    columns = columns or [number(str(index)) for index in range(9)]
    return answer(plan(sql, columns).merger(len(shards), parts), *shards)


def test_no_rows_are_one_group_without_group_by_and_none_with_it():
    assert run("SELECT COUNT(DISTINCT a), SUM(a) FROM t", [number("")] * 2, [], []) == [
        ("0", None)
    ]
    assert run("SELECT a, COUNT(*) FROM t GROUP BY a", [number("")] * 3, [], []) == []


def test_groups_in_another_order_are_sorted_at_the_end_and_then_cut():
    rows = run(
        "SELECT a, COUNT(*) n FROM t GROUP BY a HAVING n > 1 ORDER BY n DESC, a DESC LIMIT 1, 2",
        [number("")] * 3,
        [(3, 3, 1), (2, 2, 1), (1, 1, 5)],
        [(5, 5, 1), (4, 4, 9), (2, 2, 4)],
    )
    assert rows == [("2", "5"), ("1", "5")]


def test_names_come_from_the_statement_and_types_from_what_ran():
    found = plan("SELECT a, AVG(b) AS x FROM t GROUP BY a", [number("a"), number("x", 4)])
    described = definitions(number("a"), number("x", 4))
    shard = definitions(*[number("part", 2)] * 4)
    first, second = map(parse_column_definition, found.definitions(described, shard))
    assert (first.name, first.decimals) == ("a", 2)
    assert (second.name, second.decimals) == ("x", 4)


@pytest.mark.parametrize(
    ("order", "key"), [(" ORDER BY m", Comparison.NUMBER), ("", Comparison.ORDINAL)]
)
def test_the_extreme_of_an_enum_and_an_order_by_it_are_refused(order, key):
    found = GroupsQuery(texts(f"SELECT a, MAX(e) m FROM t GROUP BY a{order}"), 1 << 20)
    found.describe([number("a"), number("m")], frozenset())
    enum = number("e", kind=FieldType.ENUM)
    count = len(found.expressions)
    found.resolve([ColumnKey(key)] * count, [enum] * count)
    with pytest.raises(Unsupported, match="an ENUM or SET"):
        found.merger(2, [number("")] * 9)


def test_groups_are_sorted_by_their_extremes():
    sql = "SELECT a, MAX(b) m FROM t GROUP BY a ORDER BY m DESC"
    rows = run(sql, [number("")] * 3, [(1, 1, 5), (2, 2, 7)], [(1, 1, 9), (3, 3, None)])
    assert rows == [("1", "9"), ("2", "7"), ("3", None)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT d.a FROM (SELECT a FROM t) d ORDER BY d.a",
        "SELECT d.a, COUNT(*) FROM (SELECT a FROM t) d GROUP BY d.a",
    ],
)
def test_a_select_from_a_derived_table_has_the_columns_that_it_was_described_with(sql):
    query = RowsQuery(texts(sql)) if "GROUP" not in sql else GroupsQuery(texts(sql), 1 << 20)
    found = planned(query, [number("a"), number("n")], ("a",))
    assert found.definitions([b"described"], [b"of a shard"]) == [b"described"]
