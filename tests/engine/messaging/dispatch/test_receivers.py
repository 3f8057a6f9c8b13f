"""Which streams can be given rows, in which order, and what makes one ready again."""

from streamfrom.engine.messaging.dispatch.receivers import Receivers, by_room, share_out
from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver


SHARD = ShardState("-", ShardQueue(10))


def receiver(number, *, limit=10, columns=("id",), shards=None):
    return AttachedReceiver(number, shards, columns, None, limit)


def with_receivers(*receivers):
    streams = Receivers({})
    for one in receivers:
        streams.add(one)
    return streams


def numbers(chosen):
    return [one.id for one in chosen]


def test_who_has_most_room_goes_first_and_among_equal_ones_who_has_waited_longest():
    streams = with_receivers(receiver(1, limit=5), receiver(2), receiver(3))
    assert numbers(streams.choose(SHARD, 9, 10, 0)) == [2, 3, 1]
    assert numbers(streams.choose(SHARD, 2, 10, 0)) == [2, 3]


def test_rows_are_shared_out_by_room():
    most, least = receiver(1, limit=9), receiver(2, limit=2)
    assert sorted([least, most], key=by_room) == [most, least]
    assert share_out(9, [most, least], 8) == [8, 1]
