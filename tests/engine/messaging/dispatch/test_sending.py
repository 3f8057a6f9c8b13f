"""Rows that were claimed and not delivered: released, left to another, or looked up again."""

import pytest

from streamfrom.engine.messaging.dispatch.events import (
    Claim,
    Detached,
    JobDone,
    LeasesWanted,
    Left,
    ReceiverReady,
)
from streamfrom.engine.messaging.leases.lease_writes import WriteLeases
from streamfrom.engine.messaging.leases.returns import Release, Shorten
from streamfrom.engine.messaging.leases.unwritten_leases import AGAIN_NS
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.table.message import ClaimResult, LeaseWrites
from tests.engine.messaging.job_ends import (
    claim_done,
    release_failed,
)
from tests.engine.messaging.table_rig import (
    SECOND_NS,
    START_NS,
    WAIT_NS,
    TableRig,
    claimed,
    delivered,
    only,
)


def test_a_release_that_fails_leaves_the_row_to_its_timer():
    bench = TableRig().attach(1, 2)
    deliver = bench.won(only(bench.due(1), Claim))[0]
    release = only(bench.post(Detached(1, deliver.rows)), Release)
    assert bench.post(release_failed(release.number, "0", release.rows)) == []
    assert bench.wake_s() == 30


def test_a_row_that_was_locked_is_tried_again_after_pauses_that_double():
    # An ack of another row locked it, or an ack of its own that is rolled back: nobody says so.
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    pauses_ms = []
    for _ in range(12):
        assert bench.passed_over(claim, **{"1": 0}) == []
        pauses_ms.append(round(bench.wake_s() * 1000))
        claim = only(bench.later(bench.wake_s()), Claim)
    assert pauses_ms == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]
    assert delivered(bench.won(claim)) == {1: [1]}


def test_a_row_that_is_locked_and_then_acked_past_the_proxy_is_forgotten():
    bench = TableRig().attach(1)
    bench.passed_over(only(bench.due(1), Claim), **{"1": 0})
    bench.passed_over(only(bench.later(0.001), Claim))
    assert bench.state.waiting == 0


def test_a_claim_in_order_knows_what_was_sent_though_its_lease_is_written_meanwhile():
    """It may have read the row before."""
    bench = TableRig(more=",vt_key=message,vt_max_per_key=1,vt_lease=lazy").attach(1)
    claim = only(bench.due(1), Claim)
    assert not claim.unwritten
    lazy = bench.row(1)._replace(is_written=False)
    bench.post(claim_done(claim.number, "0", ClaimResult((lazy,))))
    bench.post(ReceiverReady(1))
    claim = only(bench.due(2), Claim)
    write = only(bench.post(LeasesWanted("0", (b"1",))), WriteLeases)
    bench.post(JobDone(write, LeaseWrites()))
    assert claim.unwritten[b"1"].time_next_ns == lazy.due_next_ns
    bench.won(claim)
    bench.post(ReceiverReady(1))
    assert not only(bench.due(3), Claim).unwritten


def test_a_row_won_under_another_spelling_is_sent_and_looked_up():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    actions = bench.won(claim, 77)
    assert delivered(actions) == {1: [77]}
    assert isinstance(actions[-1], Poll)


def test_a_consumer_has_its_wait_from_the_delivery_on_however_long_the_claim_takes():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    row = bench.row(1)
    bench.now_ns += 2 * SECOND_NS
    bench.post(claim_done(claim.number, "0", ClaimResult((row,))))
    bench.post(ReceiverReady(1))
    write = only(bench.later(25), WriteLeases)
    assert [lease.until_ns for lease in write.leases] == [START_NS + WAIT_NS + 2 * SECOND_NS]
    assert claimed(bench.later(4.9)) == []


@pytest.mark.parametrize(
    "result", [None, LeaseWrites(locked=(b"1",))], ids=["failed", "locked"]
)
def test_a_lease_that_its_server_does_not_write_is_not_written_in_a_loop(result):
    """It is to be written at once, since its consumer has left."""
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    row = bench.row(1)
    bench.now_ns += 2 * SECOND_NS  # so its lease is longer than the row shows
    bench.post(claim_done(claim.number, "0", ClaimResult((row,))))
    bench.post(Detached(1))
    write = only(bench.post(Left(1)), WriteLeases)
    failure = "gone" if result is None else None
    assert bench.post(JobDone(write, result, failure)) == []
    assert bench.wake_s() == AGAIN_NS / SECOND_NS
    write = only(bench.later(bench.wake_s()), WriteLeases)
    assert only(bench.post(JobDone(write, LeaseWrites())), Shorten).receiver == 1
