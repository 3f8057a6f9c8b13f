import pytest

from streamfrom.proxy.merge.aggregate_expressions import Computation
from streamfrom.proxy.merge.group_by import Grouping
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import number, texts


INT = FieldType.LONGLONG
COUNTER = number("n", kind=INT)


def computation(sql, *wanted, exact=False, table=("a", "b", "c")):
    found = texts(sql)
    columns = wanted or [number("x", 4)] * 9
    return Computation(found, Grouping(found, frozenset(table)), columns, exact=exact)


def tried(sql, values, results, *, wanted=None, exact=False):
    """Return a computation that a shard has answered: *values* are binary numbers."""
    found = computation(sql, *(wanted or results), exact=exact)
    found.tried([COUNTER, *values, *results], [b"binary"] * len(values))
    return found


def test_what_a_shard_computes_with_other_types_is_refused():
    found = tried("SELECT -COUNT(*) FROM t", [number("c", kind=INT)], [number("x", kind=INT)])
    with pytest.raises(
        Unsupported,
        match=r"unsupported: -COUNT\(\*\) over several shards: .*; select its parts",
    ):
        found.answer([COUNTER, number("x", 4)], [text_row([b"0", b"-5"])])


def test_another_type_than_the_statements_is_refused():
    with pytest.raises(
        Unsupported, match=r"SUM\(a\) \* 2 over several shards: a shard gives it another type"
    ):
        tried(
            "SELECT SUM(a) * 2 FROM t",
            [number("s", 2)],
            [number("x", 2)],
            wanted=[number("x", 4)],
        )


DOUBLE = FieldType.DOUBLE


@pytest.mark.parametrize(
    ("sql", "value", "result", "sentence"),
    [
        ("SELECT MAX(a) + 1 FROM t", number("m", kind=FieldType.FLOAT), number("x", kind=INT), "the texts of its values"),
        ("SELECT FLOOR(SUM(a)) FROM t", number("s", 31, DOUBLE), number("x", kind=INT), "a sum of floats"),
        ("SELECT SUM(a) * 2 FROM t", number("s", 3, DOUBLE), number("x", 3, DOUBLE), "the texts of its values"),
        ("SELECT UNIX_TIMESTAMP(MAX(a)) FROM t", number("m", kind=FieldType.TIMESTAMP), number("x", kind=INT), "UNIX_TIMESTAMP of an aggregate"),
        ("SELECT SUM(a) / 3 AS x FROM t GROUP BY b ORDER BY x + 1", number("s", 4), number("x", 4), "servers round before or after they go on"),
        ("SELECT MAX(a) + INTERVAL 1 DAY FROM t", number("m", kind=FieldType.YEAR), number("x", kind=INT), "the texts of its values"),
        ("SELECT NULLIF(COUNT(*), 1) AS n FROM t GROUP BY b HAVING n > 1", number("c", kind=INT), number("x", kind=INT), "HAVING with NULLIF"),
    ],
)  # fmt: skip
def test_values_that_another_order_or_type_would_change_are_refused(
    sql, value, result, sentence
):
    with pytest.raises(Unsupported, match=sentence):
        tried(sql, [value], [result] * 2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ROUND(AVG(a), 2) FROM t",
        "SELECT b, AVG(a) AS x FROM t GROUP BY b HAVING x > 1.5",
        "SELECT 1 FROM t GROUP BY b ORDER BY COUNT(*) - AVG(a)",
    ],
)
def test_what_is_made_of_an_average_needs_the_rows(sql):
    with pytest.raises(Unsupported, match=r"more digits than it shows, SUM\(x\) / COUNT\(x\)"):
        computation(sql)


def test_a_condition_that_rounding_could_decide_is_refused():
    values = [number("SUM"), number("COUNT", kind=INT)]
    with pytest.raises(
        Unsupported, match=r"SUM\(a\) / COUNT\(\*\).* over several shards: servers round before"
    ):
        tried(
            "SELECT 5 FROM t HAVING SUM(a) / COUNT(*) > 2 OR COUNT(*) = 1",
            values,
            [number("x", kind=INT)],
        )


def test_floats_of_a_prepared_statement_have_all_their_digits():
    wanted = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=2, charset=BINARY_CHARSET)
    found = computation("SELECT ROUND(SUM(a), 2) FROM t", wanted, exact=True)
    assert b"((ROUND(`streamfrom:1`, 2)))+0e0" in found.trial()


def test_an_alias_in_an_expression_is_what_it_stands_for():
    sql = "SELECT COUNT(*) * 2 AS x FROM t GROUP BY b HAVING x + 1 > 3"
    found = tried(sql, [number("n", kind=INT)], [number("x", kind=INT)] * 2)
    assert b"((`streamfrom:1` * 2) + 1 > 3) IS TRUE FROM" in found.trial()
    assert "COUNT(*) * 2, x + 1 over several shards: a shard cannot" in str(found.refused())
