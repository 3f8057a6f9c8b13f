from streamfrom.engine.messaging.acks.early_acks import (
    FAILED_FIRST_NS,
    FAILED_LAST_NS,
    GATHER_NS,
    UNWRITTEN_MAX,
    EarlyAcks,
)


ACKED_NS = 77


def ids(*numbers):
    return [b"%d" % number for number in numbers]


def acked(*numbers):
    acks = EarlyAcks({})
    acks.add(ids(*numbers), ACKED_NS, 0)
    return acks


def test_a_writing_that_failed_is_repeated_and_until_then_no_ack_is_taken():
    acks = acked(1)
    now_ns, pause_ns = GATHER_NS, FAILED_FIRST_NS
    for _ in range(20):
        assert acks.next_write(now_ns) == ((b"1", ACKED_NS),)
        assert acks.written(None, now_ns) == ()
        assert not acks.takes_more
        assert acks.next_ns() == now_ns + pause_ns
        now_ns, pause_ns = now_ns + pause_ns, min(2 * pause_ns, FAILED_LAST_NS)
    acks.next_write(now_ns)
    assert acks.written((), now_ns) == (b"1",)
    assert acks.takes_more


def test_a_server_that_does_not_keep_up_is_waited_for():
    acks = acked(*range(UNWRITTEN_MAX))
    assert not acks.takes_more
    acks.next_write(GATHER_NS)
    acks.written((), GATHER_NS)
    assert acks.takes_more
