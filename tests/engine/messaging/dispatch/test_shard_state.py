from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.queue.poll import PollResult
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.table.message import FOREVER_NS


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
