import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import DistinctTooLarge
from streamfrom.proxy.merge.distinct import Distinct


NULL = (0,)


def key(*values):
    return tuple(NULL if value is None else (1, value) for value in values)


def test_what_is_remembered_of_a_group_is_bounded():
    distinct = Distinct(1, [(0,), (1,)], memory_bytes=1000)
    for group in range(20):
        distinct.news(key(group, 1, b"x" * 500), None)
    with pytest.raises(DistinctTooLarge):
        distinct.news(key(19, 2, b"y" * 500), key(19, 1, b"x" * 500))


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
