"""What holds messages back: vt_max_in_flight, vt_max_rate, vt_paused."""

from streamfrom.engine.errors import StreamLost
from streamfrom.engine.messaging.dispatch.events import Deposed, Elected, End, Reconfigured
from streamfrom.engine.messaging.gates.shard_gates import STANDING_NS
from streamfrom.engine.messaging.leases.lease_rows import FindLeases, Look
from tests.engine.messaging.dispatch.test_held_messages import Rig
from tests.engine.messaging.job_ends import leases_found, leases_not_found, looked, polled
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    WAIT_NS,
    claimed,
    kinds,
    table,
)


def found(rig, until_ns=None, shard="0"):
    """Answer the reading of what is in flight; return what follows."""
    number = next(one.gates.in_flight.reading for one in rig.state.shards if one.name == shard)
    return rig.post(leases_found(number, shard, until_ns or {}))


def limited(at_most, **options):
    """Return a rig with one stream, which knows that nothing is in flight."""
    rig = Rig(more=f",vt_max_in_flight={at_most}", **options).joined(1, prefetch=0)
    found(rig)
    return rig


def test_what_is_acked_past_everybody_is_looked_for():
    rig = limited(1)
    assert rig.run(rig.due(1, 2)) == {1: [1]}
    (look,) = kinds(rig.later(STANDING_NS / SECOND_NS), Look)
    assert look.ids == (b"1",)
    assert rig.run(rig.post(looked("0", {}))) == {1: [2]}


def test_nothing_is_claimed_before_it_is_known_what_a_former_dispatcher_has_sent():
    rig = Rig(more=",vt_max_in_flight=2").joined(1, prefetch=0)
    assert rig.due(1, 2, 3) == []
    until_ns = {b"8": rig.now_ns + WAIT_NS}
    actions = found(rig, until_ns)
    assert [look.ids for look in kinds(actions, Look)] == [(b"8",)] or claimed(actions)
    assert rig.run(actions) == {1: [1]}
    assert rig.acked(8) == {1: [2]}


def test_a_new_term_reads_anew_and_an_old_answer_counts_no_more():
    rig = limited(2)
    assert rig.run(rig.due(1)) == {1: [1]}
    rig.post(Deposed("0", "cut off"))
    (first,) = kinds(rig.post(Elected("0")), FindLeases)
    rig.post(Deposed("0", "cut off"))
    (second,) = kinds(rig.post(Elected("0")), FindLeases)
    rig.post(polled("0", EMPTY))
    assert rig.run(rig.post(leases_found(first.number, "0", {}))) == {}
    assert rig.run(rig.due(2, 3)) == {}
    # The message that this process has sent itself is not counted twice.
    until_ns = {b"1": rig.now_ns + WAIT_NS}
    assert rig.run(rig.post(leases_found(second.number, "0", until_ns))) == {1: [2]}


def test_a_reading_that_fails_is_tried_again_and_a_lasting_failure_is_told():
    rig = Rig(more=",vt_max_in_flight=1", grace_s=5).joined(1, prefetch=0)
    rig.due(1)
    ended: list[End] = []
    for _ in range(30):
        reading = next(iter(rig.state.shards)).gates.in_flight.reading
        actions = rig.post(leases_not_found(reading, "0", "gone"))
        assert kinds(actions, FindLeases) == []
        while not (ended or kinds(actions, FindLeases)):
            wake_s = rig.wake_s()
            assert wake_s is not None
            actions = rig.later(wake_s)
            ended += kinds(actions, End)
        if ended:
            break
    (end,) = ended
    assert isinstance(end.error, StreamLost)


def test_a_limit_may_be_set_changed_and_taken_away():
    rig = Rig(batch=2).joined(1, prefetch=0)
    assert rig.run(rig.due(1, 2)) == {1: [1, 2]}
    rig.post(Reconfigured(table(batch=2, more=",vt_max_in_flight=3")))
    found(rig, {b"1": rig.now_ns + WAIT_NS, b"2": rig.now_ns + WAIT_NS})
    assert rig.run(rig.due(3, 4, 5, 6)) == {1: [3]}
    assert rig.run(rig.post(Reconfigured(table(batch=2, more=",vt_max_in_flight=4")))) == {
        1: [4]
    }
    assert rig.run(rig.post(Reconfigured(table(batch=2, more=",vt_max_in_flight=1")))) == {}
    assert rig.acked(1, 2, 3) == {}
    assert rig.acked(4) == {1: [5]}
    assert rig.run(rig.post(Reconfigured(table(batch=2)))) == {1: [6]}


# vt_max_rate


def at_rate(rate, **options):
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
    rig = at_rate(5, cache=1000)
    assert rig.run(rig.due(*range(100))) == {}
    sent = drained(rig, 10)
    assert [round(moment, 6) for moment in sent] == [
        round(0.2 * (place + 1), 6) for place in range(len(sent))
    ]
    assert len(sent) in (49, 50)


def test_what_was_claimed_and_not_sent_costs_nothing():
    rig = at_rate(1)
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
