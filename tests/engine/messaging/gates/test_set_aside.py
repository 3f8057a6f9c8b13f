from streamfrom.engine.messaging.gates.set_aside import (
    PAUSE_FIRST_NS,
    PAUSE_LAST_NS,
    SET_ASIDE_MAX,
    UNLISTED_PAUSE_NS,
    SetAside,
)
from streamfrom.engine.messaging.table.message import MessageKey, Refused, Tried


NO = Refused(Tried.CLAIM, "CONSTRAINT `c` failed")
KEY = MessageKey(b"1", 50, 7)


def test_a_row_is_new_once_and_tried_again_ever_later():
    aside, now_ns, pauses = SetAside({}), 0, []
    ((ident, row),) = aside.refuse({b"1": NO}, now_ns)
    assert (ident, row.tried, row.error, row.since_ns, row.tries) == (b"1", *NO, 0, 1)
    for _ in range(14):
        pauses.append((row.next_ns - now_ns) // PAUSE_FIRST_NS)
        now_ns = row.next_ns
        assert aside.refuse({b"1": NO}, now_ns) == []
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert pauses[-1] == PAUSE_LAST_NS // PAUSE_FIRST_NS
    assert (row.tries, row.since_ns) == (15, 0)


def test_a_poll_is_believed_once_it_shows_another_value():
    aside = SetAside({})
    aside.refuse({b"1": NO}, 0)
    aside.wait(KEY, 0)
    for seen in (KEY, KEY):
        aside.polled([seen, KEY._replace(id=b"2")], 1)
        assert b"1" in aside.timers
    aside.polled([KEY._replace(time_next_ns=8)], 1)
    assert b"1" not in aside.timers
    assert aside.rows[b"1"].next_ns == 1


def test_beyond_the_bound_rows_are_tried_again_and_not_remembered():
    aside = SetAside({})
    many = {b"%d" % each: NO for each in range(SET_ASIDE_MAX)}
    assert len(aside.refuse(many, 0)) == SET_ASIDE_MAX
    assert aside.refuse({b"x": NO}, 0) == []
    assert aside.wait(KEY._replace(id=b"x"), 0).time_next_ns == UNLISTED_PAUSE_NS
    assert (len(aside), len(aside.timers)) == (SET_ASIDE_MAX, 0)


def test_what_is_left_alone_is_what_was_refused_for_the_same_reason_and_waits():
    aside = SetAside({})
    aside.refuse({b"1": NO, b"2": Refused(Tried.PURGE, "no")}, 0)
    assert aside.left_out(Tried.PURGE, 0) == [b"2"]
    assert aside.left_out(Tried.PURGE, PAUSE_FIRST_NS) == []
