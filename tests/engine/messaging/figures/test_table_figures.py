"""What is read off a scheduler: exact where memory knows all, and where it does not, said so."""

from streamfrom.engine.messaging.dispatch.events import Acked, Claim, Deposed, Detached
from streamfrom.engine.messaging.figures.table_figures import (
    is_known_whole,
    queue_figures,
    stream_figures,
)
from streamfrom.engine.messaging.queue.poll import PollResult, TierRead
from streamfrom.engine.messaging.table.groups import FireResult
from streamfrom.engine.messaging.table.message import (
    FOREVER_NS,
    ClaimedRow,
    ClaimResult,
    KeyFound,
    MessageKey,
)
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.engine.messaging.upkeep.depths import Depth
from tests.engine.messaging.job_ends import claim_done, polled
from tests.engine.messaging.table_rig import EMPTY, START_NS, TableRig


def figures(rig, **depths):
    (shard,) = queue_figures(rig.state, depths, rig.now_ns).shards
    return shard


def test_without_streams_memory_knows_nothing():
    rig = TableRig()
    (shard,) = queue_figures(rig.state, {"0": Depth(7, 2, 1)}, rig.now_ns).shards
    assert (shard.is_whole, shard.depth, shard.streams, shard.cached) == (False, 7, 0, 0)
    assert (shard.parked, shard.dead_lettered) == (2, 1)
    (shard,) = queue_figures(rig.state, {}, rig.now_ns).shards
    assert shard.depth is None
    assert shard.oldest_ready_ns is None


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


def test_a_poll_that_left_rows_out_makes_the_depth_a_question():
    rig = TableRig().attach(1)
    read = TierRead(50, (MessageKey(b"1", 50, 0),), True, (), False, 0, FOREVER_NS)
    rig.post(polled("0", PollResult((read,))))
    assert not is_known_whole(next(iter(rig.state.shards)))
    assert figures(rig).depth is None
    rig.post(polled("0", EMPTY))
    assert figures(rig).is_whole


def test_what_waits_for_its_group_and_what_the_purge_found_are_told():
    rig = TableRig().attach(1)
    (shard,) = rig.state.shards
    assert (figures(rig).blocked, figures(rig).partitions_overdue) == (0, 0)
    shard.groups.configure(is_on=True)
    assert shard.groups.next(rig.now_ns) is not None
    shard.groups.answered(FireResult(waiting={b"1": b"9", b"2": b"9"}), rig.now_ns, 1)
    rig.state.partitions_overdue("0", 3)
    assert (figures(rig).blocked, figures(rig).partitions_overdue) == (2, 3)


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


def test_who_leaves_leaves_the_depth_unknown():
    rig = TableRig().attach(1)
    rig.post(Detached(1))
    assert not figures(rig).is_whole


def test_acks_tell_how_long_they_took_and_give_the_stream_room():
    rig = TableRig().attach(1)
    rig.due(1, 2, 3)
    (claim,) = [action for action in rig.actions if isinstance(action, Claim)]
    rig.won(claim)
    rig.now_ns += 7
    rig.post(Acked("0", (b"1", b"2", b"9")))
    counters = figures(rig).counters
    assert counters.ack_latency.total == 2
    assert counters.ack_latency.sum_ns == 14
    (stream,) = stream_figures(rig.state, {1: 77})
    assert (stream.connection_id, stream.delivered, stream.unacked) == (77, 3, 1)
    assert stream.oldest_unacked_ns == START_NS
    assert stream.opened_ns == START_NS


def test_rows_that_a_socket_never_took_are_released():
    rig = TableRig().attach(1)
    rig.due(1)
    (claim,) = [action for action in rig.actions if isinstance(action, Claim)]
    rig.won(claim)
    rig.post(Detached(1, (rig.row(1),)))
    assert figures(rig).counters.returned == 1
    assert stream_figures(rig.state, {}) == []


def test_counters_of_all_shards_add_up():
    rig = TableRig(shards=("-80", "80-"))
    rig.state.counters("-80").acked += 2
    rig.state.counters("80-").acked += 3
    assert queue_figures(rig.state, {}, rig.now_ns).counters.acked == 5


def test_streams_of_other_members_clients_are_told_and_not_counted():
    rig = TableRig().attach(1, -5)
    assert queue_figures(rig.state, {}, rig.now_ns).streams == 1
    assert figures(rig).streams == 2, "who covers the shard"
    found = {one.connection_id: one.is_for_member for one in stream_figures(rig.state, {1: 7})}
    assert found == {7: False, 0: True}


def test_a_shard_that_another_process_dispatches_is_not_known_whole():
    rig = TableRig().attach(1)
    assert figures(rig).is_whole
    rig.post(Deposed("0", "another one does"))
    shard = figures(rig)
    assert (shard.is_dispatched, shard.is_whole) == (False, False)
