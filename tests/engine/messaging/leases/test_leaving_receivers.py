import pytest

from streamfrom.engine.messaging.leases.leases import Leases
from streamfrom.engine.messaging.leases.leaving_receivers import (
    SHORTEN_AGAIN_NS,
    LeavingReceivers,
)
from streamfrom.engine.messaging.leases.unwritten_leases import UnwrittenLeases
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.table.message import FOREVER_NS, ClaimedRow, MessageKey


NOW_NS = 10**12
DUE_NS = NOW_NS + 5
END_NS = NOW_NS + 100
GONE = 7


class Scene:
    """A receiver that held messages 1 and 2, and has left."""

    def __init__(self):
        self.queue = ShardQueue(10)
        self.leases = Leases()
        self.unwritten = UnwrittenLeases(self.queue.unwritten, self.leases.shown_ns)
        self.leaving = LeavingReceivers(self.leases, self.unwritten, self.queue)
        for ident in (b"1", b"2"):
            self.queue.add(MessageKey(ident, 0, END_NS), NOW_NS)
        self.leases.give(GONE, [ClaimedRow(i, "0", 0, 0, END_NS, b"") for i in (b"1", b"2")])
        self.leaving.add(GONE, DUE_NS)

    def due_ns(self, ident):
        key = self.queue.get(ident)
        assert key is not None
        return key.time_next_ns

    def next_ids(self, now_ns=NOW_NS):
        found = self.leaving.next(now_ns)
        return None if found is None else sorted(lease.id for lease in found[1])


def test_a_clock_that_is_set_back_makes_nothing_late_that_was_held():
    scene = Scene()
    scene.leaving.clock_set_back(60)
    found = scene.leaving.next(NOW_NS)
    assert found is not None
    assert found[2] == DUE_NS - 60


def test_what_a_receiver_held_is_due_sooner_and_then_it_is_forgotten():
    scene = Scene()
    assert scene.leaving.next_ns() <= NOW_NS
    assert scene.next_ids() == [b"1", b"2"]
    assert (scene.leaving.next_ns(), scene.next_ids()) == (FOREVER_NS, None), "one at a time"
    assert not scene.leaving.shortened(GONE, (b"1", b"2"), NOW_NS)
    assert [scene.due_ns(ident) for ident in (b"1", b"2")] == [DUE_NS] * 2
    assert scene.next_ids() is None
    assert GONE not in scene.leaving


def test_a_row_that_somebody_holds_is_tried_again_after_a_pause_that_doubles():
    scene, now_ns = Scene(), NOW_NS
    for pause_ns in (SHORTEN_AGAIN_NS, 2 * SHORTEN_AGAIN_NS):
        scene.leases.give(GONE, [ClaimedRow(b"2", "0", 0, 0, now_ns + 10**12, b"")])
        assert b"2" in scene.next_ids(now_ns)
        scene.leaving.shortened(GONE, (), now_ns)
        assert scene.leaving.next_ns() == now_ns + pause_ns
        assert scene.next_ids(now_ns + pause_ns - 1) is None
        now_ns += pause_ns
    scene.leaving.retry(NOW_NS)
    assert scene.leaving.next_ns() == NOW_NS


@pytest.mark.parametrize("known", [None, MessageKey(b"1", 0, NOW_NS)])
def test_a_message_that_the_queue_knows_otherwise_is_polled_for(known):
    scene = Scene()
    scene.queue.remove(b"1")
    if known is not None:
        scene.queue.add(known, NOW_NS)
    scene.next_ids()
    assert scene.leaving.shortened(GONE, (b"1", b"2"), NOW_NS)


def test_a_message_that_another_receiver_was_sent_meanwhile_keeps_that_lease():
    scene = Scene()
    scene.next_ids()
    # A poll has seen the row before the statement's answer came.
    scene.leases.give(GONE + 1, [ClaimedRow(b"1", "0", 1, DUE_NS, END_NS, b"")])
    scene.leaving.shortened(GONE, (b"1", b"2"), NOW_NS)
    found = {lease.id: lease.until_ns for lease in scene.leases}
    assert found == {b"1": END_NS, b"2": DUE_NS}
