import pytest

from streamfrom.engine.messaging.gates.in_flight_limit import STANDING_NS, InFlightLimit, share


SECOND_NS = 10**9
NOW_NS = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("limit", "shares"), [(8, [3, 3, 2]), (3, [1, 1, 1]), (100, [34, 33, 33]), (7, [7])]
)
def test_the_shares_are_the_limit(limit, shares):
    assert [share(limit, len(shares), index) for index in range(len(shares))] == shares
    assert sum(shares) == limit


def test_room_is_what_is_not_in_flight():
    limit = InFlightLimit(5)
    assert [limit.room(count) for count in (0, 4, 5, 6)] == [5, 1, 0, 0]


def test_what_is_held_back_is_looked_at_four_times_a_second():
    limit = InFlightLimit(1)
    assert limit.room(1) == 0
    assert not limit.is_to_look(NOW_NS)
    assert not limit.is_to_look(NOW_NS + STANDING_NS - 1)
    assert limit.look_ns == NOW_NS + STANDING_NS
    assert limit.is_to_look(NOW_NS + STANDING_NS)
    assert not limit.is_to_look(NOW_NS + STANDING_NS + 1)
    assert limit.room(0) == 1
    assert limit.look_ns is None


def test_a_new_term_knows_nothing():
    limit = InFlightLimit(1, is_known=True, reading=5, look_ns=7)
    limit.begin()
    assert limit == InFlightLimit(1)
