import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge import group_merge
from streamfrom.proxy.merge.aggregates import Average, Distinct, First, Folded, Sum
from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.group_merge import (
    GroupsMerge,
    GroupSort,
    Test as Condition,
    WaitingGroup,
    sorted_in_bites,
)
from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import answer


NUMBER = ColumnKey(Comparison.NUMBER)


def merge(count, window=None, tests=(), sorts=(), memory_bytes=1 << 20):
    return GroupsMerge(
        OrderedMerge(count, [NUMBER.decoder()]),
        window or LimitWindow(),
        [First(0), Folded(1, "COUNT")],
        Distinct(1),
        width=2,
        tests=tests,
        sorts=sorts,
        memory_bytes=memory_bytes,
    )


@pytest.mark.parametrize(
    ("comparison", "symbol", "literal", "passing"),
    [
        (Comparison.NUMBER, ">", 2, [b"3", b"2.5"]),
        (Comparison.NUMBER, "=", "2.50", [b"2.5"]),
        (Comparison.NUMBER, "<=", "25e-1", [b"1", b"2.5"]),
        (Comparison.DOUBLE, "<>", 1, [b"3", b"2.5"]),
        (Comparison.TEXT, "IS NULL", None, [None]),
        (Comparison.TEXT, "IS NOT NULL", None, [b"3", b"1", b"2.5"]),
    ],
)
def test_a_condition_compares_values_and_null_passes_none(comparison, symbol, literal, passing):
    condition = Condition(0, comparison, symbol, literal)
    assert [v for v in (b"3", b"1", b"2.5", None) if condition.passes([v])] == passing


def test_a_condition_that_compares_texts_with_a_number_is_refused():
    with pytest.raises(Unsupported, match="HAVING that compares no numbers"):
        Condition(0, Comparison.TEXT, ">", 2)


@pytest.mark.parametrize(
    ("total", "count", "literal", "passes"),
    [
        (4, 3, "1.3332", True),
        (4, 3, "1.3334", False),
        (4, 3, "1.333e0", True),
        (3, 2, "1.5", False),
        (-4, 3, "-1.3332", False),
        (None, 0, 1, False),
    ],
)
def test_an_average_is_compared_before_and_after_it_is_rounded(total, count, literal, passes):
    average = Average(Sum(0, ColumnDefinition("s", decimals=0)), Folded(1, "COUNT"), 4)
    average.add([None if total is None else b"%d" % total, b"%d" % count], is_new=True)
    condition = Condition(0, Comparison.NUMBER, ">", literal)
    assert condition.passes([average.finish()], [average]) is passes


@pytest.mark.parametrize(
    ("total", "count", "symbol", "literal"),
    [
        (4, 3, ">", "1.3333"),
        (4, 3, "=", "1.3333"),
        (2, 3, "<", "0.66667"),
        (-4, 3, "<", "-1.3333"),
        (10**10 + 1, 10**10, ">", 1),
    ],
)
def test_where_rounding_an_average_decides_nothing_is_said(total, count, symbol, literal):
    average = Average(Sum(0, ColumnDefinition("s", decimals=0)), Folded(1, "COUNT"), 4)
    average.add([b"%d" % total, b"%d" % count], is_new=True)
    condition = Condition(0, Comparison.NUMBER, symbol, literal)
    with pytest.raises(Unsupported, match="HAVING an AVG that is so near"):
        condition.passes([average.finish()], [average])


def test_more_groups_than_may_be_sorted_are_an_error():
    sorts = [GroupSort(lambda key, _: key[0], descending=True)]
    found = merge(1, sorts=sorts, memory_bytes=1000)
    with pytest.raises(MergeTooLarge) as refused:
        answer(found, [(n, n, 1) for n in range(100)])
    assert refused.value.wire_code() == (1038, "HY001")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 7),
    st.integers(1, 7),
)
def test_a_sort_in_bites_is_a_sort_by_all_components(values, directions, at_once, bite_groups):
    kept = [WaitingGroup(b"%d" % n, ((1, a), (1, b))) for n, (a, b) in enumerate(values)]
    expected = list(kept)
    expected.sort(key=lambda each: each.order[0], reverse=directions[0])
    expected.sort(key=lambda each: each.order[1], reverse=directions[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_merge, "_SORTED_AT_ONCE", at_once)
        patch.setattr(group_merge, "BITE_GROUPS", bite_groups)
        bites = list(sorted_in_bites(kept, directions))
    assert [each for bite in bites for each in bite] == expected
    assert all(len(bite) <= bite_groups for bite in bites)


def test_a_far_limit_keeps_no_more_groups_than_it_reaches_while_it_sorts_in_bites(monkeypatch):
    monkeypatch.setattr(group_merge, "_SLACK_GROUPS", 10)
    monkeypatch.setattr(group_merge, "_SORTED_AT_ONCE", 20)
    monkeypatch.setattr(group_merge, "BITE_GROUPS", 7)
    decode = NUMBER.decoder()
    sorts = [GroupSort(lambda _, row: decode(row[1]), descending=True)]
    found = merge(1, LimitWindow(5, 50), sorts=sorts)
    rows = answer(found, [(n, n, n * 37 % 1000) for n in range(1000)])
    best = sorted(range(1000), key=[-(n * 37 % 1000) for n in range(1000)].__getitem__)[5:55]
    assert rows == [(str(n), str(n * 37 % 1000)) for n in best]
