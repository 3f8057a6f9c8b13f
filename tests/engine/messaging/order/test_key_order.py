"""What waits for others of its key, and what lets it go."""

import pytest

from streamfrom.engine.messaging.order.key_order import (
    ASK_FIRST_NS,
    ASK_LAST_NS,
    LOCKED_PAUSE_NS,
    PASSED_OVER_MAX,
    KeyOrder,
    may_go,
)
from streamfrom.engine.messaging.queue.poll import PollResult, TierRead
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.table.message import (
    FOREVER_NS,
    ClaimedRow,
    ClaimResult,
    KeyFound,
    MessageKey,
)


NOW_NS = 10**12
LATER_NS = NOW_NS + 10**10
ASKED_NS = NOW_NS + ASK_FIRST_NS


def key(ident, time_next_ns=0, priority=50):
    return MessageKey(b"%d" % ident, priority, time_next_ns)


def row(ident, due_next_ns=LATER_NS):
    return ClaimedRow(b"%d" % ident, "0", 0, 0, due_next_ns, b"")


def going(found, at_most=9, in_order=1):
    return [int(one.id) for one in may_go(found, at_most, in_order, NOW_NS)]


def test_one_goes_at_a_time_and_what_has_started_holds_back_the_others():
    heads = (key(1), key(2), key(3))
    assert going(KeyFound((), heads)) == [1]
    assert going(KeyFound((), heads), in_order=2) == [1, 2]
    assert going(KeyFound((), heads), in_order=2, at_most=1) == [1]
    assert going(KeyFound((key(9, LATER_NS),), heads)) == []
    assert going(KeyFound((key(9, LATER_NS),), heads), in_order=2) == [1]
    # Its retry is due: it goes, and nobody with it.
    assert going(KeyFound((key(9, NOW_NS),), heads)) == [9]
    assert going(KeyFound((key(9, NOW_NS),), heads), in_order=2) == [9, 1]


class Rig:
    """A queue with an order, and short words for what a claim finds."""

    def __init__(self, in_order=1, column="tenant"):
        self.queue = ShardQueue(100)
        self.order = KeyOrder(in_order, self.queue, column)

    def claimed(self, asked, found, *won, gone=(), missing=()):
        """Claim *asked* (ids) of key k; *won* of what may go, and the rest locked but for *missing*."""
        chosen = {one.id: one for one in may_go(found, len(asked), self.order.in_order, NOW_NS)}
        passed_over = {
            i: 0 for i in chosen if i not in {*map(ident, won), *map(ident, missing)}
        }
        result = ClaimResult(
            tuple(row(one) for one in won),
            passed_over,
            asked_keys={ident(one): b"'k'" for one in asked if one not in missing},
            found={b"'k'": found},
            chosen=chosen,
        )
        for one in asked:
            self.queue.remove(ident(one))
        return self.order.claimed([*map(ident, asked)], result, set(map(ident, gone)), NOW_NS)

    def times(self):
        return {int(i): one.time_next_ns for i, one in self.queue.following.items()}

    def due_ns(self, one):
        waiting = self.queue.get(one)
        assert waiting is not None
        return waiting.time_next_ns


def ident(number):
    return b"%d" % number


def test_the_follower_waits_until_the_first_is_due_again_or_acked():
    rig = Rig()
    assert not rig.claimed([1, 2, 3], KeyFound((), (key(1), key(2))), 1)
    assert rig.times() == {2: ASKED_NS}
    assert not rig.order.freed([b"77"], NOW_NS)
    assert rig.times() == {2: ASKED_NS}
    assert not rig.order.freed([b"1"], NOW_NS)
    assert rig.times() == {2: 0}
    # It is the last one.
    rig.claimed([2], KeyFound((), (key(2),)), 2)
    assert rig.times() == {}


def test_the_rows_are_asked_again_after_pauses_that_double_until_the_first_is_due():
    rig = Rig()
    started = KeyFound((key(1, NOW_NS + 100 * ASK_LAST_NS),), (key(2),))
    pauses_ns = []
    for _ in range(9):
        rig.claimed([2], started)
        pauses_ns.append(rig.times()[2] - NOW_NS)
    assert pauses_ns[:3] == [ASK_FIRST_NS, 2 * ASK_FIRST_NS, 4 * ASK_FIRST_NS]
    assert pauses_ns[-2:] == [ASK_LAST_NS, ASK_LAST_NS]
    # Another follows: that begins anew.
    rig.claimed([3], started._replace(heads=(key(3),)))
    assert rig.times() == {3: ASKED_NS}
    soon = key(1, NOW_NS + LOCKED_PAUSE_NS + 1)
    rig.claimed([3], KeyFound((soon,), (key(3),)))
    assert rig.times() == {3: soon.time_next_ns}


def test_who_was_acked_while_it_was_claimed_holds_nobody_back():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1, gone=[1])
    assert rig.times() == {2: 0}


def test_a_follower_that_is_let_go_while_it_is_claimed_is_asked_for_again_at_once():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    rig.queue.put_in_flight(ident(2))
    assert not rig.order.freed([b"1"], NOW_NS)
    rig.queue.requeue(ident(2), None, NOW_NS)
    # The claim has read the rows before.
    rig.claimed([2], KeyFound((key(1, LATER_NS),), (key(2),)))
    assert rig.due_ns(ident(2)) == 0


def test_an_ack_that_a_claim_of_other_keys_has_written_lets_the_follower_go():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    assert not rig.order.claimed([], ClaimResult(()), [ident(1)], NOW_NS)
    assert rig.due_ns(ident(2)) == 0


def test_the_keys_of_what_has_started_are_known_until_it_is_acked():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    keyless = ClaimResult((row(7),), asked_keys={ident(7): None, ident(8): None})
    rig.order.claimed([ident(7), ident(8)], keyless, (), NOW_NS)
    assert rig.order.started == {ident(1): b"'k'", ident(7): None}
    rig.order.freed([ident(1), ident(7)], NOW_NS)
    assert rig.order.started == {}


def test_a_follower_that_is_gone_itself_takes_a_poll():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    assert rig.order.freed([b"2"], NOW_NS)
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    rig.order.freed([b"1"], NOW_NS)
    assert rig.claimed([2], KeyFound((), ()), missing=[2])


def test_what_somebody_holds_is_tried_again_and_passed_by_nobody():
    rig = Rig()
    rig.claimed([2], KeyFound((), (key(1), key(2))))
    assert rig.times() == {1: NOW_NS + LOCKED_PAUSE_NS}
    rig = Rig()
    rig.claimed([2], KeyFound((key(1, NOW_NS),), (key(2),)))
    assert rig.due_ns(b"1") > NOW_NS
    assert rig.times() == {2: NOW_NS + LOCKED_PAUSE_NS}
    assert not rig.order.freed([b"1"], NOW_NS)
    assert rig.times() == {2: 0}


def test_all_may_be_let_go_and_all_forgotten():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    rig.order.free_all(NOW_NS)
    assert rig.times() == {2: 0}
    rig.order.clear()
    assert rig.queue.following == {}
    assert not rig.order.freed([b"1", b"2"], NOW_NS)


def test_a_poll_passes_over_a_key_as_long_as_its_follower_is_known_and_messages_had_to_wait():
    rig = Rig()
    assert rig.order.passed_over(NOW_NS) == ()
    rig.claimed(list(range(1, 9)), KeyFound((), (key(1), key(2))), 1)
    assert {rig.order.passed_over(NOW_NS) for _ in range(20)} == {(b"'k'",)}
    rig.order.freed([b"2"], NOW_NS)
    assert rig.order.passed_over(NOW_NS) == ()


def test_a_follower_is_put_into_the_queue_when_its_time_comes_whatever_the_queue_knows():
    rig = Rig()
    rig.queue.poll_started(NOW_NS)
    tier = TierRead(50, (key(9),), True, (), True, 0, 5)
    rig.queue.poll_finished(PollResult((tier,)), NOW_NS)
    rig.claimed([1, 2], KeyFound((), (key(1), key(2, 7))), 1)
    assert (b"2" in rig.queue, rig.order.next_ns()) == (False, ASKED_NS)
    rig.order.wake(ASKED_NS - 1)
    assert b"2" not in rig.queue
    rig.order.wake(ASKED_NS)
    assert rig.queue.get(b"2") == key(2, 7)
    assert rig.order.next_ns() == FOREVER_NS
    # A poll that does not read its key keeps it.
    rig.queue.poll_started(ASKED_NS)
    rig.queue.poll_finished(PollResult((tier,)), ASKED_NS)
    assert rig.queue.get(b"2") == key(2, 7)


def test_a_timer_that_is_out_of_date_does_nothing():
    rig = Rig()
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    rig.order.freed([b"1"], NOW_NS)
    rig.claimed([2], KeyFound((), (key(2),)), 2)
    rig.order.wake(LATER_NS)
    assert len(rig.queue) == 0


def test_few_keys_are_passed_over():
    queue = ShardQueue(10_000)
    order = KeyOrder(1, queue, "tenant")
    found: dict[bytes, KeyFound] = {}
    asked: dict[bytes, bytes | None] = {}
    for number in range(PASSED_OVER_MAX + 50):
        first, next_one = key(4 * number), key(4 * number + 1)
        name = b"%d" % number
        found[name] = KeyFound((first._replace(time_next_ns=LATER_NS),), (next_one,))
        asked |= {next_one.id: name, b"%d" % (4 * number + 2): name}
    order.claimed(asked, ClaimResult((), asked_keys=asked, found=found), (), NOW_NS)
    assert len(order.passed_over(NOW_NS)) == PASSED_OVER_MAX


@pytest.mark.parametrize(("column", "closed_ns"), [(None, ASKED_NS), ("tenant", 0)])
def test_in_strict_order_nothing_is_claimed_before_one_that_has_started_is_over(
    column, closed_ns
):
    rig = Rig(column=column)
    assert rig.order.closed_ns() == 0
    rig.claimed([1], KeyFound((), (key(1), key(2))), 1)
    assert rig.order.closed_ns() == closed_ns
    rig.order.freed([b"1"], NOW_NS)
    assert rig.order.closed_ns() == 0


def test_the_key_of_a_follower_is_known_as_long_as_it_follows():
    queue = ShardQueue(9)
    order = KeyOrder(1, queue, "tenant")
    found = KeyFound((key(1, LATER_NS),), (key(2),))
    result = ClaimResult((), asked_keys={b"2": b"'a'"}, found={b"'a'": found})
    order.claimed([b"2"], result, (), NOW_NS)
    assert order.known_keys([b"1", b"2"]) == {b"2": b"'a'"}
    then = KeyFound((key(2, LATER_NS),), (key(3),))
    result = ClaimResult((), asked_keys={b"2": b"'a'"}, found={b"'a'": then})
    order.claimed([b"2"], result, (), NOW_NS)
    assert order.known_keys([b"2", b"3"]) == {b"3": b"'a'"}
    order.freed([b"3"], NOW_NS)
    assert order.known_keys([b"3"]) == {}
