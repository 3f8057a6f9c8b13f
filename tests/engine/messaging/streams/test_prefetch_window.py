"""The rules of a prefetch window, judged by a model in virtual time: what becomes of the work of consumers of every kind."""

import random
import statistics
from functools import partial

import pytest

from streamfrom.engine.messaging.streams.prefetch_window import (
    FIRST,
    FIRST_WATCHED,
    FLOOR_MAX,
    PrefetchWindow,
)
from tests.engine.messaging.prefetch_model import Consumer, Model


SECOND_NS = 10**9
MS_NS = 10**6


def steady(seconds):
    return lambda _: seconds


def between(low_s, high_s):
    return lambda dice: dice.uniform(low_s, high_s)


def exponential(mean_s):
    return lambda dice: dice.expovariate(1 / mean_s)


def alike(number, work_s, **options):
    return [Consumer(work_s, **options) for _ in range(number)]


def ran(model):
    """Return how long the work of *model* took; none of it was done twice."""
    took_s = model.run()
    assert set(model.worked.values()) == {1}, "worked on twice"
    return took_s


# Backlogs


@pytest.mark.parametrize(
    ("messages", "work_s", "workers", "ideal_s"),
    [
        (16, 1.0, 4, 4.0),
        (60, 0.25, 2, 7.5),
        (120, 1.0, 2, 60.0),
        (400, 0.05, 4, 5.0),
        (1000, 0.02, 4, 5.0),
        (20_000, 0.0001, 1, 2.0),
    ],
)
def test_equal_workers_finish_a_backlog_together(messages, work_s, workers, ideal_s):
    model = Model(messages, alike(workers, steady(work_s)))
    assert ran(model) == pytest.approx(ideal_s, rel=0.02)
    assert max(model.sent.values()) == 1


@pytest.mark.parametrize("early_s", [0.01, 0.1])
def test_who_connects_first_takes_no_more_of_a_short_backlog(early_s):
    first, *others = alike(4, steady(1.0), joins_s=early_s)
    first.joins_s = 0.0
    assert ran(Model(16, [first, *others])) == pytest.approx(4.0 + early_s, rel=0.02)


def test_what_a_consumer_holds_that_hangs_is_done_by_the_others():
    stuck, *others = alike(4, steady(1.0))
    stuck.is_stuck = True
    model = Model(60, [stuck, *others], ack_wait_s=10)
    assert ran(model) == pytest.approx(21.0, rel=0.02)
    assert stuck.windows[0].size == 1
    assert sum(count - 1 for count in model.sent.values()) <= FIRST + 1


@pytest.mark.parametrize("seed", range(4))
def test_eight_threads_are_kept_busy(seed):
    model = Model(1000, alike(1, between(1.0, 2.8), threads=8), seed=seed)
    assert 1000 * 1.9 / 8 / ran(model) >= 0.8


@pytest.mark.parametrize("seed", range(4))
def test_a_serial_worker_of_random_times_holds_two_to_eight(seed):
    (worker,) = alike(1, exponential(1.0))
    ran(Model(20_000, [worker], seed=seed, ack_wait_s=60))
    assert statistics.median(worker.sizes) == 2
    assert statistics.quantiles(worker.sizes, n=20)[-1] <= 8


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dispatchers", [2, 3])
def test_windows_of_several_dispatchers_drive_each_other_no_higher(dispatchers, seed):
    (worker,) = alike(1, exponential(1.0))
    ran(Model(5000, [worker], seed=seed, ack_wait_s=60, dispatchers=dispatchers))
    assert statistics.median(worker.sizes) <= 2 * dispatchers
    assert statistics.quantiles(worker.sizes, n=20)[-1] <= 12
    model = Model(1000, alike(1, between(1.0, 2.8), threads=8), dispatchers=dispatchers)
    assert 1000 * 1.9 / 8 / ran(model) >= 0.35
    assert ran(Model(60, alike(2, steady(0.25)), dispatchers=dispatchers)) <= 1.15 * 7.5


@pytest.mark.parametrize("seed", range(4))
def test_workers_of_random_times_share_a_backlog(seed):
    model = Model(400, alike(4, exponential(1.0)), seed=seed, ack_wait_s=60)
    assert ran(model) <= 1.2 * 100


@pytest.mark.parametrize("per_s", [5, 200])
def test_a_trickle_leaves_no_message_waiting(per_s):
    model = Model(20 * per_s, alike(2, steady(0.002)), per_s=per_s)
    assert ran(model) <= 20.05


def test_batches_grow_until_they_do_not_wait():
    model = Model(20_000, alike(1, steady(0.0001), batch=100))
    assert ran(model) <= 1.1 * 2.0


def test_a_worker_that_was_slow_and_is_fast_is_not_held_up():
    left = iter([5.0] * 4)
    model = Model(5_000, [Consumer(lambda _: next(left, 0.001))])
    assert ran(model) <= 20 + 1.1 * 5


class Fixed:
    """A window that stays as it is."""

    wants_backlog = False

    def __init__(self, size):
        self.size = size

    def acked(self, count, now_ns):
        """Do nothing, as the others."""

    passed = starved = lost = begin = lambda self, *_: None


def mixture(seed):
    """Return consumers of some kinds, and when they come."""
    dice = random.Random(seed)
    consumers = []
    for _ in range(dice.choice([1, 2, 4, 8])):
        mean_s = dice.choice([0.001, 0.01, 0.1, 0.5])
        threads, batch = dice.choice([(1, 1), (1, 1), (4, 1), (1, 5)])
        consumers.append(
            Consumer(
                between(0.1 * mean_s, 1.9 * mean_s),
                threads=threads,
                batch=batch,
                joins_s=dice.uniform(0, 0.2),
            )
        )
    return consumers


@pytest.mark.parametrize("seed", range(30))
def test_a_mixture_is_about_as_fast_as_with_the_best_number(seed):
    best_s = min(
        ran(Model(1000, mixture(seed), seed=seed, window=partial(Fixed, size)))
        for size in (1, 2, 4, 8, 32, 128)
    )
    took_s = ran(Model(1000, mixture(seed), seed=seed))
    assert took_s <= 1.25 * best_s + 3


# One window


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


def test_the_floor_alone_makes_no_message_wait_until_its_lease_is_written():
    window = PrefetchWindow(0, lease_delay_ns=100 * MS_NS)
    window.acked(50, 10 * MS_NS)
    window.passed(70 * MS_NS)
    assert window.size == FIRST


def test_a_lost_lease_makes_it_one_until_the_next_ack():
    window = PrefetchWindow(0)
    window.acked(50, 0)
    window.lost()
    assert window.size == 1
    window.passed(10 * SECOND_NS)
    assert window.size == 1
    window.acked(1, 20 * SECOND_NS)
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


# Another dispatcher


def test_a_window_goes_on_as_large_as_what_the_stream_took_along():
    window = PrefetchWindow(0)
    window.took_over(16)
    window.took_over(4)
    assert window.size == 16
    for moment in range(6):
        window.acked(1, moment * SECOND_NS // 4)
    assert window.size == 16


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
