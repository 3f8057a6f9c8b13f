from streamfrom.engine.messaging.dispatch.shard_state import LINGER_NS, ShardState
from streamfrom.engine.messaging.queue.poll import PollResult
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey


SECOND_NS = 10**9
GRACE_NS = 30 * SECOND_NS
NOW_NS = 10**12
INTERVAL_NS = 5 * SECOND_NS


def shard(*keys):
    made = ShardState("-80", ShardQueue(10))
    made.join(NOW_NS)
    for key in keys:
        made.queue.add(key, NOW_NS)
    return made


def polled(made, now_ns=NOW_NS):
    assert made.polls.start(now_ns)
    made.polled(PollResult(()), now_ns, INTERVAL_NS)
    return made


def test_streams_are_lost_a_grace_after_the_first_failure_of_any_kind():
    made = shard()
    assert made.lost_ns(GRACE_NS) == FOREVER_NS
    made.health.failed("refused", NOW_NS + 7, GRACE_NS)
    made.claiming.failed("gone", NOW_NS + 5, GRACE_NS)
    assert made.lost_ns(GRACE_NS) == NOW_NS + 5 + GRACE_NS


def test_a_shard_whose_last_receiver_has_left_keeps_its_keys_for_a_while():
    made = polled(shard())
    made.queue.add(MessageKey(b"1", 1, NOW_NS + 5), NOW_NS)
    made.settled(NOW_NS, FOREVER_NS)
    made.leave(NOW_NS)
    made.linger()
    assert (made.wake_ns, made.wake_ready_ns) == (NOW_NS + LINGER_NS, FOREVER_NS)
    assert len(made.queue) == 1
    made.join(NOW_NS + 5)
    assert made.lingers_until_ns == 0
    assert made.polls.start(NOW_NS + 5) is None, "something is due"


def test_what_fails_is_not_kept():
    made = polled(shard(MessageKey(b"1", 1, NOW_NS + 5)))
    made.health.failed("refused", NOW_NS, GRACE_NS)
    made.leave(NOW_NS)
    assert (made.lingers_until_ns, len(made.queue)) == (0, 0)
