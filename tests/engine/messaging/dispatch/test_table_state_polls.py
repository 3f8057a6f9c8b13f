"""When the table is read, for whom, and which answer counts; receivers come and go."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Claim,
    Deliver,
    Detached,
    ReceiverReady,
    Tick,
)
from streamfrom.engine.messaging.queue.poll import Poll, PollResult
from tests.engine.messaging.job_ends import polled
from tests.engine.messaging.queue.test_shard_queue import tier
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    START_NS,
    TableRig,
    claimed,
    delivered,
    only,
)


def test_m12_the_first_receiver_causes_a_poll_and_what_it_finds_is_sent_in_batches():
    bench = TableRig(batch=2)
    poll = only(bench.post(Attached(1, None, ("id",))), Poll)
    assert poll.request.limit == 100
    claim = only(bench.post(polled("0", PollResult((tier([1, 2, 3]),)))), Claim)
    assert claim.columns == ("id",)
    assert delivered(bench.won(claim)) == {1: [1, 2]}
    assert claimed(bench.post(ReceiverReady(1))) == [[3]]


def test_m1_the_last_receiver_takes_the_cache_and_the_timers_with_it_after_a_second():
    bench = TableRig().attach(1)
    bench.due(1, time_next_ns=START_NS + 5 * SECOND_NS)
    assert bench.wake_s() == 5
    bench.post(Detached(1))
    assert (bench.state.waiting, bench.wake_s()) == (1, 1)
    assert bench.later(1) == []
    assert (bench.state.receivers, bench.state.waiting, bench.wake_s()) == (0, 0, None)


def test_who_comes_soon_after_the_last_one_needs_no_poll_for_what_is_known():
    bench = TableRig().attach(1)
    bench.post(Detached(1))
    bench.due(1)
    claim = only(bench.post(Attached(2, None, ("id",))), Claim)
    only(bench.won(claim), Deliver)
    bench.post(Detached(2))
    only(bench.post(Attached(3, None, ("id",))), Poll)


def test_who_comes_later_starts_with_a_poll():
    bench = TableRig().attach(1)
    bench.post(Detached(1))
    bench.later(1)
    bench.due(1)
    assert bench.state.waiting == 0, "nobody hears of it"
    only(bench.post(Attached(2, None, ("id",))), Poll)


def test_m1_leaving_twice_is_fine():
    bench = TableRig().attach(1)
    assert bench.post(Detached(1)) == []
    assert bench.post(Detached(1)) == []


def test_a_change_nobody_can_read_is_polled_for_once_while_a_poll_runs():
    bench = TableRig().attach(1)
    only(bench.post(Changed("0")), Poll)
    assert bench.post(Changed("0")) == []
    assert bench.post(Changed("0")) == []
    only(bench.post(polled("0", EMPTY)), Poll)
    assert bench.post(polled("0", EMPTY)) == []


def test_m11_a_poll_that_was_overtaken_sends_nothing_twice():
    bench = TableRig().attach(1)
    bench.post(Changed("0"))
    claim = only(bench.due(1), Claim)
    bench.won(claim)
    bench.post(ReceiverReady(1))
    assert bench.post(polled("0", PollResult((tier([1]),)))) == []


def test_a_clock_that_is_set_back_makes_no_poll_late():
    bench = TableRig(poll=30).attach(1)
    bench.now_ns -= 600 * SECOND_NS
    poll = only(bench.post(Tick()), Poll)
    bench.post(polled(poll.shard, EMPTY))
    assert bench.wake_s() == 30


def test_a_clock_that_loses_less_than_a_second_changes_nothing():
    bench = TableRig(poll=30).attach(1)
    bench.now_ns -= SECOND_NS
    assert bench.post(Tick()) == []
    assert bench.wake_s() == 31
