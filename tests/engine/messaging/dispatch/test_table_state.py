"""Who gets which rows, and how many at once.

Names that begin with m restate tests of the original's manager; tests/integration/delivery restates all of them from outside.
"""

from streamfrom.engine.messaging.dispatch.events import Claim, ReceiverReady
from streamfrom.engine.messaging.dispatch.sending import (
    CLAIM_BYTES_MAX,
    ROW_BYTES_ASSUMED,
)
from tests.engine.messaging.table_rig import TableRig, claimed, only


def test_a_claim_of_long_bodies_takes_few_rows_until_they_are_short_again():
    bench = TableRig(batch=10_000, cache=10_000).attach(1)
    first = only(bench.due(*range(2000)), Claim)
    assert len(first.ids) == CLAIM_BYTES_MAX // ROW_BYTES_ASSUMED
    sizes = []
    claim, size = first, 1 << 20
    for _ in range(6):
        bench.won(claim, payload=b"x" * size)
        (claim,) = (a for a in bench.post(ReceiverReady(1)) if isinstance(a, Claim))
        sizes.append(len(claim.ids))
        size = 10
    assert sizes == [16, 32, 64, 128, 256, 500]


def test_shards_take_turns():
    bench = TableRig(batch=1, shards=("-80", "80-")).attach(1)
    served = []
    actions = bench.due(*range(10), shard="-80")
    bench.due(*range(10, 20), shard="80-")
    for _ in range(8):
        (claim,) = (action for action in actions if isinstance(action, Claim))
        served.append(claim.shard)
        bench.won(claim)
        actions = bench.post(ReceiverReady(1))
    assert served.count("80-") == 4


def test_sockets_that_are_free_are_served_only_if_there_is_something_for_them():
    bench = TableRig().attach(1)
    bench.won(only(bench.due(1), Claim))
    assert not bench.state.free([1], bench.now_ns)
    bench.won(only(bench.due(2), Claim))
    assert bench.due(3) == []
    assert bench.state.free([1], bench.now_ns)
    assert claimed(bench.post(ReceiverReady(1))) == [[3]]
