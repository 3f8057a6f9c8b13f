"""When the table is read, for whom, and which answer counts; receivers come and go."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Claim,
    Deliver,
    Detached,
    Tick,
)
from streamfrom.engine.messaging.queue.poll import Poll
from tests.engine.messaging.job_ends import polled
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    TableRig,
    only,
)


def test_who_comes_soon_after_the_last_one_needs_no_poll_for_what_is_known():
    bench = TableRig().attach(1)
    bench.post(Detached(1))
    bench.due(1)
    claim = only(bench.post(Attached(2, None, ("id",))), Claim)
    only(bench.won(claim), Deliver)
    bench.post(Detached(2))
    only(bench.post(Attached(3, None, ("id",))), Poll)


def test_m1_leaving_twice_is_fine():
    bench = TableRig().attach(1)
    assert bench.post(Detached(1)) == []
    assert bench.post(Detached(1)) == []


def test_a_clock_that_is_set_back_makes_no_poll_late():
    bench = TableRig(poll=30).attach(1)
    bench.now_ns -= 600 * SECOND_NS
    poll = only(bench.post(Tick()), Poll)
    bench.post(polled(poll.shard, EMPTY))
    assert bench.wake_s() == 30
