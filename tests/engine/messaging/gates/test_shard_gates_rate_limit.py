"""A token bucket on a virtual clock."""

import random
from bisect import bisect_left

import pytest

from streamfrom.engine.messaging.gates.shard_gates import CLAIM_NS, DEPTH_NS, RateLimit
from streamfrom.engine.messaging.table.table_settings import RATE_UNIT


SECOND_NS = 10**9
START_NS = 1_700_000_000 * SECOND_NS


def bucket(rate, shards=1):
    limit = RateLimit(round(rate * RATE_UNIT), shards)
    limit.begin(START_NS)
    return limit


def drained(limit, seconds, *, claim_ns=lambda: 0, most=1000):
    """Send all that may be sent, one claim at a time; return when each message was sent."""
    sent, now_ns = [], START_NS
    while now_ns < START_NS + seconds * SECOND_NS:
        count = min(limit.room(0, now_ns), most)
        if not count:
            now_ns = max(limit.next_ns(0, now_ns), now_ns + 1)
            continue
        assert limit.room(count, now_ns) == 0 or count == most
        now_ns += claim_ns()
        limit.sent(count, now_ns)
        sent += [now_ns] * count
    return sent


def most_in(sent, window_ns):
    """Return the largest count in any window, its end left out."""
    return max(bisect_left(sent, start_ns + window_ns) - at for at, start_ns in enumerate(sent))


@pytest.mark.parametrize("rate", [500, 5, 0.5, 1234.567, 33.3])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_backlog_goes_at_the_rate_exactly(rate, shards):
    own = rate / shards
    sent = drained(bucket(rate, shards), 10)
    assert abs(len(sent) - 10 * own) <= max(1, own / 100)
    assert most_in(sent, SECOND_NS) <= max(own * 1.1, own + 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [500, 40, 7])
def test_slow_claims_neither_lose_nor_make_messages(rate, seed):
    dice = random.Random(seed)
    sent = drained(bucket(rate), 20, claim_ns=lambda: dice.randrange(CLAIM_NS // 2))
    assert 20 * rate * 0.99 - 1 <= len(sent) <= 20 * rate + 1
    for seconds in (1, 2, 5):
        allowed = (
            rate * seconds + max(1, rate * DEPTH_NS / SECOND_NS) + rate * CLAIM_NS / SECOND_NS
        )
        assert most_in(sent, seconds * SECOND_NS) <= allowed
    if rate >= 20:
        assert most_in(sent, SECOND_NS) <= rate * 1.1


def test_claims_that_stand_still_make_no_burst():
    limit = bucket(100)
    now_ns = START_NS + 60 * SECOND_NS
    assert limit.room(0, now_ns) == 5
    assert limit.room(5, now_ns + 60 * SECOND_NS) == 5
    assert limit.room(10, now_ns + 120 * SECOND_NS) == 0
    limit.sent(10, now_ns + 120 * SECOND_NS)
    assert limit.room(0, now_ns + 120 * SECOND_NS) == 0
    assert limit.room(0, now_ns + 180 * SECOND_NS) == 5


def test_one_a_day_is_no_less():
    limit = RateLimit(round(RATE_UNIT / 86_400), 1)
    limit.begin(START_NS)
    assert limit.next_ns(0, START_NS) - START_NS == pytest.approx(86_400 * SECOND_NS, rel=0.05)
