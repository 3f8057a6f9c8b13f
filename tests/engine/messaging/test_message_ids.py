from hypothesis import given, strategies as st

from streamfrom.engine.messaging.message_ids import COUNT_BITS, MEMBER_BITS, MessageIds


STEP = 1 << COUNT_BITS + MEMBER_BITS
NOW = 1_800_000_000_000_000_000


class Moments:
    """A clock that is set."""

    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now


def test_an_id_is_the_time_to_a_millisecond_and_names_its_member():
    clock = Moments()
    (first,) = MessageIds(clock, 5).take(1)
    assert NOW - STEP < first < NOW + STEP
    assert first >> COUNT_BITS & (1 << MEMBER_BITS) - 1 == 5
    clock.now += STEP
    assert MessageIds(clock, 5).take(1)[0] - first == STEP


def test_ids_of_one_statement_follow_one_another():
    ids = MessageIds(Moments(), 1)
    ids.take(1000)
    found = ids.take(1024)
    assert found == list(range(found[0], found[0] + 1024))


def test_a_large_statement_takes_several_steps():
    found = MessageIds(Moments(), 1023).take(5000)
    assert len(set(found)) == 5000
    assert found == sorted(found)
    assert all(ident >> COUNT_BITS & 1023 == 1023 for ident in found)


def test_ids_fit_a_bigint_for_two_centuries():
    year_2250 = 280 * 365 * 86_400 * 10**9
    assert MessageIds(Moments(year_2250), 1023).take(1)[0] < 1 << 63


@given(
    st.lists(
        st.tuples(st.integers(-10 * STEP, 10 * STEP), st.integers(0, 3000), st.booleans()),
        max_size=20,
    )
)
def test_no_id_comes_twice_whatever_the_clock_does(takings):
    clock = Moments()
    members = MessageIds(clock, 1), MessageIds(clock, 2)
    taken: tuple[list[int], list[int]] = ([], [])
    for change, count, is_second in takings:
        clock.now += change
        taken[is_second].extend(members[is_second].take(count))
    both = taken[0] + taken[1]
    assert len(set(both)) == len(both)
    assert all(each == sorted(each) for each in taken)


def test_nothing_is_taken_for_nothing():
    assert MessageIds(lambda: NOW, 1).take(0) == []
