"""Ids of messages: what is in one, that none comes twice, and what becomes of a member that needs many."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.table.message_ids import (
    COUNT_BITS,
    COUNTS,
    EPOCH_NS,
    LEAD_STEPS,
    MEMBERS_MAX,
    STEP_NS,
    MessageIds,
    find_rounded,
    first_id,
    time_of,
)


NOW = 1_800_000_000_000_000_000
YEAR_NS = 365 * 86_400 * 10**9


class Moments:
    """A clock that is set, and one that goes on."""

    def __init__(self, now=NOW):
        self.now = now
        self.steady = 5

    def pass_by(self, ns):
        self.now += ns
        self.steady += ns

    def ids(self, member=1):
        return MessageIds(lambda: self.now, lambda: self.steady, member)


def taken(clock, ids, count):
    """Take as a session does, which waits for those that are not there yet."""
    found: list[int] = []
    while missing := count - len(found):
        some = ids.take(min(missing, COUNTS))
        if not some:
            assert ids.wait_ns() > 0
            clock.pass_by(ids.wait_ns())
        found += some
    return found


@pytest.mark.parametrize("member", [1, 5, MEMBERS_MAX])
def test_an_id_is_the_time_in_steps_the_members_number_and_a_count(member):
    clock = Moments()
    ids = clock.ids(member)
    clock.pass_by(STEP_NS * (LEAD_STEPS + 1))
    first, second = ids.take(2)
    step = (clock.now - EPOCH_NS) // STEP_NS
    assert first == step << 16 | member % MEMBERS_MAX << 10
    assert second == first + 1
    assert time_of(second) == clock.now - clock.now % STEP_NS
    assert first_id(clock.now) <= first < first_id(clock.now + STEP_NS)


@pytest.mark.parametrize("now", [0, NOW, EPOCH_NS + 43 * YEAR_NS])
def test_64_members_have_parts_of_their_own_of_what_a_double_keeps_for_forty_years(now):
    clock = Moments(now)
    found = [taken(clock, clock.ids(member), COUNTS) for member in range(1, 65)]
    assert len({ids[0] >> COUNT_BITS & 63 for ids in found}) == MEMBERS_MAX == 64
    assert 0 < min(map(min, found)) <= max(map(max, found)) < 1 << 53


def test_others_have_ids_while_one_waits_for_many():
    clock = Moments()
    ids = clock.ids()
    taken(clock, ids, 1000)
    while ids.take(1000):
        pass
    assert ids.take(20), "24 are left in the step"


@given(st.integers(0, 30 * COUNTS), st.integers(0, 20 * STEP_NS))
def test_who_takes_over_a_number_at_once_repeats_no_id(count, later_ns):
    clock = Moments()
    before = taken(clock, clock.ids(), count)
    # Before the former one ended it took all that it could.
    clock.pass_by(later_ns)
    after = taken(clock, clock.ids(), 2 * COUNTS)
    assert not set(before) & set(after)


@given(
    st.lists(
        st.tuples(
            st.integers(-(10**9), 10**9),
            st.integers(0, 10**8),
            st.integers(0, 3000),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_no_id_comes_twice_whatever_the_clock_does(takings):
    clock = Moments()
    members = clock.ids(1), clock.ids(2)
    found: tuple[list[int], list[int]] = ([], [])
    for change, passes, count, is_second in takings:
        clock.now += change
        clock.pass_by(passes)
        found[is_second].extend(taken(clock, members[is_second], count))
    both = found[0] + found[1]
    assert len(set(both)) == len(both)
    assert all(each == sorted(each) for each in found)


def test_a_clock_that_is_set_back_by_a_day_keeps_nobody_waiting():
    clock = Moments()
    ids = clock.ids()
    taken(clock, ids, 1)
    clock.now -= 86_400 * 10**9
    start = clock.steady
    found = taken(clock, ids, 40 * COUNTS)
    assert len(set(found)) == 40 * COUNTS
    assert clock.steady - start <= 40 * STEP_NS


BEYOND = st.integers(2**53 + 1, 2**64 - 1)


def by_digits(ident):
    return int(float(ident))


def by_javascript(ident):
    """Return what `String(ident)` is in Node: `String(72057594037927943)` is 72057594037927940."""
    digits, _, exponent = repr(float(ident)).partition("e")
    whole, _, fraction = digits.partition(".")
    return (
        int((whole + fraction.rstrip("0")).ljust(int(exponent or 0) + 1, "0"))
        if exponent
        else int(whole)
    )


@pytest.mark.parametrize("spell", [by_digits, by_javascript])
@given(ident=BEYOND, others=st.lists(BEYOND))
def test_a_rounded_id_is_found_and_a_right_one_is_none(spell, ident, others):
    rounded = spell(ident)
    in_flight = [b"%d" % one for one in (*others, ident)]
    found = find_rounded((5, rounded), in_flight)
    if rounded in (ident, *others) or rounded >= 2**64:
        assert found is None
    else:
        assert found is not None
        assert found[0] == rounded
        assert float(found[1]) == float(rounded)
    assert find_rounded((5, rounded), [b"%d" % rounded, *in_flight]) is None


def test_other_ids_are_none():
    # A neighbour with the same double, of which no driver makes this number; and what is no double at all.
    assert find_rounded((2**60 + 77,), [b"%d" % (2**60 + 78)]) is None
    assert (
        find_rounded(
            (10**400, -(2**60), 2**53 - 1), [b"9" * 400, b"'x'", b"-5", b"9007199254740993"]
        )
        is None
    )
