"""A stream with an end: how long it waits for its first message, what it gives, and when it is over."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Deposed,
    Elected,
    Finish,
    WaitOver,
)
from streamfrom.engine.messaging.dispatch.table_state import POLL_KEYS_MIN
from tests.engine.messaging.job_ends import poll_failed, polled
from tests.engine.messaging.table_rig import EMPTY, TableRig


COLUMNS = ("id", "message")


def join(rig, rows_max, receiver=1):
    return rig.post(Attached(receiver, None, COLUMNS, None, rows_max))


def finished(actions):
    return [action.receiver for action in actions if isinstance(action, Finish)]


def test_a_wait_that_is_over_is_an_empty_answer_once_it_is_known_that_nothing_is_due():
    rig = TableRig()
    join(rig, 5)
    assert finished(rig.post(WaitOver(1))) == [], "the poll that its coming caused goes on"
    assert finished(rig.post(polled("0", EMPTY))) == [1]
    assert rig.post(WaitOver(1)) == []


def test_it_does_not_end_while_a_shard_does_not_answer():
    rig = TableRig()
    join(rig, 5)
    rig.post(WaitOver(1))
    assert finished(rig.post(poll_failed("0", "gone"))) == []
    rig.later(0.05)
    assert finished(rig.post(polled("0", EMPTY))) == [1]


def test_nobody_knows_what_is_due_on_a_shard_that_another_process_dispatches():
    rig = TableRig(shards=("-80", "80-")).attach(9)
    rig.post(Deposed("80-", "another does"))
    join(rig, 5)
    assert finished(rig.post(WaitOver(1))) == []
    rig.post(Elected("80-"))
    assert finished(rig.post(polled("80-", EMPTY))) == [1]


def test_a_poll_asks_for_no_more_than_those_can_use_that_end():
    rig = TableRig(cache=10_000)
    limits = [join(rig, 5)[0].request.limit]
    rig.post(polled("0", EMPTY))
    join(rig, 30, receiver=2)
    limits += [one.request.limit for one in rig.post(Changed("0"))]
    rig.post(polled("0", EMPTY))
    rig.attach(3)
    limits += [one.request.limit for one in rig.post(Changed("0"))]
    assert limits == [2 * 5 + POLL_KEYS_MIN, 2 * 35 + POLL_KEYS_MIN, 10_000]
