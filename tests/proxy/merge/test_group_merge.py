import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.merge import group_merge
from streamfrom.proxy.merge.aggregates import count, first
from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.group_merge import (
    GroupsMerge,
    GroupSort,
    KeptGroups,
    Test as Condition,
)
from streamfrom.proxy.merge.group_query import GroupsQuery
from streamfrom.proxy.merge.ordered_merge import LimitWindow, OrderedMerge
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.proxy.merge.answers import answer, number, planned, texts


NUMBER = ColumnKey(Comparison.NUMBER)


def sorted_merge(*sorts, window=None, memory_bytes=1 << 20):
    window = window or LimitWindow()
    return GroupsMerge(
        OrderedMerge(1, [NUMBER.decoder()]),
        window,
        [first(0), count(1)],
        key_width=1,
        width=2,
        tests=(),
        sorts=[GroupSort(sort) for sort in sorts],
        kept=KeptGroups(window.reach, memory_bytes),
    )


@cases(
    symbol=str, literal=ast.literal_eval, is_float=ast.literal_eval, passing=ast.literal_eval
)
def test_a_condition_compares_values_and_null_passes_none(symbol, literal, is_float, passing):
    condition = Condition(0, symbol, literal, is_float)
    assert [v for v in (b"3", b"1", b"2.5", None) if condition.passes([v])] == passing


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60),
    st.integers(0, 9),
    st.none() | st.integers(0, 70),
)
def test_groups_are_sorted_by_all_components_and_equal_ones_stay_in_order(groups, skip, count):
    down, up = NUMBER.decoder(descending=True), NUMBER.decoder()
    window = LimitWindow(skip, count)
    merge = sorted_merge(
        lambda _key, row, _states: down(row[1][:1]),
        lambda _key, row, _states: up(row[1][1:]),
        window=window,
    )
    rows = [(n, n, 10 * a + b + 10) for n, (a, b) in enumerate(groups)]
    best = sorted(rows, key=lambda row: (-(row[2] // 10), row[2] % 10))[skip:][:count]
    assert answer(merge, rows) == [(str(n), str(value)) for n, _, value in best]


def test_of_more_groups_than_may_be_kept_a_limit_keeps_those_it_reaches():
    decode = NUMBER.decoder(descending=True)
    window = LimitWindow(5, 50)
    found = sorted_merge(
        lambda _key, row, _states: decode(row[1]), window=window, memory_bytes=20_000
    )
    rows = answer(found, [(n, n, n * 37 % 1000) for n in range(1000)])
    best = sorted(range(1000), key=[-(n * 37 % 1000) for n in range(1000)].__getitem__)[5:55]
    assert rows == [(str(n), str(n * 37 % 1000)) for n in best]


INT = FieldType.LONGLONG


def computed_merge(sql, *, memory_bytes=1 << 20, shown=None, width=3):
    """Return what a statement asks, and its merge; columns are *shown*, else decimals."""
    columns = [shown or number("x", 4)] * width
    plan = planned(GroupsQuery(texts(sql), memory_bytes), columns, ("a", "b"))
    plan.computation.type_of = lambda place: number("x", 4)
    return plan, plan.merger(1, [number("c", kind=INT)] * 9)


def feed(found, rows):
    found.feed(0, [text_row([str(value).encode() for value in row]) for row in rows])
    found.end(0)
    assert found.next_rows() == []
    assert found.is_complete


def answers(plan, found, compute):
    """Play the shard: *compute* gets a group's values; return the rows for the client."""
    rows = []
    for batch in found.computed.batches():
        groups = [parse_text_row(kept.row) for kept in batch]
        plan.computation.answer = lambda *_, groups=groups: [compute(group) for group in groups]
        rows += found.computed.answer(batch, [], [])
    rows += [row for bite in found.computed.rest() for row in bite]
    return [tuple((value or b"NULL").decode() for value in parse_text_row(row)) for row in rows]


def negated(place, of):
    return lambda values: {place: b"-" + values[of]}


def test_an_order_by_what_is_computed_comes_last():
    plan, found = computed_merge(
        "SELECT a, -COUNT(*) x FROM t GROUP BY a ORDER BY x, a DESC LIMIT 2", width=2
    )
    feed(found, [(3, 3, 7), (2, 2, 7), (1, 1, 5)])
    assert answers(plan, found, negated(1, 2)) == [("3", "-7"), ("2", "-7")]


def test_having_looks_at_what_is_computed_and_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(group_merge, "_BATCH_GROUPS", 2)
    plan, found = computed_merge(
        "SELECT a FROM t GROUP BY a HAVING -COUNT(*) < -5 LIMIT 1", width=1
    )
    feed(found, [(n, n, n) for n in range(4, 12)])
    seen = []

    def compute(values):
        seen.append(values[0])
        return {2: b"%d" % (int(values[1]) > 5)}

    assert answers(plan, found, compute) == [("6",)]
    assert seen == [b"4", b"5", b"6", b"7"]


@pytest.mark.parametrize("items", ["a, CONCAT(COUNT(*)) x", "CONCAT(COUNT(*)) x, a"])
def test_strings_are_not_sorted_by_their_bytes(items):
    with pytest.raises(
        Unsupported, match="over several shards: ORDER BY a string made of aggregates"
    ):
        computed_merge(
            f"SELECT {items} FROM t GROUP BY a ORDER BY x",
            shown=ColumnDefinition("x", type=FieldType.VAR_STRING),
            width=2,
        )
