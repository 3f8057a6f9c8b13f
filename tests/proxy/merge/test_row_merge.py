import pytest

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.row_merge import RowsQuery
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import answer, number, planned, texts


def plan(sql, columns=(), strings=()):
    return planned(RowsQuery(texts(sql)), columns, strings=strings)


@cases(sql=str, asked=str)
def test_the_shards_get_the_statement_with_the_keys_in_front(sql, asked):
    columns = [number("a"), number("b")] + [number("a + 1")] * ("a + 1" in sql)
    assert plan(sql, columns).sql().decode() == asked


def test_exact_floats_come_in_front_and_take_their_places():
    columns = [number("a"), number("f", kind=FieldType.FLOAT), number("b")]
    found = planned(
        RowsQuery(texts("SELECT *, f x FROM t ORDER BY b"), exact=True), [*columns, columns[1]]
    )
    assert found.sql() == (
        b"SELECT b AS `streamfrom:1`, (`f`)+0e0 AS `streamfrom:2`, (f)+0e0 AS `streamfrom:3`,"
        b" t.*, f x FROM t ORDER BY b"
    )
    rows = answer(found.merger(1, ()), [(2, "3.3333332538604736", None, 1, "3.33333", 2, None)])
    assert rows == [("1", "3.3333332538604736", "2", None)]


@cases(sql=str)
def test_an_order_that_cannot_be_repeated_is_refused(sql):
    with pytest.raises(Unsupported):
        plan(sql, [ColumnDefinition("a", org_name="a")] * 2).sql()


def test_an_order_by_the_extreme_of_an_enum_is_refused():
    found = RowsQuery(texts("SELECT a FROM t GROUP BY a ORDER BY MIN(e)"))
    found.describe([number("a")], frozenset())
    enum = number("e", kind=FieldType.ENUM)
    with pytest.raises(Unsupported, match="MIN or MAX of an ENUM"):
        found.resolve([ColumnKey(Comparison.NUMBER)] * 2, [number("m"), enum])
