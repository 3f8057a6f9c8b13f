"""Keys that streams name are read apart, and whoever names them takes their messages alone."""

from streamfrom.engine.messaging.queue.poll import PollResult, TierRead
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey


NOW_NS = 1000
A = frozenset({b"'a'"})


def message(ident, time_next_ns=0, key=b""):
    return MessageKey(b"%d" % ident, 50, time_next_ns, key)


def read(*messages, key=b"", more=False):
    fresh = [one._replace(key=key) for one in messages if not one.time_next_ns]
    timed = [one._replace(key=key) for one in messages if one.time_next_ns]
    return TierRead(50, fresh, more, timed, False, 0, FOREVER_NS, key)


def polled(queue, *reads, is_of_named=False):
    queue.poll_finished(PollResult(reads, is_of_named), NOW_NS)


def ids(messages):
    return [int(one.id) for one in messages]


def named(limit=100):
    queue = ShardQueue(limit)
    assert queue.name_keys(A)
    assert not queue.name_keys(A)
    assert queue.poll_started(NOW_NS).named == (b"'a'",)
    return queue


def test_named_keys_that_were_left_out_are_asked_for_by_themselves():
    queue = named()
    polled(queue, read(message(1), message(2), key=b"'a'", more=True), read(message(5)))
    queue.take(1, NOW_NS, A)
    assert queue.next_poll_ns(queue.named) == 0
    assert queue.next_poll_ns() is None


def test_a_follower_has_its_key_where_streams_name_it_though_no_poll_has_found_it():
    queue = named()
    queue.following[b"7"] = message(7, key=b"'a'")
    queue.following[b"8"] = message(8, key=b"'b'")
    polled(queue)
    assert ids(queue.take(9, NOW_NS, A)) == [7]
    assert ids(queue.take(9, NOW_NS)) == [8]
