import math

import pytest

from streamfrom.proxy.execution.latency_class import (
    FIRST_TRIAL,
    LAST_TRIAL,
    QUICK_S,
    LatencyClass,
)


WAY_S = 0.002


def answered(pace, took_s, times):
    for _ in range(times):
        pace.answered(took_s, WAY_S)


def test_a_shape_is_quick_once_it_has_shown_it_often_enough():
    pace = LatencyClass()
    answered(pace, WAY_S, FIRST_TRIAL - 1)
    assert not pace.is_quick
    answered(pace, WAY_S, 1)
    assert pace.is_quick


def test_one_quick_answer_of_a_trial_says_that_the_others_had_to_queue():
    pace = LatencyClass()
    answered(pace, 1.0, FIRST_TRIAL - 1)
    answered(pace, WAY_S + QUICK_S / 2, 1)
    assert pace.is_quick


@pytest.mark.parametrize("took_s", [WAY_S + 2 * QUICK_S, math.inf])
def test_a_slow_shape_is_never_quick(took_s):
    pace = LatencyClass()
    answered(pace, took_s, 10 * FIRST_TRIAL)
    assert not pace.is_quick


def test_a_shape_that_was_slow_once_must_show_more_the_next_time():
    pace = LatencyClass()
    answered(pace, WAY_S, FIRST_TRIAL)
    pace.was_slow()
    assert not pace.is_quick
    answered(pace, WAY_S, FIRST_TRIAL)
    assert not pace.is_quick
    answered(pace, WAY_S, 3 * FIRST_TRIAL)
    assert pace.is_quick


def test_a_slow_answer_spoils_the_trial_it_falls_into():
    pace = LatencyClass()
    answered(pace, WAY_S, FIRST_TRIAL - 1)
    pace.was_slow()
    answered(pace, WAY_S, 1)
    assert not pace.is_quick


def test_however_often_a_shape_was_slow_it_can_become_quick_again():
    pace = LatencyClass()
    for _ in range(50):
        pace.was_slow()
    answered(pace, WAY_S, LAST_TRIAL)
    assert pace.is_quick
