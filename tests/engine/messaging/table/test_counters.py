"""Counters and histograms: what they count, and that those of several processes add up."""

import pytest

from streamfrom.engine.messaging.table.counters import BOUNDS_S, NEW_MAX, Counters, Histogram
from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey


def key(ident, time_next_ns=0):
    return MessageKey(b"%d" % ident, 50, time_next_ns)


def row(ident, *, epoch=0, time_next_ns=0):
    return ClaimedRow(b"%d" % ident, "0", epoch, time_next_ns, 99, b"")


def observed(*times_s):
    histogram = Histogram()
    for time_s in times_s:
        histogram.observe(round(time_s * 10**9))
    return histogram


def test_a_time_is_counted_in_the_first_bucket_that_holds_it():
    histogram = observed(0, 0.001, 0.0011, 3600, 3601)
    assert histogram.counts[0] == 2
    assert histogram.counts[1] == 1
    assert histogram.counts[-2:] == [1, 1]
    assert histogram.total == 5


def test_a_clock_that_was_set_back_counts_as_no_time():
    histogram = observed(-5)
    assert (histogram.counts[0], histogram.sum_ns) == (1, 0)


def test_a_quantile_lies_within_its_bucket():
    histogram = Histogram()
    assert histogram.quantile_s(0.5) is None
    histogram.observe(3 * 10**6, 100)
    assert histogram.quantile_s(0.5) == pytest.approx(0.0035)
    assert repr(histogram.quantile_s(0.99)) == "0.00497", "no dust of binary fractions"
    assert histogram.quantile_s(1) == 0.005
    assert observed(10**6).quantile_s(0.5) == BOUNDS_S[-1]
    mixed = Histogram()
    mixed.observe(0, 99)
    mixed.observe(10**10, 1)
    assert mixed.quantile_s(0.5) == pytest.approx(0.001 * 50 / 99, abs=1e-9)
    assert mixed.quantile_s(0.995) == pytest.approx(7.5)


def test_a_message_is_late_from_its_time_or_from_its_commit():
    counters = Counters()
    counters.has_new([key(1), key(2), key(3, 50)], 100)
    counters.has_sent([row(1), row(3, time_next_ns=50), row(9)], 160)
    assert counters.delivered == 3
    assert counters.delivery_latency.total == 2
    assert counters.delivery_latency.sum_ns == (160 - 100) + (160 - 50)
    assert counters.redelivered == 0


def test_a_new_message_that_was_rescheduled_counts_by_its_time_alone():
    counters = Counters()
    counters.has_new([key(1)], 1)
    counters.has_sent([row(1, time_next_ns=40)], 50)
    assert counters.delivery_latency.sum_ns == 10
    assert counters.oldest_new_ns(lambda _: True) is None


def test_the_oldest_new_message_is_one_that_still_waits():
    counters = Counters()
    counters.has_new([key(1)], 10)
    counters.has_new([key(2), key(3)], 20)
    assert counters.oldest_new_ns(lambda ident: ident != b"1") == 20
    assert counters.oldest_new_ns(lambda ident: ident == b"3") == 20
    assert counters.oldest_new_ns(lambda _: False) is None
    assert counters.oldest_new_ns(lambda _: True) is None


def test_of_more_new_messages_than_it_keeps_the_oldest_ones_are_forgotten():
    counters = Counters()
    counters.has_new([key(ident) for ident in range(NEW_MAX)], 10)
    counters.has_new([key(NEW_MAX)], 20)
    counters.has_sent([row(0), row(NEW_MAX // 2)], 30)
    assert counters.delivery_latency.total == 0
    counters.has_sent([row(NEW_MAX - 1)], 30)
    assert counters.delivery_latency.total == 1
    counters.forget_new()
    assert counters.oldest_new_ns(lambda _: True) is None
