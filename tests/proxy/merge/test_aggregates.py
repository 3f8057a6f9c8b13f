from decimal import ROUND_HALF_UP, Decimal

from hypothesis import given, strategies as st

from streamfrom.proxy.merge.aggregates import average, total
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition


DECIMAL = ColumnDefinition("x", type=FieldType.NEWDECIMAL, decimals=2)
DOUBLE = ColumnDefinition("x", type=FieldType.DOUBLE, decimals=31)


def run(fold, *rows):
    state = fold.start
    for row in rows:
        state = fold.step(state, list(row), True)
    return fold.end(state)


def test_a_sum_is_exact_and_null_without_values_and_of_doubles_a_double():
    assert run(total(0, DECIMAL), [b"0.10"], [b"0.20"], [None]) == b"0.30"
    assert run(total(0, DECIMAL), [b"9" * 60 + b".99"], [b"0.01"]) == b"1" + b"0" * 60 + b".00"
    assert run(total(0, DECIMAL), [None]) is None
    assert run(total(0, DOUBLE), [b"0.5"], [b"1e20"]) == b"1e20"


@given(st.lists(st.decimals(-999, 999, places=2), min_size=1, max_size=6), st.integers(1, 7))
def test_an_average_is_rounded_half_away_from_zero_at_the_announced_scale(values, count):
    rows = [[str(value).encode(), b"%d" % count] for value in values]
    exact = sum(map(Decimal, values)) / (count * len(values))
    rounded = exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)
    assert Decimal(run(average(0, DECIMAL, 6), *rows).decode()) == rounded


def test_an_average_of_doubles_is_a_double_and_of_nothing_null():
    of_doubles = average(0, DOUBLE, 31)
    assert run(of_doubles, [b"1.5", b"1"], [b"2", b"3"]) == b"0.875"
    assert run(of_doubles) is None
