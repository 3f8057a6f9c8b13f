"""A stream holds at most its prefetch; what gives room back, and who gets what then."""

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    AckedUnnamed,
    Attached,
    Changed,
    ReceiverReady,
    Reconfigured,
    ReportStanding,
)
from streamfrom.engine.messaging.dispatch.receivers import COMPARED_MAX
from streamfrom.engine.messaging.gates.shard_gates import STANDING_NS
from streamfrom.engine.messaging.leases.lease_rows import Look
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.streams.attached_receiver import GATHER_NS
from streamfrom.engine.messaging.table.message import ClaimResult
from tests.engine.messaging.job_ends import claim_done, look_failed, looked, polled
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    START_NS,
    WAIT_NS,
    TableRig,
    claimed,
    delivered,
    kinds,
    table,
)


class Rig(TableRig):
    """Claims win everything, sockets take everything at once."""

    def joined(self, *receivers, prefetch):
        for receiver in receivers:
            self.post(Attached(receiver, None, ("id", "message"), prefetch))
        self.post(polled("0", EMPTY))
        return self

    def acked(self, *ids):
        return self.run(self.post(Acked("0", tuple(b"%d" % one for one in ids))))


def test_the_table_says_the_limit_for_who_has_none_and_may_change_it():
    rig = Rig(batch=50, cache=1000).attach(1)
    assert len(rig.run(rig.due(*range(300)))[1]) == 100
    rig.post(Reconfigured(table(batch=150, cache=1000)))
    assert rig.run(rig.later(GATHER_NS / SECOND_NS)) == {1: list(range(100, 150))}
    rig.post(polled("0", EMPTY))
    assert rig.run(rig.post(Reconfigured(table(batch=10, cache=1000)))) == {}
    assert rig.acked(*range(50)) == {}


def test_acks_one_by_one_gather_to_a_batch_but_a_lone_message_goes_at_once():
    rig = Rig(batch=10, cache=1000).joined(1, prefetch=100)
    rig.run(rig.due(*range(150)))
    for ident in range(9):
        assert rig.acked(ident) == {}
    assert rig.acked(9) == {1: list(range(100, 110))}
    assert rig.acked(10) == {}
    assert rig.wake_s() == GATHER_NS / SECOND_NS
    assert rig.run(rig.later(GATHER_NS / SECOND_NS)) == {1: [110]}

    rig = Rig(batch=10, cache=1000).joined(1, prefetch=100)
    rig.run(rig.due(*range(100)))
    assert rig.acked(1) == {}
    assert rig.run(rig.due(500)) == {1: [500]}


def test_a_reschedule_is_looked_at_and_gives_room_or_holds_on():
    rig = Rig().joined(1, prefetch=2)
    rig.run(rig.due(1, 2, 3, 4))
    heartbeat = Changed("0", (b"2", b"4"), keeps_leases=True)
    (look,) = kinds(rig.post(heartbeat), Look)
    assert look.ids == (b"2",)
    later_ns = rig.now_ns + 90 * SECOND_NS
    assert claimed(rig.post(looked("0", {b"2": later_ns}))) == []
    assert rig.run(rig.later(30)) == {1: [3]}  # only the lease of 1 has ended

    rig.post(Changed("0", (b"2",)))
    assert rig.run(rig.post(looked("0", {b"2": 0}))) == {1: [4]}
    rig.due(5)
    rig.post(Changed("0", (b"4",)))
    assert rig.run(rig.post(looked("0", {b"4": later_ns}))) == {1: [5]}, "not before then"


def test_a_lone_message_is_not_compared_with_every_idle_stream():
    rig = Rig().joined(*range(COMPARED_MAX), prefetch=3).joined(1000, prefetch=0)
    assert rig.run(rig.due(1)) == {0: [1]}
    assert rig.run(rig.due(2)) == {1000: [2]}, "it has moved up, and has most room"


def test_one_that_stands_still_is_told_once_until_it_acts():
    rig = Rig(cache=1000).joined(1, prefetch=2)
    rig.run(rig.due(1, 2, 3))
    since_ns = rig.now_ns
    actions = rig.later(30)
    told = kinds(actions, ReportStanding)
    assert told == [ReportStanding(1, 2, since_ns)]
    rig.run(actions)
    actions = rig.later(30)
    assert not kinds(actions, ReportStanding)
    rig.run(actions)
    rig.acked(1, 2, 3)
    rig.run(rig.due(5, 6))
    assert kinds(rig.later(30), ReportStanding)


def test_who_stands_full_while_messages_wait_is_looked_at_for_acks_that_nobody_tells():
    rig = Rig(batch=10).joined(1, prefetch=2)
    rig.run(rig.due(*range(4)))
    assert rig.wake_s() == STANDING_NS / SECOND_NS
    (look,) = rig.later(STANDING_NS / SECOND_NS)
    assert look == Look("0", (b"0", b"1"))
    held_ns = START_NS + WAIT_NS
    # One was acked, one made due later: by who works on it, as far as this proxy can know.
    assert rig.run(rig.post(looked("0", {b"1": held_ns + SECOND_NS}))) == {1: [2]}
    # It has worked since.
    assert rig.later(STANDING_NS / SECOND_NS / 2) == []
    (look,) = rig.later(STANDING_NS / SECOND_NS)
    assert look == Look("0", (b"1", b"2"))
    assert rig.post(look_failed("0")) == []
    assert rig.acked(1, 2) == {1: [3]}
    # Nothing waits any more.
    assert rig.later(10 * STANDING_NS / SECOND_NS) == []


def test_an_id_whose_row_is_gone_is_new_when_it_is_inserted_again():
    rig = Rig().joined(1, prefetch=2)

    def sent(actions):
        (claim,) = kinds(actions, Claim)
        row = rig.row(0)._replace(is_written=False)
        got = delivered(rig.post(claim_done(claim.number, "0", ClaimResult((row,)))))
        rig.post(ReceiverReady(1))
        return got

    assert sent(rig.due(0)) == {1: [0]}
    assert Look("0", (b"0",)) in rig.post(AckedUnnamed("0"))
    assert claimed(rig.post(looked("0", {}))) == []
    assert sent(rig.due(0)) == {1: [0]}
    rig.post(AckedUnnamed("0"))
    # Between a look and its answer it may be the row of before: a poll finds out.
    assert claimed(rig.due(0)) == []
    assert any(isinstance(action, Poll) for action in rig.post(looked("0", {})))
