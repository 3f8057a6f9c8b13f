from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from hypothesis import given, strategies as st

from streamfrom.proxy.merge.aggregates import (
    Average,
    Extreme,
    Folded,
    Sum,
)
from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from tests.cases import cases


DECIMAL = ColumnDefinition("x", type=FieldType.NEWDECIMAL, decimals=2)
DOUBLE = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=31)


def run(accumulator, *rows, is_new=True):
    for row in rows:
        accumulator.add(list(row), is_new=is_new)
    return accumulator.finish()


@cases(function=str, expected=str.encode, nothing=str.encode)
def test_bits_are_combined_and_begin_anew_with_each_group(function, expected, nothing):
    bits = Folded(0, function)
    assert run(bits, [b"12"], [None], [b"10"]) == expected
    assert run(bits) == nothing


def test_a_sum_is_exact_and_null_without_values():
    assert run(Sum(0, DECIMAL), [b"0.10"], [b"0.20"], [None]) == b"0.30"
    assert run(Sum(0, DECIMAL), [b"9" * 60 + b".99"], [b"0.01"]) == b"1" + b"0" * 60 + b".00"
    assert run(Sum(0, DECIMAL), [None]) is None


def test_a_sum_of_doubles_is_a_double():
    assert run(Sum(0, DOUBLE), [b"0.5"], [b"1e20"]) == b"1e20"


@given(st.lists(st.decimals(-999, 999, places=2), min_size=1, max_size=6), st.integers(1, 7))
def test_an_average_is_rounded_half_away_from_zero_at_the_announced_scale(values, count):
    average = Average(Sum(0, DECIMAL), Folded(1, "COUNT"), 6)
    rows = [[str(value).encode(), b"%d" % count] for value in values]
    exact = sum(map(Decimal, values)) / (count * len(values))
    rounded = exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)
    assert Decimal(run(average, *rows).decode()) == rounded


def test_an_average_of_floats_has_the_digits_it_shows():
    average = Average(Sum(0, DOUBLE), Folded(1, "COUNT"), 31)
    assert run(average, [b"1", b"4"]) == average.cut() == b"0.25"


def test_extremes_compare_by_their_key_and_skip_null():
    decode = ColumnKey(Comparison.STRING, b"0020").decoder()
    rows = [[b"a", b"0041"], [None, None], [b"B", b"0042"]]
    smallest, largest = (
        Extreme(0, 1, decode, largest=False),
        Extreme(0, 1, decode, largest=True),
    )
    assert run(smallest, *rows) == b"a"
    assert run(largest, *rows) == b"B"
    assert smallest.key < largest.key
    assert run(smallest, [None, None]) is None
    assert smallest.key == (0,)


def test_an_average_of_doubles_is_a_double_and_of_nothing_null():
    average = Average(Sum(0, DOUBLE), Folded(1, "COUNT"), 31)
    assert run(average, [b"1.5", b"1"], [b"2", b"3"]) == b"0.875"
    assert (average.exact(), average.cut()) == (Fraction(7, 8), b"0.875")
    assert (run(average), average.exact(), average.cut()) == (None, None, None)
