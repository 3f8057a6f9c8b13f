from streamfrom.engine.messaging.gates.set_aside import (
    PAUSE_FIRST_NS,
    SET_ASIDE_MAX,
    UNLISTED_PAUSE_NS,
    SetAside,
)
from streamfrom.engine.messaging.table.message import MessageKey, Refused, Tried


NO = Refused(Tried.CLAIM, "CONSTRAINT `c` failed")
KEY = MessageKey(b"1", 50, 7)


def test_beyond_the_bound_rows_are_tried_again_and_not_remembered():
    aside = SetAside({})
    many = {b"%d" % each: NO for each in range(SET_ASIDE_MAX)}
    assert len(aside.refuse(many, 0)) == SET_ASIDE_MAX
    assert aside.refuse({b"x": NO}, 0) == []
    assert aside.wait(KEY._replace(id=b"x"), 0).time_next_ns == UNLISTED_PAUSE_NS
    assert (len(aside), len(aside.timers)) == (SET_ASIDE_MAX, 0)


def test_a_clock_that_is_set_back_makes_no_try_late():
    aside, ahead_ns = SetAside({}), 3600 * PAUSE_FIRST_NS
    aside.refuse({b"1": NO}, ahead_ns)
    aside.wait(KEY, ahead_ns)
    aside.clock_set_back(ahead_ns)
    assert aside.timers[b"1"].time_next_ns == aside.rows[b"1"].next_ns == PAUSE_FIRST_NS


def test_what_is_left_alone_is_what_was_refused_for_the_same_reason_and_waits():
    aside = SetAside({})
    aside.refuse({b"1": NO, b"2": Refused(Tried.PURGE, "no")}, 0)
    assert aside.left_out(Tried.PURGE, 0) == [b"2"]
    assert aside.left_out(Tried.PURGE, PAUSE_FIRST_NS) == []
