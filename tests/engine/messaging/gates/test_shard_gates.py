"""Several gates at once; each of them has its own tests."""

import pytest

from streamfrom.engine.messaging.gates.shard_gates import ShardGates
from streamfrom.engine.messaging.table.table_settings import parse_comment
from tests.sim.memory_store import DEFAULT_COMMENT


SECOND_NS = 10**9
NOW_NS = 1_000 * SECOND_NS


def gates(settings="", load=(0, 0), *, closed_ns=None):
    made = ShardGates(lambda: load)
    made.configure(parse_comment(DEFAULT_COMMENT + settings), 1, 0, NOW_NS)
    made.begin(NOW_NS)
    if made.in_flight is not None:
        made.in_flight.is_known = True
    if closed_ns is not None:
        made.strict = lambda: closed_ns
    return made


@pytest.mark.parametrize(
    ("made", "room"),
    [
        (gates("", (50, 50)), 7),
        (gates(",vt_max_in_flight=10", (4, 3)), 3),
        (gates(",vt_max_in_flight=10", (9, 3)), 0),
        (gates(",vt_max_rate=100"), 5),
        (gates(",vt_max_in_flight=2,vt_max_rate=100"), 2),
        (gates(",vt_max_in_flight=10", closed_ns=0), 1),
        (gates(closed_ns=NOW_NS + 2 * SECOND_NS), 0),
    ],
)
def test_the_narrowest_gate_counts(made, room):
    now_ns = NOW_NS + SECOND_NS
    assert made.room(7, now_ns) == room
    assert made.is_closed(now_ns) is (room == 0)


def test_it_opens_with_the_order_before_the_rate():
    strict = gates(",vt_max_rate=1", closed_ns=NOW_NS + 9)
    assert strict.opens_ns(NOW_NS) == NOW_NS + 9
    assert gates(",vt_max_rate=1").opens_ns(NOW_NS) == NOW_NS + SECOND_NS
    assert gates(",vt_max_in_flight=1", (1, 0)).opens_ns(NOW_NS) is None
