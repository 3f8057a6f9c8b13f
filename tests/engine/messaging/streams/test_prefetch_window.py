"""One window; what becomes of the work of consumers of every kind is in tests/sim/test_workers.py."""

import pytest

from streamfrom.engine.messaging.streams.prefetch_window import (
    FIRST,
    FIRST_WATCHED,
    FLOOR_MAX,
    PrefetchWindow,
)


SECOND_NS = 10**9
MS_NS = 10**6


def test_it_begins_small_and_for_a_person_with_more():
    assert PrefetchWindow(0).size == FIRST == 2
    assert PrefetchWindow(0, first=FIRST_WATCHED).size == 100


def test_the_floor_is_what_was_acked_in_the_last_half_second():
    window = PrefetchWindow(0)
    window.acked(50, 10 * MS_NS)
    assert window.size == 50
    window.passed(400 * MS_NS)
    assert window.size == 50
    window.passed(600 * MS_NS)
    assert window.size == FIRST
    window.acked(5000, 700 * MS_NS)
    assert window.size == FLOOR_MAX


def test_acks_by_a_clock_that_was_set_back_since_leave_no_floor():
    window = PrefetchWindow(0)
    window.acked(50, 3600 * SECOND_NS)
    window.clock_set_back()
    for second in range(1, 50):
        window.acked(1, second * SECOND_NS)
    assert window.size == FIRST


def test_the_floor_alone_makes_no_message_wait_until_its_lease_is_written():
    window = PrefetchWindow(0, lease_delay_ns=100 * MS_NS)
    window.acked(50, 10 * MS_NS)
    window.passed(70 * MS_NS)
    assert window.size == FIRST


def test_it_is_tried_larger_only_while_the_backlog_is_twice_what_all_streams_may_hold():
    for backlog, size in ((3, FIRST), (4, 2 * FIRST)):
        window = PrefetchWindow(0)
        for second in range(20):
            window.acked(1, second * SECOND_NS)
            if window.wants_backlog:
                window.begin(backlog, FIRST)
                break
        assert window.size == size


@pytest.mark.parametrize(
    ("is_part", "rate", "is_kept"),
    [(False, 1.3, False), (False, 1.4, True), (True, 1.7, False), (True, 1.8, True)],
)
def test_a_larger_window_stays_if_its_acks_come_faster(is_part, rate, is_kept):
    window, now_ns, pace_ns = PrefetchWindow(0, is_part=is_part), 0, SECOND_NS
    first = window.size
    for _ in range(80):
        now_ns += pace_ns
        window.acked(1, now_ns)
        if window.wants_backlog and window.size == first:
            window.begin(100, first)
        elif window.wants_backlog:
            break
        pace_ns = round(SECOND_NS / rate) if window.size == 2 * first else SECOND_NS
    assert (window.size == 2 * first) is is_kept


# Another dispatcher


@pytest.mark.parametrize("is_part", [False, True])
def test_what_was_taken_along_by_the_floor_is_no_base(is_part):
    window = PrefetchWindow(0, is_part=is_part)
    first = window.size
    window.took_over(100)
    window.acked(49, MS_NS)
    assert window.size == 100
    window.acked(1, 2 * MS_NS)
    assert window.size == 50
    window.passed(SECOND_NS)
    assert window.size == first
