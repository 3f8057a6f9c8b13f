import pytest

from streamfrom.proxy.merge.aggregate_expressions import Computation, Computed
from streamfrom.proxy.merge.group_by import Grouping
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import number, texts


INT = FieldType.LONGLONG
COUNTER = number("n", kind=INT)


def computation(sql, *wanted, exact=False, table=("a", "b", "c")):
    found = texts(sql)
    columns = wanted or [number("x", 4)] * 9
    return Computation(found, Grouping(found, columns, frozenset(table)), columns, exact=exact)


def tried(sql, values, results, *, wanted=None, exact=False):
    """Return a computation that a shard has answered: *values* are binary numbers."""
    found = computation(sql, *(wanted or results), exact=exact)
    count = len(found.averages)
    twice = results if count else []
    averages = [number("AVG", 9)] * count
    found.tried([COUNTER, *values, *averages, *results, *twice], [b"binary"] * len(values))
    return found, [COUNTER, *results, *twice]


def test_group_columns_and_aliases_of_aggregates_are_values_too():
    found = computation(
        "SELECT a, SUM(b) AS s, a + COUNT(*) FROM t GROUP BY a HAVING s / 2 > 3 OR a = 1"
    )
    text = found.trial()
    assert b"(`streamfrom:0` + `streamfrom:3`)" in text
    assert b"(`streamfrom:1` / 2 > 3 OR `streamfrom:0` = 1)" in text
    assert b"a AS `streamfrom:0`" in text
    assert b"FROM t WHERE 1=0 GROUP BY a HAVING 1=0" in text


def test_what_a_shard_computes_with_other_types_is_refused():
    found, _ = tried(
        "SELECT -COUNT(*) FROM t", [number("c", kind=INT)], [number("x", kind=INT)]
    )
    with pytest.raises(
        Unsupported,
        match=r"unsupported: -COUNT\(\*\) over several shards: .*; select its parts",
    ):
        found.answer([[None, b"5"]], [COUNTER, number("x", 4)], [text_row([b"0", b"-5"])])


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
        ("SELECT MAX(a) + 1 FROM t", number("m", kind=FieldType.FLOAT), number("x", kind=INT), r"MAX\(a\) over several shards: its text"),
        ("SELECT FLOOR(SUM(a)) FROM t", number("s", 31, DOUBLE), number("x", kind=INT), "a sum of floats"),
        ("SELECT SUM(a) * 2 FROM t", number("s", 3, DOUBLE), number("x", 3, DOUBLE), r"SUM\(a\) over several shards: its text"),
        ("SELECT UNIX_TIMESTAMP(MAX(a)) FROM t", number("m", kind=FieldType.TIMESTAMP), number("x", kind=INT), "UNIX_TIMESTAMP of an aggregate"),
        ("SELECT NULLIF(COUNT(*), 1) AS n FROM t GROUP BY b HAVING n > 1", number("c", kind=INT), number("x", kind=INT), "HAVING with NULLIF"),
    ],
)  # fmt: skip
def test_values_that_another_order_or_type_would_change_are_refused(
    sql, value, result, sentence
):
    with pytest.raises(Unsupported, match=sentence):
        tried(sql, [value], [result])


def test_a_condition_that_rounding_could_decide_is_refused():
    values = [number("SUM"), number("COUNT", kind=INT)]
    with pytest.raises(
        Unsupported, match=r"SUM\(a\) / COUNT\(\*\).* over several shards: servers round it"
    ):
        tried(
            "SELECT 5 FROM t HAVING SUM(a) / COUNT(*) > 2 OR COUNT(*) = 1",
            values,
            [number("x", kind=INT)],
        )


def average(sql, shown, precise, *, cut=b"1.333333333", result=4):
    """Compute with an AVG of 1.3333, which has the digits *cut*."""
    found, columns = tried(sql, [number("AVG", 4)], [number("x", result)])
    row = [b"0", shown, precise]
    groups = [[None, b"1.3333", cut]]
    ((computed, *_),) = (
        list(each.values()) for each in found.answer(groups, columns, [text_row(row)])
    )
    return computed


def test_an_average_is_used_with_all_its_digits_and_shown_with_fewer():
    computed = average("SELECT AVG(a) * 100 FROM t", b"133.3300", b"133.333333300")
    assert computed == Computed(b"133.3333", is_cut=True)
    assert average("SELECT ROUND(AVG(a), 2) FROM t", b"1.33", b"1.33", result=2) == Computed(
        b"1.33"
    )


@cases(sql=str, shown=str.encode, precise=str.encode)
def test_where_servers_round_an_average_differently_nothing_is_said(sql, shown, precise):
    with pytest.raises(Unsupported, match="whose last digits decide"):
        average(sql, shown, precise)


@pytest.mark.parametrize("what", ["AVG(a) / 3 * 7", "AVG(a) % 3", "MOD(AVG(a), 3)"])
def test_a_division_with_an_average_is_refused(what):
    """MariaDB says 0.0000 to AVG(a) % 3 and -0.0000 to -3.0000 % 3."""
    with pytest.raises(Unsupported, match="a division with an AVG"):
        average(f"SELECT {what} FROM t", b"3.1110", b"3.1110", cut=b"1.333300000")


def test_floats_of_a_prepared_statement_have_all_their_digits():
    wanted = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=2, charset=BINARY_CHARSET)
    found = computation("SELECT ROUND(SUM(a), 2) FROM t", wanted, exact=True)
    assert b"((ROUND(`streamfrom:1`, 2)))+0e0" in found.trial()


def integer_of(average):
    """Compute CAST(AVG(a) AS SIGNED)."""
    found, columns = tried(
        "SELECT CAST(AVG(a) AS SIGNED) FROM t", [number("AVG", 4)], [number("x", kind=INT)]
    )
    row = [b"0", b"167", b"167"]
    return found.answer([[None, average, average]], columns, [text_row(row)])


@pytest.mark.parametrize("average", [b"166.5000", b"-0.5000", b"9007199254740993.0000"])
def test_an_average_that_servers_take_for_another_integer_is_refused(average):
    with pytest.raises(
        Unsupported, match=r"CAST\(AVG\(a\) AS SIGNED\) over several shards: an AVG"
    ):
        integer_of(average)
