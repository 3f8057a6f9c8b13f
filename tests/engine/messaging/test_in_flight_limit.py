import pytest

from streamfrom.engine.messaging.in_flight_limit import (
    STANDING_NS,
    InFlightLimit,
    fault,
    is_lease,
    share,
)
from streamfrom.engine.messaging.retry_limit import PARKED_NS
from streamfrom.engine.messaging.table_settings import parse_comment


COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=10000,vt_poller_interval=30"
)
SECOND_NS = 10**9
NOW_NS = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("limit", "shares"), [(8, [3, 3, 2]), (3, [1, 1, 1]), (100, [34, 33, 33]), (7, [7])]
)
def test_the_shares_are_the_limit(limit, shares):
    assert [share(limit, len(shares), index) for index in range(len(shares))] == shares
    assert sum(shares) == limit


def test_a_limit_below_the_number_of_shards_says_why_not():
    properties = parse_comment(f"{COMMENT},vt_max_in_flight=3")
    assert fault(properties, 3) is None
    assert "must be at least 4, not '3'" in (fault(properties, 4) or "")
    assert fault(parse_comment(COMMENT), 4) is None


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


@pytest.mark.parametrize(
    ("epoch", "wait_s", "found"),
    [
        (0, 20, False),  # scheduled for later, and never sent
        (1, 20, True),
        (1, 0, False),
        (1, 40, True),
        (1, 41, False),  # longer than a first send says: rescheduled
        (2, 41, True),
        (2, 81, False),
        (1000, 3600, True),
    ],
)
def test_a_row_that_was_sent_and_waits_no_longer_than_a_lease_is_in_flight(
    epoch, wait_s, found
):
    properties = parse_comment(COMMENT)
    assert is_lease(properties, epoch, NOW_NS + wait_s * SECOND_NS, NOW_NS) is found


def test_a_parked_row_is_not_in_flight():
    assert not is_lease(parse_comment(COMMENT), 1000, PARKED_NS, NOW_NS)
