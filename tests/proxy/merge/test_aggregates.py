from decimal import ROUND_HALF_UP, Decimal

from hypothesis import given, strategies as st

from streamfrom.proxy.merge.aggregates import (
    Average,
    Count,
    Sum,
)
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition


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
    average = Average(Sum(0, DECIMAL), Count(1), 6)
    rows = [[str(value).encode(), b"%d" % count] for value in values]
    exact = sum(map(Decimal, values)) / (count * len(values))
    rounded = exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)
    assert Decimal(run(average, *rows).decode()) == rounded


def test_an_average_of_doubles_is_a_double_and_of_nothing_null():
    average = Average(Sum(0, DOUBLE), Count(1), 31)
    assert run(average, [b"1.5", b"1"], [b"2", b"3"]) == b"0.875"
    assert run(average) is None
