"""The shell around the scheduler: timers, tasks, turns of the loop."""

import asyncio
import functools
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamfrom import engine
from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.dispatch.events import Acked, Deposed, Due, Elected, Tick
from tests.cases import cases
from tests.engine.messaging.runner_rig import (
    COMMENT,
    STOPPED,
    Receiver,
    RunnerRig,
    now_s,
    streaming,
)
from tests.fixtures.logged import logged
from tests.sim.memory_store import StoredRow
from tests.virtual_loop import run_virtual


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
    assert rig.runner.state.receivers.attached.keys() == {2}


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
    leases = rig.runner.state.shard("0").leases
    assert leases.get(ids[0]) is not None
    if then == "another event":
        rig.runner.post(Tick())
    elif then == "an early ack":
        assert rig.runner.ack_early("0", ids, 77) is None
    else:
        await asyncio.sleep(0)
    assert leases.get(ids[0]) is None


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


async def test_a_poll_that_hangs_ends_with_the_election_and_the_next_one_begins_with_another():
    async def pause(call, _shard):
        if call == "poll" and rig.calls("poll") == 1:
            await asyncio.sleep(1000)

    rig = RunnerRig(pause=pause)
    rig.runner.attach(Receiver())
    await asyncio.sleep(1)
    rig.runner.post(Deposed("0", "no answer"))
    rig.runner.give_up_reads("0")
    await asyncio.sleep(1)
    assert rig.calls("poll") == 1
    rig.runner.post(Elected("0"))
    await asyncio.sleep(1)
    assert rig.calls("poll") == 2


FLOOD = 2_000
FEW = 20
CLAIM_S = 0.01
KEYS = COMMENT + ",vt_key=message,vt_max_per_key="


class Acknowledging(Receiver):
    """Acknowledges what it is given a moment later."""

    def __init__(self, rig, **options):
        super().__init__(**options)
        self.rig = rig

    def deliver(self, rows):
        ids = [row.id for row in rows]
        asyncio.get_running_loop().call_later(2 * CLAIM_S, self.acknowledge, ids)
        return super().deliver(rows)

    def acknowledge(self, ids):
        self.rig.runner.post(Acked("0", self.rig.store.ack("ks", "0", "msg", ids)))


async def pause(_call, _shard):
    await asyncio.sleep(CLAIM_S)


@pytest.mark.parametrize(("in_order", "begun_s"), [(1, 1), (2, 0.05), (10, 0.05), (10, 1)])
async def test_messages_of_other_keys_go_past_a_flood(in_order, begun_s):
    rig = RunnerRig(KEYS + str(in_order), pause=pause)
    receiver = Acknowledging(rig)
    insert = partial(rig.store.insert, "ks", "0", "msg")
    insert(*(StoredRow(b"%d" % one, key=b"'a'") for one in range(1, FLOOD + 1)))
    rig.runner.attach(receiver)
    await asyncio.sleep(begun_s)
    before = len(receiver.ids)
    rig.runner.post(Due("0", insert(StoredRow(b"5000", key=b"'b'"))))
    await asyncio.sleep(10 * CLAIM_S)
    assert receiver.ids.index(5000) - before < FEW


@pytest.mark.parametrize("fair", [False, True])
async def test_keys_take_turns_and_of_each_no_more_start_than_may(fair):
    settings = COMMENT + ",vt_key=tenant,vt_max_per_key=2" + ",vt_fair=on" * fair
    rig = RunnerRig(settings, numbers=("tenant",), pause=pause)
    # Two of the urgent flood fit into the room for three, and one of the next.
    receiver = Acknowledging(rig, prefetch=3)
    for key in range(1, 4):
        rows = (StoredRow(b"%d%02d" % (key, n), key, key=b"%d" % key) for n in range(100))
        rig.store.insert("ks", "0", "msg", *rows)
    rig.runner.attach(receiver)
    await asyncio.sleep(200 * CLAIM_S)
    counts = Counter(ident // 100 for ident in receiver.ids[:30])
    assert counts.total() == 30
    if fair:
        assert max(counts.values()) - min(counts[key] for key in range(1, 4)) <= 3
    else:
        assert counts[3] == 0


ENGINE = str(Path(engine.__file__).parent)
MESSAGES = 250


@functools.cache
def calls(settings):
    """Return how many functions of the engine are called while messages are sent and acknowledged in batches."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(ENGINE)

    rig: Any = None

    class Acknowledging(Receiver):
        def deliver(self, rows):
            ids = tuple(row.id for row in rows)
            asyncio.get_running_loop().call_soon(rig.runner.post, Acked("0", ids))
            for ident in ids:
                rig.row(int(ident)).time_acked_ns = 1
            return super().deliver(rows)

    async def main():
        nonlocal rig
        rig, receiver = RunnerRig(COMMENT + settings), Acknowledging()
        rig.runner.attach(receiver)
        rig.commit(1)
        await asyncio.sleep(1)  # the bucket of a rate is empty when its dispatcher begins
        sys.setprofile(count)
        try:
            rig.commit(*range(2, MESSAGES + 1))
            while len(receiver.rows) < MESSAGES:  # noqa: ASYNC110  (on a virtual clock)
                await asyncio.sleep(0.01)
        finally:
            sys.setprofile(None)
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    return counted


@cases(setting=str, beside=str)
def test_a_setting_that_never_bites_costs_nothing(setting, beside):
    assert calls(setting) <= 1.05 * calls(beside)


def test_one_that_bites_is_counted():
    assert calls(",vt_max_rate=2000") > 1.05 * calls("")
