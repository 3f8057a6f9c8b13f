"""Histories made by hand that break the order: each check of `tests.sim.ordered_queue` fails on its own."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimedRow
from tests.sim.consumer import SECOND_NS
from tests.sim.memory_store import MemoryStore, StoredRow
from tests.sim.ordered_queue import HOT, Ordered
from tests.sim.settings import KEYSPACE, TABLE
from tests.virtual_loop import VirtualClock


NOW_NS = 10**15
OTHER = b"11"
KEYED, STRICT = ",vt_key=tenant,vt_max_per_key=1", ",vt_order=strict"
PASSED, BEFORE = "passed one of its key", "was to go first"


def other(key=HOT, epoch=0, time_next_ns: int | None = 6, **more):
    return StoredRow(b"2", key=key, epoch=epoch, time_next_ns=time_next_ns, **more)


@pytest.mark.parametrize(
    ("row", "order", "in_order", "broken"),
    [
        (other(), KEYED, 1, None),
        (other(epoch=3, time_next_ns=PARKED_NS), KEYED, 1, None),
        (other(epoch=3, time_acked_ns=7), KEYED, 1, None),
        (other(OTHER, epoch=1), KEYED, 1, None),
        (other(OTHER, time_next_ns=0), KEYED, 1, None),
        (other(time_next_ns=NOW_NS), KEYED, 1, None),
        (other(priority=51, time_next_ns=0), KEYED, 1, None),
        (other(epoch=1), KEYED, 2, None),
        (other(epoch=1), KEYED, 1, PASSED),
        (other(epoch=1, time_next_ns=10 * NOW_NS), KEYED, 1, PASSED),
        (other(time_next_ns=0), KEYED, 1, BEFORE),
        (other(priority=49), KEYED, 1, BEFORE),
        (other(time_next_ns=None), KEYED, 1, BEFORE),
        (other(OTHER, epoch=1), STRICT, 1, PASSED),
        (other(None, time_next_ns=0), STRICT, 1, BEFORE),
    ],
)
def test_a_message_that_is_sent_beside_another_keeps_the_order_or_breaks_it(
    row, order, in_order, broken
):
    world = Ordered(1)
    world.in_order, world.settings = in_order, replace(world.settings, order=order)
    world.store = MemoryStore(VirtualClock())
    own = StoredRow(b"1", epoch=1, time_next_ns=NOW_NS, key=HOT)
    world.store.insert(KEYSPACE, "0", TABLE, own, row)
    lease_ns = NOW_NS + round(world.settings.ack_wait_s * SECOND_NS)
    with pytest.raises(AssertionError, match=broken) if broken else nullcontext():
        world.check_turn(ClaimedRow(b"1", "0", 0, 5, lease_ns, b""))
