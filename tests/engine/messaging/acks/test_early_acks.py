import pytest

from streamfrom.engine.messaging.acks.early_acks import (
    FAILED_FIRST_NS,
    FAILED_LAST_NS,
    GATHER_NS,
    UNWRITTEN_MAX,
    EarlyAcks,
)
from streamfrom.engine.messaging.table.message import FOREVER_NS


ACKED_NS = 77


def ids(*numbers):
    return [b"%d" % number for number in numbers]


def acked(*numbers):
    acks = EarlyAcks({})
    acks.is_on = True
    acks.add(ids(*numbers), ACKED_NS, 0)
    return acks


def test_acks_are_gathered_for_some_milliseconds():
    acks = acked(1, 2)
    acks.add(ids(3), ACKED_NS + 1, GATHER_NS - 1)
    assert acks.next_ns() == GATHER_NS
    assert acks.next_write(GATHER_NS - 1) == ()
    assert acks.next_write(GATHER_NS) == (
        (b"1", ACKED_NS),
        (b"2", ACKED_NS),
        (b"3", ACKED_NS + 1),
    )
    assert acks.next_write(GATHER_NS) == (), "one statement at a time"
    assert acks.next_ns() == FOREVER_NS
    assert b"3" in acks
    assert acks.written((), 2 * GATHER_NS, {}) == tuple(ids(1, 2, 3))
    assert (len(acks), b"3" in acks, acks.next_ns()) == (0, False, FOREVER_NS)


def test_a_writing_that_failed_is_repeated_and_until_then_no_ack_is_taken():
    acks = acked(1)
    now_ns, pause_ns = GATHER_NS, FAILED_FIRST_NS
    for _ in range(20):
        assert acks.next_write(now_ns) == ((b"1", ACKED_NS),)
        assert acks.written(None, now_ns, {}) == ()
        assert not acks.takes_more
        assert acks.next_ns() == now_ns + pause_ns
        now_ns, pause_ns = now_ns + pause_ns, min(2 * pause_ns, FAILED_LAST_NS)
    acks.next_write(now_ns)
    assert acks.written((), now_ns, {}) == (b"1",)
    assert acks.takes_more


@pytest.mark.parametrize("is_locked", [False, True])
def test_whoever_needs_the_rows_need_not_wait(is_locked):
    acks = acked(1)
    if is_locked:
        acks.next_write(GATHER_NS)
        acks.written(ids(1), GATHER_NS, {})
    acks.hurry()
    assert acks.next_write(GATHER_NS) == ((b"1", ACKED_NS),)
    acks.hurry()
    acks.written((), GATHER_NS, {})
    acks.hurry()
    assert acks.next_ns() == FOREVER_NS


def test_a_server_that_does_not_keep_up_is_waited_for():
    acks = acked(*range(UNWRITTEN_MAX))
    assert not acks.takes_more
    acks.next_write(GATHER_NS)
    acks.written((), GATHER_NS, {})
    assert acks.takes_more
