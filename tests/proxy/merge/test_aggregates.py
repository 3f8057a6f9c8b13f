from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.merge.aggregates import (
    Average,
    Distinct,
    Folded,
    GroupConcat,
    Listed,
    Sum,
    separator_of,
)
from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import texts


DECIMAL = ColumnDefinition("x", type=FieldType.NEWDECIMAL, decimals=2)
DOUBLE = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=31)


def run(accumulator, *rows, is_new=True):
    for row in rows:
        accumulator.add(list(row), is_new=is_new)
    return accumulator.finish()


def test_a_sum_is_exact_and_null_without_values_and_of_doubles_a_double():
    assert run(Sum(0, DECIMAL), [b"0.10"], [b"0.20"], [None]) == b"0.30"
    assert run(Sum(0, DECIMAL), [b"9" * 60 + b".99"], [b"0.01"]) == b"1" + b"0" * 60 + b".00"
    assert run(Sum(0, DECIMAL), [None]) is None
    assert run(Sum(0, DOUBLE), [b"0.5"], [b"1e20"]) == b"1e20"


@given(st.lists(st.decimals(-999, 999, places=2), min_size=1, max_size=6), st.integers(1, 7))
def test_an_average_is_rounded_half_away_from_zero_at_the_announced_scale(values, count):
    average = Average(Sum(0, DECIMAL), Folded(1, "COUNT"), 6)
    rows = [[str(value).encode(), b"%d" % count] for value in values]
    exact = sum(map(Decimal, values)) / (count * len(values))
    rounded = exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)
    assert Decimal(run(average, *rows).decode()) == rounded


def test_an_average_of_doubles_is_a_double_and_of_nothing_null():
    average = Average(Sum(0, DOUBLE), Folded(1, "COUNT"), 31)
    assert run(average, [b"1.5", b"1"], [b"2", b"3"]) == b"0.875"
    assert (average.exact(), average.cut()) == (Fraction(7, 8), b"0.875")
    assert (run(average), average.exact(), average.cut()) == (None, None, None)


NUMBER = ColumnKey(Comparison.NUMBER).decoder()


def concatenation(*, separator=b",", distinct=False, bytes_max=100):
    return GroupConcat(0, [NUMBER], separator, distinct=distinct, bytes_max=bytes_max)


def listed(found, *rows):
    for value, count, order in rows:
        found.add([value, b"%d" % len(value or b""), b"%d" % count, order], is_new=True)
    return found.finish()


def call(sql):
    found = texts(f"SELECT {sql} FROM t")
    expression = found.select.items[0].expression
    assert expression is not None
    assert expression.call is not None
    return expression.call, found


def test_values_come_in_their_order_as_often_as_there_are_rows():
    found = concatenation(separator=b"; ")
    assert listed(found, (b"x", 2, b"1"), (None, 3, b"2"), (b"y", 1, b"3")) == b"x; x; y"
    assert listed(found, (None, 1, b"1")) is None
    assert listed(found) is None


def test_equal_rows_of_several_shards_stand_side_by_side():
    assert listed(concatenation(), (b"x", 1, b"1"), (b"x", 2, b"1")) == b"x,x,x"
    assert listed(concatenation(distinct=True), (b"x", 1, b"1"), (b"x", 2, b"1")) == b"x"


@pytest.mark.parametrize("down", [False, True])
def test_a_null_in_the_order_has_no_place(down):
    decoder = ColumnKey(Comparison.NUMBER).decoder(descending=down)
    found = GroupConcat(0, [decoder], b",", distinct=False, bytes_max=100)
    assert listed(found, (b"x", 2, None), (b"x", 1, b"3")) == b"x,x,x"
    assert listed(found, (b"x", 2, b"1"), (b"y", 1, b"3")) == b"x,x,y"
    with pytest.raises(Unsupported, match="whose order is not determined"):
        listed(found, (b"x", 2, None), (b"y", 1, b"3"))
    with pytest.raises(Unsupported, match="whose order is not determined"):
        listed(found, (b"x", 2, b"1"), (b"y", 1, b"3"), (b"y", 1, None))


def test_a_text_that_a_server_would_cut_is_refused():
    assert listed(concatenation(bytes_max=5), (b"xx", 2, b"1")) == b"xx,xx"
    with pytest.raises(Unsupported, match="longer than group_concat_max_len"):
        listed(concatenation(bytes_max=4), (b"xx", 2, b"1"))


@cases(sql=str, separator=str.encode)
def test_a_separator_is_a_comma_or_what_is_given(sql, separator):
    assert separator_of(*call(sql)) == separator


def test_a_separator_that_may_be_other_bytes_is_refused():
    with pytest.raises(Unsupported, match="such a SEPARATOR"):
        separator_of(*call("GROUP_CONCAT(a ORDER BY a SEPARATOR 'ä')"))


@cases(sql=str, sentence=str)
def test_an_order_that_is_not_told_or_cannot_be_followed_is_refused(sql, sentence):
    with pytest.raises(Unsupported) as refused:
        Listed(*call(sql))
    assert sentence in str(refused.value)


NULL = (0,)


def key(*values):
    return tuple(NULL if value is None else (1, value) for value in values)


@given(st.lists(st.tuples(st.integers(0, 2), *[st.sampled_from([None, 1, 2, 3])] * 3)))
def test_each_list_meets_each_set_of_values_once_in_a_group(rows):
    lists = [(0,), (1,), (2, 0), (0, 1, 2)]
    distinct = Distinct(1, lists, memory_bytes=1 << 20)
    found: list[set[object]] = [set() for _ in lists]
    before = None
    for row in sorted(key(*row) for row in rows):
        is_same = before is not None and before[0] == row[0]
        if not is_same:
            found = [set() for _ in lists]
        news = distinct.news(row, before if is_same else None)
        for number, places in enumerate(lists):
            values = tuple(row[1:][place] for place in places)
            assert news[number] == (NULL not in values and values not in found[number])
            found[number].add(values)
        before = row
