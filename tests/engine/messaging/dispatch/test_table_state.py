"""Who gets which rows, how many at once, and when the table is read; a shard that fails, settings that change, a table that ends.

Names that begin with m restate tests of the original's manager; tests/integration/delivery restates all of them from outside."""

from dataclasses import replace

import pytest

from streamfrom.engine.errors import StreamLost, UnknownColumn
from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.acks.early_acks import GATHER_NS
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    AckedEarly,
    Attached,
    Changed,
    Deliver,
    Deposed,
    Detached,
    Elected,
    End,
    JobDone,
    Left,
    ReceiverReady,
    Reconfigured,
    ShardChecked,
    Tick,
)
from streamfrom.engine.messaging.dispatch.sending import (
    CLAIM_BYTES_MAX,
    ROW_BYTES_ASSUMED,
)
from streamfrom.engine.messaging.gates.shard_gates import STANDING_NS
from streamfrom.engine.messaging.leases.lease_rows import FindLeases, Look, Shorten
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.table.message import LateWrites
from tests.engine.messaging.dispatch.test_held_messages import Rig
from tests.engine.messaging.job_ends import (
    acks_written,
    looked,
    polled,
)
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    WAIT_NS,
    TableRig,
    claimed,
    kinds,
    only,
    table,
)


def test_a_claim_of_long_bodies_takes_few_rows_until_they_are_short_again():
    bench = TableRig(batch=10_000, cache=10_000).attach(1)
    first = only(bench.due(*range(2000)), Claim)
    assert len(first.ids) == CLAIM_BYTES_MAX // ROW_BYTES_ASSUMED
    sizes = []
    claim, size = first, 1 << 20
    for _ in range(6):
        bench.won(claim, payload=b"x" * size)
        (claim,) = kinds(bench.post(ReceiverReady(1)), Claim)
        sizes.append(len(claim.ids))
        size = 10
    assert sizes == [16, 32, 64, 128, 256, 500]


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_shards_take_turns_where_acks_make_room(streams):
    bench = TableRig(batch=1, shards=("-80", "80-"))
    for number in range(streams):
        for poll in bench.post(Attached(number, None, ("id",), prefetch=1)):
            bench.post(polled(poll.shard, EMPTY))
    actions = bench.due(*range(50), shard="-80") + bench.due(*range(50, 100), shard="80-")
    claims = kinds(actions, Claim)
    served: list[str] = []
    while len(served) < 24:
        claim = claims.pop(0)
        served += [claim.shard] * len(claim.ids)
        for delivery in kinds(bench.won(claim), Deliver):
            acked = Acked(claim.shard, tuple(row.id for row in delivery.rows))
            for event in (ReceiverReady(delivery.receiver), acked):
                claims += kinds(bench.post(event), Claim)
    assert 9 <= served[:24].count("80-") <= 15


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


@pytest.mark.parametrize("is_sent_after", [False, True], ids=["before", "after"])
def test_a_clock_that_is_set_back_makes_no_lease_longer(is_sent_after):
    """Also of a stream that made progress before, and keeps something all the time."""
    bench = Rig().attach(1)
    bench.run(bench.due(1, 2, 3))
    bench.later(10)
    bench.acked(1)
    bench.now_ns -= 600 * SECOND_NS
    for poll in kinds(bench.post(Tick()), Poll):
        bench.post(polled(poll.shard, EMPTY))
    if is_sent_after:
        bench.run(bench.due(4))
    held = bench.state.shard("0").leases
    assert {lease.id for lease in held} == {b"2", b"3"} | ({b"4"} if is_sent_after else set())
    bench.later(WAIT_NS / SECOND_NS - 1)
    assert len(held) == 2 + is_sent_after
    bench.later(2)
    assert not len(held)


def test_a_health_signal_starts_and_stops_the_grace():
    bench = TableRig(poll=1000).attach(1)
    assert bench.post(ShardChecked("0", "refused")) == []
    assert bench.wake_s() == 30
    bench.later(29)
    only(bench.post(ShardChecked("0", None)), Poll)
    bench.post(polled("0", EMPTY))
    assert bench.wake_s() > 900
    bench.post(ShardChecked("0", "refused"))
    only(bench.later(30), End)
    assert bench.wake_s() is None


def test_a_stream_whose_column_was_dropped_ends():
    bench = TableRig().attach(1).attach(2, columns=("id",))
    altered = replace(table(), columns=("id", "priority", "epoch", "time_next", "time_acked"))
    end, poll = bench.post(Reconfigured(altered))
    assert isinstance(end, End)
    assert isinstance(poll, Poll)
    assert end.receiver == 1
    assert isinstance(end.error, UnknownColumn)
    assert len(bench.state.receivers.attached) == 1


def deposed(**settings):
    rig = TableRig(**settings)
    assert rig.post(Deposed("0", "nobody dispatches it")) == []
    return rig


def test_a_shard_of_somebody_else_is_neither_polled_nor_claimed_from():
    rig = deposed()
    assert rig.post(Attached(1, None, ("id",))) == []
    assert rig.due(1, 2) == []
    assert rig.post(Changed("0")) == []
    assert sum(len(one.queue) for one in rig.state.shards) == 0
    assert rig.later(20) == []


@pytest.mark.parametrize(("receiver", "is_deposed_first"), [(1, False), (1, True), (-1, False)])
def test_who_is_elected_again_knows_who_has_left(receiver, is_deposed_first):
    rig = TableRig().attach(receiver)
    rig.won(only(rig.due(1), Claim))
    events = [Left(receiver), Deposed("0", "cut off")]
    rig.post(Detached(receiver, ()))
    shorten = [*rig.post(events[is_deposed_first]), *rig.post(events[not is_deposed_first])]
    if not is_deposed_first:
        rig.post(JobDone(only(shorten, Shorten), failure="cut off"))
    assert [lease.id for lease in only(rig.post(Elected("0")), Shorten).leases] == [b"1"]


def test_a_client_of_another_member_may_hold_on_when_its_link_is_over():
    rig = TableRig().attach(-1)
    rig.won(only(rig.due(1), Claim))
    rig.post(Detached(-1, ()))
    rig.post(Deposed("0", "another member dispatches it"))
    assert rig.post(Left(-1)) == []
    assert rig.post(Elected("0")) == []


def test_a_stream_that_nobody_serves_ends_after_the_grace_and_says_why():
    rig = deposed(grace_s=30)
    rig.later(100)
    rig.post(Attached(1, None, ("id",)))
    assert rig.wake_s() == 30, "it has its whole grace before it"
    assert rig.later(29) == []
    rig.post(Deposed("0", "its dispatcher at 10.0.0.2:4711 cannot be reached"))
    end = only(rig.later(1), End)
    assert isinstance(end.error, StreamLost)
    assert "10.0.0.2:4711 cannot be reached" in str(end.error)


def test_a_server_that_is_healthy_does_not_end_the_trouble_of_nobody_serving():
    rig = deposed(grace_s=30)
    rig.post(Attached(1, None, ("id",)))
    rig.post(ShardChecked("0", None))
    only(rig.later(30), End)


EARLY = ",vt_ack=early"
ACKED_NS = 77


class EarlyRig(TableRig):
    """A table whose acks are answered early, with messages that receiver 1 was sent."""

    def __init__(self, *sent, more=EARLY, **settings):
        super().__init__(more=more, **settings)
        self.attach(1)
        claim = next(action for action in self.due(*sent) if isinstance(action, Claim))
        self.won(claim)
        self.post(ReceiverReady(1))

    def takes(self, *ids):
        return self.state.shard("0").takes_acks([b"%d" % one for one in ids], self.now_ns)

    def ack(self, *ids):
        taken = self.takes(*ids)
        return self.post(AckedEarly("0", taken, ACKED_NS))

    def write(self):
        """Let the gathering be over; return what is to be written."""
        return kinds(self.later(GATHER_NS / 10**9), WriteAcks)

    def written(self, *locked):
        return self.post(acks_written("0", LateWrites(tuple(b"%d" % one for one in locked))))


def acks(*ids):
    return [WriteAcks("0", tuple((b"%d" % one, ACKED_NS) for one in ids))]


def test_an_ack_gives_room_back_at_once_and_is_written_with_others():
    rig = EarlyRig(1, 2, 3)
    assert rig.takes(1, 2) == (b"1", b"2")
    assert kinds(rig.ack(1, 2), WriteAcks) == []
    assert rig.state.held == 1
    assert rig.wake_s() == GATHER_NS / 10**9
    assert rig.write() == acks(1, 2)
    assert rig.state.shard("0").early_acks
    rig.written()
    assert not rig.state.shard("0").early_acks
    assert rig.state.shard("0").counters.ack_latency.total == 2


@pytest.mark.parametrize(
    "why", ["unknown", "changed", "over", "claimed", "committed", "deposed", "failing"]
)
def test_what_is_not_known_for_sure_is_left_to_the_server(why):
    rig = EarlyRig(1, 2, more="" if why == "committed" else EARLY)
    match why:
        case "unknown":
            assert rig.takes(1, 99) is None
            return
        case "changed":
            rig.post(Changed("0", (b"1",)))
        case "over":
            rig.now_ns += 31 * 10**9
        case "claimed":
            # Its lease was over, and a heartbeat that came meanwhile has made it longer.
            (shard,) = rig.state.shards
            shard.queue.put_in_flight(b"1")
        case "deposed":
            rig.post(Deposed("0", "another one"))
        case "failing":
            rig.ack(2)
            rig.write()
            rig.post(acks_written("0", None))
        case _:
            assert why == "committed"
    assert rig.takes(1) is None


def test_what_was_answered_is_written_by_who_dispatches_no_more_and_after_the_setting_is_off():
    rig = EarlyRig(1, 2)
    rig.ack(1)
    rig.post(Deposed("0", "another one"))
    rig.post(Reconfigured(table()))
    assert rig.write() == acks(1)


def found(rig, until_ns=None, shard="0"):
    """Answer the reading of what is in flight; return what follows."""
    job = next(one.gates.in_flight.reading for one in rig.state.shards if one.name == shard)
    return rig.post(JobDone(job, until_ns or {}))


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
    assert rig.run(rig.post(JobDone(first, {}))) == {}
    assert rig.run(rig.due(2, 3)) == {}
    # The message that this process has sent itself is not counted twice.
    until_ns = {b"1": rig.now_ns + WAIT_NS}
    assert rig.run(rig.post(JobDone(second, until_ns))) == {1: [2]}


def test_a_reading_that_fails_is_tried_again_and_a_lasting_failure_is_told():
    rig = Rig(more=",vt_max_in_flight=1", grace_s=5).joined(1, prefetch=0)
    rig.due(1)
    ended: list[End] = []
    for _ in range(30):
        reading = next(iter(rig.state.shards)).gates.in_flight.reading
        actions = rig.post(JobDone(reading, failure="gone"))
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
