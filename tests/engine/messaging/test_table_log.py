"""What the log is told of a table by its runner."""

import asyncio
import logging

from streamfrom.engine.errors import TableGone
from streamfrom.engine.messaging.events import Acked
from streamfrom.engine.messaging.memory_store import loaded, raw_table
from tests.engine.messaging.runner_rig import (
    COMMENT,
    STOPPED,
    Receiver,
    RunnerRig,
    failing_between,
    now_s,
)
from tests.virtual_loop import run_virtual


def test_a_stream_survives_a_restart_of_the_backend(caplog):
    async def main():
        rig, receiver = RunnerRig(pause=failing_between(10, 38)), Receiver()
        rig.runner.attach(receiver)
        await asyncio.sleep(11)
        rig.commit(1)
        await asyncio.sleep(40)
        assert receiver.ids == [1]
        assert receiver.ended == []
        await rig.runner.stop(STOPPED)

    with caplog.at_level(logging.INFO):
        run_virtual(main())
    assert [record.message for record in caplog.records] == [
        "claim of msg on ks/0 failed: the backend of 0 is gone",
        "msg on ks/0 works again",
    ]


def test_that_a_table_is_gone_alarms_nobody(caplog):
    async def gone(call, _shard):
        if call == "claim":
            raise TableGone("Table 'ks.msg' doesn't exist")

    async def main():
        rig = RunnerRig(pause=gone)
        rig.runner.attach(Receiver())
        rig.commit(1)
        await asyncio.sleep(1)
        await rig.runner.stop(STOPPED)

    with caplog.at_level(logging.INFO):
        run_virtual(main())
    told = {(record.levelno, record.message) for record in caplog.records}
    assert (logging.INFO, "claim of msg on ks/0 failed: Table 'ks.msg' doesn't exist") in told
    assert {level for level, _ in told} == {logging.INFO}


def test_a_fault_of_our_own_is_logged_with_its_trace_and_holds_nobody_up(caplog):
    async def main():
        async def pause(call, _shard):
            if call == "claim" and now_s() < 5:
                raise ZeroDivisionError

        rig, receiver = RunnerRig(pause=pause), Receiver()
        rig.insert(1)
        rig.runner.attach(receiver)
        await asyncio.sleep(10)
        assert receiver.ids == [1]
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    assert caplog.records[0].exc_info


def test_a_stream_that_stands_still_is_named_in_the_log(caplog):
    async def main():
        rig = RunnerRig()
        idle = Receiver(prefetch=2, connection_id=77, shards=frozenset({"0"}))
        rig.runner.attach(idle)
        rig.commit(1, 2, 3)
        await asyncio.sleep(100)
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    assert [record.message for record in caplog.records] == [
        "stream of ks.msg (0) on connection 77 stands still: it holds 2 messages, which is"
        " its prefetch, and has acknowledged none for 30 s",
    ]


def test_what_was_sent_often_enough_is_named_in_the_log_counted_and_asked_for_no_more(caplog):
    async def main():
        rig, receiver = RunnerRig(f"{COMMENT},vt_max_attempts=2"), Receiver()
        rig.insert(*range(1, 13))
        rig.runner.attach(receiver)
        await asyncio.sleep(200)
        assert sorted(receiver.ids) == sorted([*range(1, 13)] * 2)
        assert rig.runner.state.counters("0").parked == 12
        before = len(rig.store.calls)
        await asyncio.sleep(300)
        assert len(rig.store.calls) == before, "what is parked is left in peace"
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    texts = [record.getMessage() for record in caplog.records]
    assert all("ks.msg on 0 were sent vt_max_attempts (2) times" in text for text in texts)
    assert sum(int(text.split()[0]) for text in texts) == 12


def test_dead_letters_are_named_in_the_log_counted_and_gone(caplog):
    async def main():
        more = ",vt_max_attempts=1,vt_dead_letter=grave"
        rig, receiver = RunnerRig(f"{COMMENT}{more}"), Receiver()
        rig.insert(1, 2)
        rig.runner.attach(receiver)
        await asyncio.sleep(100)
        assert sorted(receiver.ids) == [1, 2]
        counters = rig.runner.state.counters("0")
        assert (counters.dead, counters.parked) == (2, 0)
        before = len(rig.store.calls)
        await asyncio.sleep(300)
        assert len(rig.store.calls) == before
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    told = [text for text in map(str, caplog.messages) if "vt_max_attempts" in text]
    assert sum(int(text.split()[0]) for text in told) == 2
    assert all("times, and are in grave: " in text for text in told)


def test_a_message_that_waits_for_a_parked_one_is_told_once(caplog):
    async def main():
        rig, receiver = RunnerRig(f"{COMMENT},vt_max_attempts=1"), Receiver()
        raw = raw_table(
            "msg",
            f"{COMMENT},vt_max_attempts=1,vt_group=batch,vt_after=ends",
            texts=("batch", "ends"),
        )
        rig.runner.reconfigure(loaded(raw))
        rig.insert(1, 2)
        rig.row(1).group = rig.row(2).after = b"b"
        rig.runner.attach(receiver)
        await asyncio.sleep(500)
        assert receiver.ids == [1]
        rig.runner.post(Acked("0", rig.store.ack("ks", "0", "msg", [b"1"])))
        await asyncio.sleep(1)
        assert receiver.ids == [1, 2]
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    told = [text for text in caplog.messages if "waits for group" in text]
    assert told == [
        "message 2 of ks.msg on 0 waits for group b, whose message 1 is parked: it fires once that is"
        " acknowledged or deleted"
    ]
