"""Which streams can be given rows, in which order, and what makes one ready again."""

from streamfrom.engine.messaging.dispatch.prefetch_windows import PrefetchWindows
from streamfrom.engine.messaging.dispatch.receivers import Receivers, by_room, share_out
from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver


SHARD = ShardState("-", ShardQueue(10))


def receiver(number, *, limit=10, columns=("id",), shards=None):
    return AttachedReceiver(number, shards, columns, None, limit)


def with_receivers(*receivers):
    streams = Receivers(PrefetchWindows({}))
    for one in receivers:
        streams.add(one)
    return streams


def numbers(chosen):
    return [one.id for one in chosen]


def test_who_has_most_room_goes_first_and_among_equal_ones_who_has_waited_longest():
    streams = with_receivers(receiver(1, limit=5), receiver(2), receiver(3))
    assert numbers(streams.choose(SHARD, 9, 10, 0)) == [2, 3, 1]
    assert numbers(streams.choose(SHARD, 2, 10, 0)) == [2, 3]


def test_one_claim_is_for_one_projection_and_for_those_that_cover_the_shard():
    streams = with_receivers(
        receiver(1, shards=frozenset({"80-"})), receiver(2), receiver(3, columns=("id", "body"))
    )
    assert numbers(streams.choose(SHARD, 9, 10, 0)) == [2]


def test_a_full_one_is_ready_again_once_it_has_room_and_its_socket_is_free():
    one = receiver(1, limit=1)
    streams = with_receivers(one)
    one.took(1, 0)
    one.has_batch = True
    del streams.ready[1]
    streams.full[1] = None
    streams.is_free(1)
    assert not streams.ready
    assert streams.give_room(1) is one
    assert list(streams.ready) == [1]
    assert streams.is_freed
    assert not streams.full


def test_who_was_reserved_in_vain_is_the_first_again():
    one, two = receiver(1), receiver(2)
    streams = with_receivers(one, two)
    del streams.ready[2]
    streams.open(two, is_first=True)
    assert list(streams.ready) == [2, 1]


def test_rows_are_shared_out_by_room():
    most, least = receiver(1, limit=9), receiver(2, limit=2)
    assert sorted([least, most], key=by_room) == [most, least]
    assert share_out(9, [most, least], 8) == [8, 1]
