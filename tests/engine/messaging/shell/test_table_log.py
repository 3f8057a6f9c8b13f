"""What the log is told of a table by its runner."""

import asyncio
import logging

import pytest

from streamfrom.engine.errors import NotDispatched, StoreError, TableGone
from streamfrom.engine.messaging.dispatch.events import Acked
from streamfrom.engine.messaging.gates.set_aside import SetAsideRow
from streamfrom.engine.messaging.shell.table_log import COLLECTS, SET_ASIDE_LOGGED_MAX, TableLog
from streamfrom.engine.messaging.table.message import AUTO, Tried
from tests.engine.messaging.runner_rig import (
    COMMENT,
    Receiver,
    RunnerRig,
    failing_between,
    now_s,
)
from tests.fixtures.logged import logged
from tests.sim.memory_store import loaded, raw_table


async def test_a_stream_survives_a_restart_of_the_backend(caplog):
    caplog.set_level(logging.INFO)
    rig, receiver = RunnerRig(pause=failing_between(10, 38)), Receiver()
    rig.runner.attach(receiver)
    await asyncio.sleep(11)
    rig.commit(1)
    await asyncio.sleep(40)
    assert receiver.ids == [1]
    assert receiver.ended == []
    assert logged(caplog, "task", "reason") == [
        ("work on a queue failed", "claim", "the backend of 0 is gone"),
        ("work on a queue continues", None, None),
    ]
    assert logged(caplog, "keyspace", "queue", "shard")[0][1:] == ("ks", "msg", "0")


def test_what_a_lock_keeps_from_a_shard_fails_once_while_all_else_works(caplog):
    caplog.set_level(logging.INFO)
    log = TableLog(loaded(raw_table("msg")))
    for _ in range(3):
        log.failed("writing of leases", "0", StoreError("Lock wait timeout exceeded"))
        log.works("claim", "0")
    log.works("writing of leases", "0")
    assert logged(caplog, "task") == [
        ("work on a queue failed", "writing of leases"),
        ("work on a queue continues", None),
    ]


@pytest.mark.parametrize("kind", [TableGone, NotDispatched])
async def test_that_a_table_or_a_shard_is_gone_alarms_nobody(caplog, kind):
    async def gone(call, _shard):
        if call == "claim":
            raise kind("it is gone")

    caplog.set_level(logging.INFO)
    rig = RunnerRig(pause=gone)
    rig.runner.attach(Receiver())
    rig.commit(1)
    await asyncio.sleep(1)
    told = ("work on a queue failed", "claim", "it is gone")
    assert told in logged(caplog, "task", "reason")
    assert {record.levelno for record in caplog.records} == {logging.INFO}


async def test_a_fault_of_our_own_is_logged_with_its_trace_and_holds_nobody_up(caplog):
    async def pause(call, _shard):
        if call == "claim" and now_s() < 5:
            raise ZeroDivisionError

    rig, receiver = RunnerRig(pause=pause), Receiver()
    rig.insert(1)
    rig.runner.attach(receiver)
    await asyncio.sleep(10)
    assert receiver.ids == [1]
    assert caplog.records[0].exc_info


# One that holds as many as a window begins with, and acks none, collects them before its first ack.
@pytest.mark.parametrize(("prefetch", "advice"), [(2, None), (AUTO, COLLECTS)])
async def test_a_stream_that_stands_still_is_named_in_the_log_with_what_to_write(
    caplog, prefetch, advice
):
    rig = RunnerRig()
    rig.runner.attach(Receiver(prefetch=prefetch, connection_id=77, shards=frozenset({"0"})))
    rig.commit(1, 2, 3)
    await asyncio.sleep(100)
    told = logged(caplog, "queue", "shards", "connection", "unacked", "stalled_s", "advice")
    assert told == [("stream stalled", "msg", "0", 77, 2, 15, advice)]


@pytest.mark.parametrize(
    ("grave", "event"), [(None, "messages parked"), ("grave", "messages dead-lettered")]
)
async def test_what_was_sent_often_enough_is_named_in_the_log_counted_and_asked_for_no_more(
    caplog, grave, event
):
    more = f",vt_max_attempts=2,vt_dead_letter={grave or ''}"
    rig, receiver = RunnerRig(f"{COMMENT}{more}"), Receiver()
    rig.insert(*range(1, 13))
    rig.runner.attach(receiver)
    await asyncio.sleep(200)
    assert sorted(receiver.ids) == sorted([*range(1, 13)] * 2)
    counters = rig.runner.state.shard("0").counters
    assert (counters.dead_lettered, counters.parked) == ((12, 0) if grave else (0, 12))
    before = len(rig.store.calls)
    await asyncio.sleep(300)
    assert len(rig.store.calls) == before, "what was given up is left in peace"
    told = logged(caplog, "queue", "shard", "dead_letter", "attempts", "count", "ids")
    assert {each[:5] for each in told} == {(event, "msg", "0", grave, 2)}
    assert sum(each[5] for each in told) == 12
    assert "1, 2" in told[0][6]


async def test_a_message_that_waits_for_a_parked_one_is_told_once(caplog):
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
    told = logged(caplog, "id", "group", "parked_id")
    assert told[1:] == [("message waits for a parked one", "2", "b", "1")]


def test_of_many_rows_that_are_set_aside_the_log_has_their_number_alone(caplog):
    log, found = (
        TableLog(loaded(raw_table("msg"))),
        [(b"1", SetAsideRow(Tried.CLAIM, "no", 0))] * 2,
    )
    log.set_aside("0", found, SET_ASIDE_LOGGED_MAX)
    log.set_aside("0", found, SET_ASIDE_LOGGED_MAX + 1)
    log.acks_lost("0", [b"5", b"6"])
    assert logged(caplog, "id", "count", "ids") == [
        ("row set aside", "1", None, None),
        ("row set aside", "1", None, None),
        ("rows set aside", None, SET_ASIDE_LOGGED_MAX + 1, None),
        ("acks not written", None, 2, "5, 6"),
    ]
