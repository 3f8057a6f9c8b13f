"""Rows that were claimed and not delivered: released, left to another, or looked up again."""

import pytest

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Changed,
    Deliver,
    Detached,
    JobDone,
    Left,
    ReceiverReady,
)
from streamfrom.engine.messaging.leases.lease_rows import Look, Release, Shorten, WriteLeases
from streamfrom.engine.messaging.leases.unwritten_leases import AGAIN_NS
from streamfrom.engine.messaging.queue.poll import Poll, PollResult
from streamfrom.engine.messaging.table.message import ClaimResult, LateWrites
from tests.engine.messaging.job_ends import (
    claim_done,
    claim_failed,
    polled,
    release_failed,
    released,
)
from tests.engine.messaging.queue.test_shard_queue import tier
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    START_NS,
    WAIT_NS,
    TableRig,
    claimed,
    delivered,
    only,
)


def test_m7_a_receiver_that_leaves_while_its_claim_runs_leaves_its_rows_to_another():
    bench = TableRig().attach(1, 2)
    claim = only(bench.due(1), Claim)
    bench.post(Detached(1))
    assert delivered(bench.won(claim)) == {2: [1]}


def test_m7_another_projection_is_no_other_receiver():
    bench = TableRig().attach(1, columns=("id",)).attach(2, columns=("message",))
    claim = only(bench.due(1), Claim)
    bench.post(Detached(1))
    only(bench.won(claim), Release)


def test_m8_rows_that_never_reached_the_socket_are_released():
    bench = TableRig().attach(1, 2)
    deliver = only(bench.won(only(bench.due(1, 2, 3, 4), Claim))[:1], Deliver)
    release = only(bench.post(Detached(1, deliver.rows[1:])), Release)
    assert [row.id for row in release.rows] == [b"2"]
    bench.post(ReceiverReady(2))
    assert claimed(bench.post(released(release.number, "0", release.rows))) == [[2]]


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


def test_a_poll_that_lands_after_a_row_was_passed_over_does_not_hide_it():
    """The poll had read before the row was committed: it was sent when the next poll found it."""
    bench = TableRig().attach(1)
    poll = only(bench.later(bench.wake_s()), Poll)
    claim = only(bench.due(1), Claim)
    bench.passed_over(claim, **{"1": 0})
    assert bench.post(polled(poll.shard, EMPTY)) == []
    assert delivered(bench.won(only(bench.later(0.001), Claim))) == {1: [1]}


def test_a_row_rescheduled_while_its_claim_ran_is_sent_and_looked_up():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    only(bench.post(Changed("0", (b"1",))), Poll)
    actions = bench.won(claim)
    assert delivered(actions) == {1: [1]}
    assert actions[1:] == [Look("0", (b"1",))], "it may be due later than its claim wrote"


def test_a_row_that_was_deleted_and_inserted_anew_while_its_claim_ran_is_sent():
    bench = TableRig().attach(1, 2)
    claim = only(bench.due(1), Claim)
    bench.post(Acked("0", (b"1",)))
    bench.due(1)
    assert claimed(bench.passed_over(claim)) == [[1]]


def test_a_row_won_under_another_spelling_is_sent_and_looked_up():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    actions = bench.won(claim, 77)
    assert delivered(actions) == {1: [77]}
    assert isinstance(actions[-1], Poll)


def test_rows_that_a_failed_claim_had_won_wait_for_the_moment_that_it_wrote():
    """Its retry took them before the poll came back, so the poll's answer was not used."""
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    poll = only(bench.post(claim_failed(claim.number, "0", "gone")), Poll)
    retry = only(bench.later(0.05), Claim)
    bench.post(polled(poll.shard, PollResult((tier(timed=[START_NS + WAIT_NS]),))))
    bench.passed_over(retry, **{"1": START_NS + WAIT_NS})
    assert bench.wake_s() == 30 - 0.05


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


@pytest.mark.parametrize("result", [None, LateWrites(locked=(b"1",))], ids=["failed", "locked"])
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
    assert only(bench.post(JobDone(write, LateWrites())), Shorten).receiver == 1
