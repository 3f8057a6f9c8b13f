import pytest

from streamfrom.engine.messaging.leases.unwritten_leases import (
    AGAIN_NS,
    WRITTEN_AT_ONCE,
    UnwrittenLeases,
)
from streamfrom.engine.messaging.table.message import FOREVER_NS, LateWrites, MessageKey


MANY = 10_000


def key(number, until_ns=100):
    return MessageKey(b"%d" % number, 50, until_ns)


def sent(*numbers, write_ns=10):
    leases = UnwrittenLeases({}, {})
    leases.sent([key(one) for one in numbers], write_ns)
    return leases


def test_leases_are_written_when_their_delay_is_over_the_oldest_first():
    leases = sent(1, 2)
    leases.sent([key(3)], 20)
    assert leases.next_ns() == 10
    assert leases.next_write(9, MANY) == ()
    assert leases.next_write(10, MANY) == (b"1", b"2")
    assert leases.next_write(30, MANY) == (), "one statement at a time"
    assert leases.next_ns() == FOREVER_NS
    assert leases.written(LateWrites(), 11, {}) == ([], [b"1", b"2"])
    leases.forget([b"1", b"2"])
    assert leases.next_ns() == 20
    assert list(leases) == [b"3"]


def test_a_clock_that_is_set_back_makes_no_message_late_whose_lease_is_over_unwritten():
    leases = sent(1)
    leases.clock_set_back(60)
    assert leases.timers == {b"1": key(1, 40)}


def test_what_was_acked_is_not_written():
    leases = sent(1, 2)
    leases.forget([b"1", b"7"])
    assert (b"1" in leases, b"2" in leases, len(leases)) == (False, True, 1)
    assert leases.next_write(10, MANY) == (b"2",)
    leases.forget([b"2"])
    assert leases.written(LateWrites(), 11, {}) == ([], [b"2"])
    assert leases.next_ns() == FOREVER_NS


@pytest.mark.parametrize(
    ("result", "again_ns"),
    [
        (None, {}),
        (LateWrites(locked=(b"1", b"2")), {}),
        (LateWrites(), dict.fromkeys((b"1", b"2"), 5 + AGAIN_NS)),
    ],
    ids=["failed", "locked", "refused"],
)
def test_too_many_that_the_server_does_not_write_are_tried_after_a_pause(result, again_ns):
    leases = sent(1, 2)
    assert leases.next_write(5, 1) == (b"1", b"2")
    leases.written(result, 5, again_ns)
    assert leases.next_write(6, 0) == ()
    assert leases.next_ns() == 5 + AGAIN_NS
    assert leases.next_write(5 + AGAIN_NS, 0) == (b"1", b"2")


def test_one_statement_writes_so_many():
    leases = sent(*range(WRITTEN_AT_ONCE + 1))
    assert len(leases.next_write(10, MANY)) == WRITTEN_AT_ONCE
    leases.written(LateWrites(), 11, {})
    assert leases.next_write(11, MANY) == (b"%d" % WRITTEN_AT_ONCE,)
