"""Streams that come: their share of a prefetch, which other processes divide with this one, and their end, if they have one."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Deposed,
    Elected,
    Finish,
    KeepsShare,
    ShareGiven,
    Tick,
    WaitOver,
    WantShare,
)
from streamfrom.engine.messaging.dispatch.table_state import POLL_KEYS_MIN
from tests.engine.messaging.dispatch.test_held_messages import Rig
from tests.engine.messaging.job_ends import poll_failed, polled
from tests.engine.messaging.table_rig import EMPTY, SECOND_NS, START_NS, TableRig


TOLD = KeepsShare | WantShare


def told(actions):
    return [action for action in actions if isinstance(action, TOLD)]


def sharing(share, prefetch=10):
    """Return a rig with one stream that has *share* of its prefetch."""
    rig = Rig()
    actions = rig.post(Attached(1, None, ("id", "message"), prefetch, share=share))
    assert told(actions) == [KeepsShare(1, min(share, prefetch or 100))]
    rig.post(polled("0", EMPTY))
    return rig


def test_it_wants_more_only_for_what_is_due():
    rig = sharing(0)
    later_ns = START_NS + 5 * SECOND_NS
    assert told(rig.due(1, time_next_ns=later_ns)) == []
    assert rig.state.wake_ns() == later_ns
    rig.now_ns = later_ns
    assert told(rig.post(Tick())) == [WantShare(1)]


def test_a_share_for_a_stream_that_is_gone_is_passed_over():
    assert told(sharing(1).post(ShareGiven(9, 3))) == []


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


def test_one_with_rows_of_others_does_not_wait_for_a_shard_that_nobody_dispatches():
    rig = TableRig()
    rig.post(Deposed("0", "its server is away"))
    join(rig, 5)
    assert finished(rig.post(WaitOver(1))) == []
    assert finished(rig.post(WaitOver(1, has_rows_elsewhere=True))) == [1]


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
