"""Nothing is sent faster than vt_max_rate says, and nothing that may be sent waits."""

from streamfrom.engine.messaging.dispatch.events import (
    Reconfigured,
)
from tests.engine.messaging.dispatch.test_held_messages import Rig
from tests.engine.messaging.job_ends import leases_found
from tests.engine.messaging.table_rig import SECOND_NS, claimed, table


def limited(rate, **options):
    return Rig(more=f",vt_max_rate={rate}", **options).joined(1, prefetch=0)


def drained(rig, seconds):
    """Return when each message is sent, in seconds, by ticks at the moments that the state asks for alone."""
    end_ns = rig.now_ns + round(seconds * SECOND_NS)
    start_ns, ticks = rig.now_ns, 0
    sent: list[float] = []
    while (wake_s := rig.wake_s()) is not None and rig.now_ns + wake_s * SECOND_NS <= end_ns:
        ticks += 1
        assert ticks < 3 * (len(sent) + 10), "it wakes for nothing"
        for ids in rig.run(rig.later(max(0, wake_s))).values():
            sent += [(rig.now_ns - start_ns) / SECOND_NS] * len(ids)
    return sent


def test_a_backlog_goes_at_the_rate_and_wakes_for_each_message_once():
    rig = limited(5, cache=1000)
    assert rig.run(rig.due(*range(100))) == {}
    sent = drained(rig, 10)
    assert [round(moment, 6) for moment in sent] == [
        round(0.2 * (place + 1), 6) for place in range(len(sent))
    ]
    assert len(sent) in (49, 50)


def test_what_was_claimed_and_not_sent_costs_nothing():
    rig = limited(1)
    rig.later(10)
    (claim,) = rig.due(1, 2)
    rig.passed_over(claim)  # acked by somebody else meanwhile
    assert claimed(rig.actions) == [[2]]


def test_a_rate_may_be_set_changed_and_taken_away():
    rig = Rig(batch=2).joined(1, prefetch=0)
    assert rig.run(rig.due(1, 2, 3, 4, 5, 6)) == {1: [1, 2, 3, 4, 5, 6]}
    rig.post(Reconfigured(table(batch=2, more=",vt_max_rate=0.5")))
    assert rig.run(rig.due(*range(11, 17))) == {}
    assert rig.wake_s() == 2
    rig.post(Reconfigured(table(batch=2, more=",vt_max_rate=1")))
    assert rig.wake_s() == 1
    assert rig.run(rig.later(1)) == {1: [11]}
    # The same rate again, as by a reload, is no new bucket.
    rig.later(0.5)
    rig.post(Reconfigured(table(batch=2, more=",vt_max_rate=1")))
    assert rig.wake_s() == 0.5
    assert rig.run(rig.post(Reconfigured(table(batch=2)))) == {1: [12, 13, 14, 15, 16]}


def test_both_limits_hold_together():
    rig = limited("5,vt_max_in_flight=1")
    rig.later(10)
    number = next(iter(rig.state.shards)).gates.in_flight.reading
    rig.post(leases_found(number, "0", {}))
    assert rig.run(rig.due(1, 2, 3)) == {1: [1]}
    assert rig.acked(1) == {}
    assert rig.wake_s() == 0.2
    assert rig.run(rig.later(0.2)) == {1: [2]}
    assert rig.run(rig.later(0.2)) == {}
