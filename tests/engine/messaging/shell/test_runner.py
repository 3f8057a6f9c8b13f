"""The shell around the scheduler: timers, tasks, turns of the loop."""

import asyncio

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.dispatch.events import Acked, Tick
from tests.engine.messaging.runner_rig import (
    COMMENT,
    STOPPED,
    Receiver,
    RunnerRig,
    now_s,
    streaming,
)
from tests.fixtures.logged import logged


async def test_a_commit_reaches_its_claim_in_the_same_turn_of_the_loop():
    rig, receiver = await streaming(wait_s=1)
    rig.commit(1)
    await asyncio.sleep(0)
    assert rig.calls("claim") == 1
    await asyncio.sleep(0.001)
    assert receiver.ids == [1]


async def test_an_idle_table_costs_one_poll_an_interval_and_without_streams_none():
    rig, receiver = RunnerRig(COMMENT.replace("=600", "=30")), Receiver()
    await asyncio.sleep(600)
    assert rig.store.calls == []
    rig.runner.attach(receiver)
    await asyncio.sleep(301)
    assert rig.calls("poll") == 11
    rig.runner.detach(receiver)
    await asyncio.sleep(600)
    assert rig.calls("poll") == 11


async def test_a_receiver_that_turns_out_to_be_gone_loses_its_rows_to_another():
    rig, gone, other = RunnerRig(), Receiver(1, is_gone=True), Receiver(2)
    rig.runner.attach(gone)
    rig.runner.attach(other)
    await asyncio.sleep(1)
    rig.commit(1)
    await asyncio.sleep(1)
    assert other.ids == [1]
    assert rig.runner.receivers == 1


EARLY = COMMENT + ",vt_ack=early"


@pytest.mark.parametrize("how", ["changed", "stopped"])
async def test_who_changes_rows_and_who_stops_has_early_acks_written_first(how):
    rig, receiver = await streaming(EARLY + ",vt_prefetch=0")
    rig.commit(*range(1, 1202))
    await asyncio.sleep(20)
    assert rig.runner.ack_early("0", tuple(row.id for row in receiver.rows), 77) == 1201
    if how == "changed":
        await rig.runner.show_leases("0", None)
    else:
        await rig.runner.stop(STOPPED)
    assert all(rig.row(one).time_acked_ns == 77 for one in range(1, 1202))
    assert rig.calls("write_acks") == 3


@pytest.mark.parametrize("then", ["the turn ends", "another event", "an early ack"])
async def test_a_committed_ack_waits_for_its_answer_and_for_nothing_else(then):
    rig, _ = await streaming(EARLY)
    rig.commit(1)
    await asyncio.sleep(0.1)
    ids = rig.store.ack("ks", "0", "msg", [b"1"])
    rig.runner.post_soon(Acked("0", ids))
    assert ids[0] in rig.runner.state.in_flight
    if then == "another event":
        rig.runner.post(Tick())
    elif then == "an early ack":
        assert rig.runner.ack_early("0", ids, 77) is None
    else:
        await asyncio.sleep(0)
    assert ids[0] not in rig.runner.state.in_flight


async def test_early_acks_that_cannot_be_written_are_written_in_the_end(caplog):
    is_failing = True

    async def pause(call, _shard):
        if call == "write_acks" and is_failing:
            raise StoreError("the disk is full")

    rig, receiver = RunnerRig(EARLY, pause=pause), Receiver()
    rig.runner.attach(receiver)
    await asyncio.sleep(0.1)
    rig.commit(1, 2)
    await asyncio.sleep(0.1)
    assert rig.runner.ack_early("0", (b"1",), 77) == 1
    await asyncio.sleep(0.1)
    assert rig.runner.ack_early("0", (b"2",), 77) is None
    is_failing = False
    await asyncio.sleep(0.2)
    assert rig.row(1).time_acked_ns == 77
    assert rig.runner.ack_early("0", (b"2",), 77) == 1
    assert ("work on a queue failed", "writing of acks") in logged(caplog, "task")


async def test_stopping_writes_the_leases():
    rig, receiver = await streaming()
    rig.commit(1)
    await asyncio.sleep(0.1)
    await rig.runner.stop(STOPPED)
    assert rig.row(1).epoch == 1
    assert rig.row(1).time_next_ns == receiver.rows[0].due_next_ns


async def test_stopping_ends_the_streams_and_releases_what_was_being_claimed():
    async def pause(_call, _shard):
        await asyncio.sleep(0.5)

    comment = COMMENT + ",vt_lease=written"
    rig, receiver = await streaming(comment, pause=pause, wait_s=10)
    rig.commit(1)
    await asyncio.sleep(0.7)
    assert rig.row(1).epoch == 1
    await rig.runner.stop(STOPPED)
    assert (rig.row(1).epoch, rig.row(1).time_next_ns) == (0, 0)
    assert receiver.ended == [STOPPED]
    await rig.runner.stop(STOPPED)
    assert receiver.ended == [STOPPED]


async def test_stopping_does_not_wait_for_a_backend_that_hangs():
    async def pause(_call, _shard):
        await asyncio.sleep(1000)

    rig, _ = await streaming(pause=pause, wait_s=1)
    before_s = now_s()
    await rig.runner.stop(STOPPED)
    assert now_s() - before_s < 3
