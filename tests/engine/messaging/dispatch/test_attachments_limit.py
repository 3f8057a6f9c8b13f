"""A stream with an end: how long it waits for its first message, what it gives, and when it is over."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Claim,
    Deposed,
    Detached,
    Elected,
    Finish,
    Left,
    ReceiverReady,
    WaitOver,
)
from streamfrom.engine.messaging.dispatch.table_state import POLL_KEYS_MIN
from streamfrom.engine.messaging.leases.returns import Shorten
from streamfrom.engine.messaging.queue.poll import PollResult
from tests.engine.messaging.job_ends import poll_failed, polled
from tests.engine.messaging.queue.test_shard_queue import tier
from tests.engine.messaging.table_rig import EMPTY, TableRig, claimed, delivered


COLUMNS = ("id", "message")


def join(rig, rows_max, receiver=1):
    return rig.post(Attached(receiver, None, COLUMNS, None, rows_max))


def finished(actions):
    return [action.receiver for action in actions if isinstance(action, Finish)]


def win(rig, actions):
    (claim,) = (action for action in actions if isinstance(action, Claim))
    return rig.won(claim)


def test_it_gives_what_is_due_and_ends():
    rig = TableRig(batch=10)
    join(rig, 5)
    actions = win(rig, rig.post(polled("0", PollResult((tier([1, 2]),)))))
    assert delivered(actions) == {1: [1, 2]}
    assert finished(actions) == [], "its socket has not taken them yet"
    assert finished(rig.post(ReceiverReady(1))) == [1]
    assert rig.state.receivers == 0


def test_it_gives_no_more_than_its_limit_in_one_claim_whatever_the_batch():
    rig = TableRig(batch=10)
    join(rig, 15)
    actions = win(rig, rig.post(polled("0", PollResult((tier(list(range(40))),)))))
    assert delivered(actions) == {1: list(range(15))}
    assert finished(rig.post(ReceiverReady(1))) == [1]
    assert rig.state.held == 15


def test_one_of_more_than_a_claim_takes_several():
    rig = TableRig(cache=100)
    join(rig, 80)
    actions = win(rig, rig.post(polled("0", PollResult((tier(list(range(90))),)))))
    assert delivered(actions) == {1: list(range(64))}, (
        "as much as bodies may take that nobody saw"
    )
    actions = rig.post(ReceiverReady(1))
    assert finished(actions) == []
    assert delivered(win(rig, actions)) == {1: list(range(64, 80))}
    assert finished(rig.post(ReceiverReady(1))) == [1]


def test_it_waits_for_the_first_message_for_ever():
    rig = TableRig()
    join(rig, 5)
    assert finished(rig.post(polled("0", EMPTY))) == []
    assert finished(rig.later(5)) == []
    assert delivered(win(rig, rig.due(7))) == {1: [7]}
    assert finished(rig.post(ReceiverReady(1))) == [1]


def test_a_wait_that_is_over_is_an_empty_answer_once_it_is_known_that_nothing_is_due():
    rig = TableRig()
    join(rig, 5)
    assert finished(rig.post(WaitOver(1))) == [], "the poll that its coming caused goes on"
    assert finished(rig.post(polled("0", EMPTY))) == [1]
    assert rig.post(WaitOver(1)) == []


def test_a_wait_that_is_over_takes_what_is_due():
    rig = TableRig()
    join(rig, 5)
    rig.post(WaitOver(1))
    actions = rig.post(polled("0", PollResult((tier([1]),))))
    assert finished(actions) == []
    assert delivered(win(rig, actions)) == {1: [1]}
    assert finished(rig.post(ReceiverReady(1))) == [1]


def test_a_wait_that_is_over_asks_where_others_have_streams_already():
    rig = TableRig().attach(9)
    join(rig, 5)
    assert finished(rig.post(WaitOver(1))) == [1]
    join(rig, 5, receiver=2)
    rig.post(Changed("0"))
    assert finished(rig.post(WaitOver(2))) == [], "a poll will tell what has changed"


def test_it_does_not_end_while_a_shard_does_not_answer():
    rig = TableRig()
    join(rig, 5)
    rig.post(WaitOver(1))
    assert finished(rig.post(poll_failed("0", "gone"))) == []
    rig.later(0.05)
    assert finished(rig.post(polled("0", EMPTY))) == [1]


def test_one_that_has_rows_does_not_wait_for_a_shard_that_fails():
    rig = TableRig(shards=("-80", "80-"))
    join(rig, 5)
    rig.post(poll_failed("80-", "gone"))
    win(rig, rig.post(polled("-80", PollResult((tier([1]),)))))
    assert finished(rig.post(ReceiverReady(1))) == [1]


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


def test_what_it_gave_is_held_by_its_lease_alone():
    rig = TableRig()
    join(rig, 1)
    win(rig, rig.post(polled("0", PollResult((tier([1]),)))))
    rig.post(ReceiverReady(1))
    assert rig.post(Detached(1)) == []
    assert rig.state.held == 1
    (shorten,) = rig.post(Left(1))
    assert isinstance(shorten, Shorten), "so its shell says nothing of the kind"


def test_one_that_is_claimed_for_is_given_its_row_before_it_ends():
    rig = TableRig()
    join(rig, 1)
    rig.post(polled("0", EMPTY))
    actions = rig.due(1)
    assert claimed(actions) == [[1]]
    assert finished(rig.post(WaitOver(1))) == []
    assert delivered(win(rig, actions)) == {1: [1]}
