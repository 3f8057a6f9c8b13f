import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison
from streamfrom.proxy.merge.ordered_merge import (
    TAKEN_ROWS_MAX,
    LimitWindow,
    OrderedMerge,
    key_reader,
)
from streamfrom.proxy.wire.resultset import text_row
from streamfrom.sqlparse_ext.errors import Unsupported


NUMBER = ColumnKey(Comparison.NUMBER)


def row(key, value):
    return text_row([None if key is None else b"%d" % key, value])


def test_a_long_key_is_read_whole():
    read = key_reader([ColumnKey(Comparison.BYTES).decoder()])
    key, _ = read(text_row([b"k" * 70_000, b"v"]))
    assert key == ((1, b"k" * 70_000),)


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=12), min_size=1, max_size=5
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_however_the_rows_come_they_leave_once_and_in_order(sources, descending, dice):
    decode = NUMBER.decoder(descending=descending)
    as_text = lambda n: None if n is None else b"%d" % n  # noqa: E731
    ordered = [sorted(each, key=lambda n: decode(as_text(n))) for each in sources]
    waiting = [[row(n, b"x") for n in each] for each in ordered]
    merge = OrderedMerge(len(sources), [decode])
    keys = []
    left = set(range(len(sources)))
    while left:
        source = dice.choice(sorted(left))
        count = dice.randrange(4)
        merge.add_rows(source, waiting[source][:count])
        del waiting[source][:count]
        if not waiting[source]:
            merge.end_source(source)
            left.discard(source)
        keys += merge.next_rows()[0]
    assert merge.is_complete
    assert not any(merge.waiting_bytes)
    every = [n for each in sources for n in each]
    assert keys == sorted((decode(as_text(n)),) for n in every)


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=1500), min_size=1, max_size=3),
    st.sampled_from([True, False]),
)
def test_no_take_gives_more_than_its_share_and_none_of_it_comes_too_late(sources, is_ordered):
    merge = OrderedMerge(len(sources), [NUMBER.decoder()] if is_ordered else [])
    for source, numbers in enumerate(sources):
        ordered = sorted(numbers) if is_ordered else numbers
        merge.add_rows(source, [row(n, b"x") if is_ordered else b"x" for n in ordered])
        merge.end_source(source)
    keys = []
    while not merge.is_complete:
        taken, rows = merge.next_rows()
        assert len(taken if is_ordered else rows) <= TAKEN_ROWS_MAX
        assert merge.has_more or merge.is_complete
        keys += taken
    assert not merge.has_more
    assert len(keys) == sum(map(len, sources))
    assert keys == sorted(keys)


def test_a_source_out_of_order_is_an_error_and_no_wrong_answer():
    merge = OrderedMerge(1, [NUMBER.decoder()])
    merge.add_rows(0, [row(5, b"a")])
    merge.next_rows()
    with pytest.raises(Unsupported, match="sorts differently"):
        merge.add_rows(0, [row(4, b"b")])


@given(
    st.integers(0, 10), st.one_of(st.none(), st.integers(0, 10)), st.lists(st.integers(0, 5))
)
def test_a_window_is_a_slice_however_the_rows_come(offset, count, sizes):
    window = LimitWindow(offset, count)
    rows = [b"%d" % n for n in range(sum(sizes))]
    passed = []
    for size in sizes:
        passed += window.cut(rows[:size])
        del rows[:size]
    everything = [b"%d" % n for n in range(sum(sizes))]
    assert passed == everything[offset : None if count is None else offset + count]
    assert window.reach == (None if count is None else offset + count)
    assert not window.is_shut or count is not None
