"""Histories made by hand that break the order: each check of `tests.sim.ordered_queue` fails on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimedRow
from tests.sim.consumer import SECOND_NS
from tests.sim.memory_store import MemoryStore, StoredRow
from tests.sim.ordered_queue import HOT, Ordered
from tests.sim.settings import KEYSPACE, TABLE
from tests.virtual_loop import VirtualClock, run_virtual


NOW_NS = 10**15
OTHER = b"11"


def sent(*rows, in_order=1, order=",vt_key=tenant,vt_max_per_key=1", touched_ns=0):
    """Send message 1 of a table that has *rows*, as its claim left them."""
    world = Ordered(1)
    world.in_order, world.settings = in_order, replace(world.settings, order=order)
    world.store = MemoryStore(VirtualClock())
    own = StoredRow(b"1", epoch=1, time_next_ns=NOW_NS, key=HOT)
    world.store.insert(KEYSPACE, "0", TABLE, own, *rows)
    world.touched_ns.update({b"1": touched_ns})
    lease_ns = NOW_NS + round(world.settings.ack_wait_s * SECOND_NS)
    world.check_turn(ClaimedRow(b"1", "0", 0, 5, lease_ns, b""))


def other(ident=b"2", key=HOT, epoch=0, time_next_ns=6, **more):
    return StoredRow(ident, key=key, epoch=epoch, time_next_ns=time_next_ns, **more)


@pytest.mark.parametrize(
    "row",
    [
        other(),
        other(epoch=3, time_next_ns=PARKED_NS),
        other(epoch=3, time_acked_ns=7),
        other(key=OTHER, epoch=1),
        other(key=OTHER, time_next_ns=0),
        other(time_next_ns=NOW_NS),
        other(priority=51, time_next_ns=0),
    ],
)
def test_a_history_that_keeps_the_order(row):
    sent(row)


@pytest.mark.parametrize("time_next_ns", [6, 10 * NOW_NS])
def test_one_that_passes_a_retry_of_its_key(time_next_ns):
    with pytest.raises(AssertionError, match="passed one of its key"):
        sent(other(epoch=1, time_next_ns=time_next_ns))


def test_one_more_of_a_key_than_allowed():
    started = [other(b"%d" % ident, epoch=1) for ident in (2, 3)]
    sent(*started[:1], in_order=2)
    with pytest.raises(AssertionError, match="passed one of its key"):
        sent(*started, in_order=2)


@pytest.mark.parametrize(
    "row", [other(time_next_ns=0), other(priority=49), other(time_next_ns=None)]
)
def test_one_that_goes_before_its_turn(row):
    with pytest.raises(AssertionError, match="was to go first"):
        sent(row)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (other(key=OTHER, epoch=1), "passed one of its key"),
        (other(key=None, time_next_ns=0), "was to go first"),
    ],
)
def test_strict_order_is_over_all_keys(row, words):
    with pytest.raises(AssertionError, match=words):
        sent(row, order=",vt_order=strict")


def test_histories_of_ordered_queues_have_messages_that_wait():
    worlds = [Ordered(seed) for seed in (2, 3)]
    for world in worlds:
        run_virtual(world.run())
    assert {world.is_strict for world in worlds} == {True, False}
    assert sum(world.waited for world in worlds) > 20
