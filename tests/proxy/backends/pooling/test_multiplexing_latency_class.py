import math

import pytest

from streamfrom.proxy.backends.pooling.multiplexing import FIRST_TRIAL, QUICK_S, LatencyClass


WAY_S = 0.002


def answered(latency, took_s, times):
    for _ in range(times):
        latency.answered(took_s, WAY_S)


def test_a_shape_is_quick_once_it_has_shown_it_often_enough():
    latency = LatencyClass()
    answered(latency, WAY_S, FIRST_TRIAL - 1)
    assert not latency.is_quick
    answered(latency, WAY_S, 1)
    assert latency.is_quick


@pytest.mark.parametrize("took_s", [WAY_S + 2 * QUICK_S, math.inf])
def test_a_slow_shape_is_never_quick(took_s):
    latency = LatencyClass()
    answered(latency, took_s, 10 * FIRST_TRIAL)
    assert not latency.is_quick


def test_a_shape_that_was_slow_once_must_show_more_the_next_time():
    latency = LatencyClass()
    answered(latency, WAY_S, FIRST_TRIAL)
    latency.was_slow()
    assert not latency.is_quick
    answered(latency, WAY_S, FIRST_TRIAL)
    assert not latency.is_quick
    answered(latency, WAY_S, 3 * FIRST_TRIAL)
    assert latency.is_quick
