from hypothesis import given, strategies as st

from streamfrom.engine.messaging.queue.lanes import KeyTurns, Tier
from streamfrom.engine.messaging.table.message import MessageKey


NOW_NS = 1000


def tier(key, *moments):
    made = Tier()
    for number, time_next_ns in enumerate(moments):
        one = MessageKey(b"%d" % (key[0] * 100 + number), 50, time_next_ns, key)
        made.lane(one).keys.add(one)
    return made


def taken(turns, lines, room):
    found = turns.take(lines, room, NOW_NS, newest=False)
    return [(one.key.decode(), int(one.id) % 100) for one in found]


def test_a_new_key_goes_first_and_one_that_is_forgotten_is_new():
    turns = KeyTurns()
    lines = {key: (tier(key, 0, 0),) for key in (b"a", b"b")}
    taken(turns, lines, 2)
    lines[b"z"] = (tier(b"z", 0),)
    assert taken(turns, lines, 1) == [("z", 0)]
    turns.keep({b"a"})
    assert taken(turns, lines, 1)[0][0] == "b"


@given(
    st.dictionaries(st.sampled_from([b"a", b"b", b"c", b"d"]), st.integers(0, 9)),
    st.integers(1, 20),
)
def test_shares_are_equal_but_for_who_has_less(counts, room):
    lines = {key: (tier(key, *[0] * count),) for key, count in counts.items()}
    found = [one.key for one in KeyTurns().take(lines, room, NOW_NS, newest=False)]
    assert len(found) == min(room, sum(counts.values()))
    for key, count in counts.items():
        for other in counts:
            assert found.count(key) >= min(count, found.count(other) - 1)
