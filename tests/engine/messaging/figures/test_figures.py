"""What is read off a scheduler: exact where memory knows all, and where it does not, said so."""

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import Acked
from streamfrom.engine.messaging.figures.figures import queue_figures, stream_figures
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import (
    ClaimedRow,
    ClaimResult,
    KeyFound,
    MessageKey,
)
from tests.engine.messaging.job_ends import claim_done
from tests.engine.messaging.table_rig import START_NS, TableRig


def figures(rig, **depths):
    (shard,) = queue_figures(rig.state, depths, rig.now_ns).shards
    return shard


def test_after_a_poll_that_left_nothing_out_the_figures_are_exact():
    rig = TableRig(batch=2).attach(1)
    rig.due(1, 2, 3)
    (claim,) = [action for action in rig.actions if isinstance(action, Claim)]
    rig.now_ns += 5
    rig.won(claim)
    rig.due(4, time_next_ns=rig.now_ns + 100)
    shard = figures(rig)
    assert shard.is_whole
    # Two are with the receiver, one is due, one is for later.
    assert (shard.depth, shard.in_flight, shard.ready, shard.scheduled) == (4, 2, 1, 1)
    assert shard.oldest_ready_ns == START_NS
    assert shard.counters.delivered == 2
    assert shard.counters.delivery_latency.sum_ns == 2 * 5


def test_parked_messages_are_counted_apart_from_those_that_wait():
    rig = TableRig(batch=2).attach(1)
    rig.due(1, 2, time_next_ns=PARKED_NS)
    rig.due(3, time_next_ns=rig.now_ns + 100)
    shard = figures(rig)
    assert (shard.is_whole, shard.parked, shard.depth, shard.cached) == (True, 2, 1, 1)
    rig.due(1, time_next_ns=rig.now_ns + 100)  # requeued
    shard = figures(rig)
    assert (shard.parked, shard.depth) == (1, 2)


def test_the_first_message_that_waits_for_another_one_of_its_key_is_due():
    rig = TableRig(more=",vt_key=message,vt_max_per_key=1").attach(1)
    rig.due(1, 2)
    (claim,) = [action for action in rig.actions if isinstance(action, Claim)]
    first, follower = MessageKey(b"1", 50, 0), MessageKey(b"2", 50, 0)
    found = {b"'k'": KeyFound((), (first, follower))}
    asked = dict.fromkeys(claim.ids, b"'k'")
    row = ClaimedRow(b"1", "0", 0, 0, rig.now_ns + 10**10, b"")
    result = ClaimResult((row,), asked_keys=asked, found=found, chosen={b"1": first})
    rig.now_ns += 7
    rig.post(claim_done(claim.number, "0", result))
    assert (figures(rig).in_flight, figures(rig).ready) == (1, 1)
    assert figures(rig).oldest_ready_ns == START_NS
    rig.post(Acked("0", (b"1", b"2")))
    assert (figures(rig).ready, figures(rig).oldest_ready_ns) == (0, None)


def test_streams_of_other_members_clients_are_told_and_not_counted():
    rig = TableRig().attach(1, -5)
    assert queue_figures(rig.state, {}, rig.now_ns).streams == 1
    assert figures(rig).streams == 2, "who covers the shard"
    found = {one.connection_id: one.is_for_member for one in stream_figures(rig.state, {1: 7})}
    assert found == {7: False, 0: True}
