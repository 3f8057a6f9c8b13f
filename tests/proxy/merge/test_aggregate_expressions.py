import pytest

from streamfrom.proxy.merge.aggregate_expressions import Computation, is_sure
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
    return Computation(found, Grouping(found, frozenset(table)), columns, exact=exact)


def tried(sql, values, results, *, wanted=None, exact=False):
    """Return a computation that a shard has answered: *values* are binary numbers."""
    found = computation(sql, *(wanted or results), exact=exact)
    count = len(found.averages)
    twice = results if count else []
    averages = [number("AVG", 9)] * count
    found.tried([COUNTER, *values, *averages, *results, *twice], [b"binary"] * len(values))
    return found, [COUNTER, *results, *twice]


def test_what_a_shard_computes_with_other_types_is_refused():
    found, _ = tried(
        "SELECT -COUNT(*) FROM t", [number("c", kind=INT)], [number("x", kind=INT)]
    )
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
        ("SELECT AVG(a) * 2 AS x FROM t GROUP BY b HAVING x > 1", number("AVG", 4), number("x", 4), "other digits of an AVG"),
        # MariaDB says 0.0000 to AVG(a) % 3 and -0.0000 to -3.0000 % 3.
        ("SELECT AVG(a) % 3 FROM t", number("AVG", 4), number("x", 4), "other digits of an AVG"),
        ("SELECT CAST(AVG(a) AS SIGNED) FROM t", number("AVG", 4), number("x", kind=INT), "other digits of an AVG"),
        ("SELECT MAX(a) + INTERVAL 1 DAY FROM t", number("m", kind=FieldType.YEAR), number("x", kind=INT), "the texts of its values"),
        ("SELECT NULLIF(COUNT(*), 1) AS n FROM t GROUP BY b HAVING n > 1", number("c", kind=INT), number("x", kind=INT), "HAVING with NULLIF"),
    ],
)  # fmt: skip
def test_values_that_another_order_or_type_would_change_are_refused(
    sql, value, result, sentence
):
    with pytest.raises(Unsupported, match=sentence):
        tried(sql, [value], [result] * 2)


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


@cases(sql=str, shown=str.encode, precise=str.encode)
def test_where_servers_round_an_average_differently_nothing_is_said(sql, shown, precise):
    found, columns = tried(sql, [number("AVG", 4)], [number("x", 4)])
    assert found.answer(columns, [text_row([b"0", shown, shown])]) == [{0: shown}]
    with pytest.raises(Unsupported, match="whose last digits decide"):
        found.answer(columns, [text_row([b"0", shown, precise])])


def test_floats_of_a_prepared_statement_have_all_their_digits():
    wanted = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=2, charset=BINARY_CHARSET)
    found = computation("SELECT ROUND(SUM(a), 2) FROM t", wanted, exact=True)
    assert b"((ROUND(`streamfrom:1`, 2)))+0e0" in found.trial()


def test_an_average_is_sent_with_all_its_digits_and_none_without_a_value():
    found, columns = tried("SELECT AVG(a) * 100 FROM t", [number("AVG", 4)], [number("x", 4)])
    assert b", (`streamfrom:1+` * 100) FROM (SELECT 0 AS" in found.trial()
    groups = [[None, b"1.3333", b"1.333333333"], [None, None, None]]
    sql = found.question(groups)
    sent = b'[["0","1.3333","1.333333333"],["1",null,null]]'
    assert sent.hex().encode() in sql
    assert b"DECIMAL(65,9) PATH '$[2]'" in sql
    rows = [text_row([b"0", b"133.3300", b"133.333333300"]), text_row([b"1", None, None])]
    cut, none = found.answer(columns, rows)
    assert (cut[0], none[0]) == (b"133.3333", None)


@pytest.mark.parametrize(
    ("order", "is_direct"),
    [
        ("b", True),
        ("b DESC, c DESC", True),
        ("COUNT(*)", False),
        ("b, c DESC", False),
        ("c, b", False),
    ],
)
def test_groups_that_a_server_may_sort_in_a_temporary_table_may_have_fewer_digits(
    order, is_direct
):
    sql = f"SELECT AVG(a) * 100 FROM t GROUP BY b, c ORDER BY {order}"
    found, columns = tried(sql, [number("AVG", 4)], [number("x", 4)])
    rows = [text_row([b"0", b"133.3300", b"133.333333300"])]
    if is_direct:
        assert found.answer(columns, rows) == [{0: b"133.3333"}]
        return
    with pytest.raises(Unsupported, match="whose last digits decide"):
        found.answer(columns, rows)


def test_an_alias_in_an_expression_is_what_it_stands_for():
    sql = "SELECT COUNT(*) * 2 AS x FROM t GROUP BY b HAVING x + 1 > 3"
    found, _ = tried(sql, [number("n", kind=INT)], [number("x", kind=INT)] * 2)
    assert b"((`streamfrom:1` * 2) + 1 > 3) IS TRUE FROM" in found.trial()
    assert "COUNT(*) * 2, x + 1 over several shards: a shard cannot" in str(found.refused())


@pytest.mark.parametrize(
    "expression",
    [
        "A * 100",
        "O - A",
        "COALESCE(A, 0)",
        "ifnull( A ,  -1)",
        "ABS(A)",
        "ROUND(A, 2)",
        "round(A)",
        "CONCAT(ROUND(A, 1), '%')",
        "ROUND(A, 2) / O * 7",
        "ROUND(COALESCE(A, 0), 2)",
        "IF(A > 2, 'yes', 'no')",
        "A <= 1.5",
        "CASE WHEN A BETWEEN 1 AND 5 THEN 1 ELSE 0 END",
    ],
)
def test_all_or_the_shown_digits_of_an_average_are_what_servers_compute_with(expression):
    assert is_sure(marked(expression))


def marked(expression):
    """Put the marks for the lone letters A and O."""
    words = expression.encode().replace(b"(", b"( ").replace(b",", b" ,").replace(b")", b" )")
    marks = {b"A": b"\0", b"O": b"\1"}
    return b" ".join(marks.get(word, word) for word in words.split(b" "))


@cases(expression=str)
def test_of_more_steps_only_some_servers_know_the_digits(expression):
    assert not is_sure(marked(expression))
