import pytest

from streamfrom.engine.messaging.order.group_watch import AGAIN_NS, GroupWatch
from streamfrom.engine.messaging.table.groups import FireRequest, FireResult
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey


INTERVAL_NS = 30 * 10**9
WALK = FireRequest()


def watching(**waiting):
    """Return a watch that has walked at moment 0 and found messages that wait: c3=b"1" for 3 that waits for 1."""
    watch = GroupWatch()
    watch.configure(is_on=True)
    assert watch.next(0) == WALK
    found = {name[1:].encode(): member for name, member in waiting.items()}
    assert watch.answered(FireResult(waiting=found), 0, INTERVAL_NS) == []
    return watch


def answered(watch, now_ns=0, **result):
    return watch.answered(FireResult(**result), now_ns, INTERVAL_NS)


def test_only_the_member_that_is_known_to_be_left_makes_it_ask():
    watch = watching(c3=b"2", c4=b"2", c5=b"9")
    watch.gone([b"1"])
    assert watch.next(0) is None
    watch.gone([b"2"])
    assert watch.next(0) == FireRequest((b"3", b"4"))
    answered(watch, waiting={b"4": b"1"}, fired=(MessageKey(b"3", 5, 0),))
    assert len(watch) == 2
    watch.gone([b"1"])
    assert watch.next(0) == FireRequest((b"4",))


def test_an_ack_while_a_statement_asks_is_not_missed():
    watch = watching(c3=b"2")
    watch.gone([b"2"])
    watch.next(0)
    # Its read began before the ack of 1, and ends after it.
    watch.gone([b"1"])
    answered(watch, waiting={b"3": b"1"})
    assert watch.next(0) == FireRequest((b"3",))


def test_a_message_that_may_be_another_than_before_is_asked_about():
    watch = watching(c3=b"2", c4=b"2")
    watch.changed([b"3", b"8"])
    assert watch.next(0) == FireRequest((b"3",))
    watch.changed([b"3"])
    answered(watch, waiting={b"3": b"2"})
    assert watch.next(0) == FireRequest((b"3",))


def test_a_statement_that_names_no_messages_causes_a_walk_and_many_do_not_cause_one_each():
    watch = watching()
    watch.changed(None)
    assert watch.next(0) is None, "nothing is held"
    watch = watching(c3=b"2")
    watch.changed(None)
    assert watch.next(10) == WALK
    watch.changed(None)
    answered(watch, 20, waiting={b"3": b"2"})
    # It took 10: nine times as long passes before the next one.
    assert watch.next_ns() == 20 + 90
    assert watch.next(110) == WALK


def test_a_walk_forgets_what_is_held_no_more():
    watch = watching(c3=b"2", c4=b"2")
    watch.next(INTERVAL_NS)
    answered(watch, INTERVAL_NS, waiting={b"4": b"2"})
    assert len(watch) == 1
    watch.gone([b"4"])
    assert len(watch) == 0


@pytest.mark.parametrize("request_of", ["walk", "names"])
def test_what_failed_is_tried_again_after_a_pause(request_of):
    watch = watching(c3=b"2")
    now_ns = INTERVAL_NS if request_of == "walk" else 0
    if request_of == "names":
        watch.held([b"3"])
    asked = watch.next(now_ns)
    assert asked is not None
    assert watch.answered(None, now_ns, INTERVAL_NS) == []
    assert watch.next_ns() == now_ns + AGAIN_NS
    assert watch.next(now_ns + AGAIN_NS - 1) is None
    assert watch.next(now_ns + AGAIN_NS) == asked


def test_an_answer_to_what_was_asked_before_all_was_forgotten_counts_for_nothing():
    watch = watching(c3=b"2")
    watch.gone([b"2"])
    watch.next(0)
    watch.clear()
    assert watch.next(0) is None, "one statement at a time"
    assert answered(watch, waiting={b"3": b"1"}, dead={b"3": b"b"}) == []
    assert (len(watch), watch.next(0)) == (0, WALK)


def test_a_dead_member_is_told_once():
    watch = watching()
    watch.held([b"3"])
    watch.next(0)
    dead = {"waiting": {b"3": b"2"}, "dead": {b"3": b"batch"}}
    assert answered(watch, **dead) == [(b"3", b"2", b"batch")]
    watch.next(INTERVAL_NS)
    assert answered(watch, INTERVAL_NS, **dead) == []


def test_where_groups_are_taken_away_one_walk_frees_what_is_held():
    watch = watching(c3=b"2")
    watch.configure(is_on=False)
    watch.clear()  # nobody listens for a while
    assert watch.next(0) == WALK
    answered(watch, place=(5, b"3"), fired=(MessageKey(b"3", 5, 0),))
    assert watch.next(0) == FireRequest(place=(5, b"3"))
    answered(watch)
    assert (watch.next(10**18), watch.next_ns()) == (None, FOREVER_NS)
