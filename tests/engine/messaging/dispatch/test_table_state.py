"""Who gets which rows, and how many at once.

Names that begin with m restate tests of the original's manager; tests/integration/delivery restates all of them from outside.
"""

from streamfrom.engine.messaging.dispatch.events import Acked, Claim, Deliver, ReceiverReady
from streamfrom.engine.messaging.dispatch.sending import (
    CLAIM_BYTES_MAX,
    CLAIMS_IN_FLIGHT_MAX,
    ROW_BYTES_ASSUMED,
)
from tests.engine.messaging.table_rig import SECOND_NS, TableRig, claimed, delivered, only


def test_m4_a_row_is_claimed_then_delivered_then_waits_for_its_ack():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    deliver = only(bench.won(claim), Deliver)
    assert deliver.rows[0].payload == b"x"
    assert bench.state.waiting == 1
    bench.post(ReceiverReady(1))
    assert bench.wake_s() == 25  # some seconds before its lease would end
    assert claimed(bench.later(30))[0] == [1]


def test_an_ack_of_a_message_that_waits_for_a_stream_leaves_the_next_one_its_moment():
    bench = TableRig().attach(1)
    bench.won(only(bench.due(1), Claim))
    bench.due(2)
    bench.due(3, time_next_ns=bench.now_ns + 5 * SECOND_NS)
    bench.post(Acked("0", (b"2",)))
    bench.post(ReceiverReady(1))
    assert bench.wake_s() == 5
    assert claimed(bench.later(5))[0] == [3]


def test_m6_a_slow_database_runs_a_bounded_number_of_claims():
    bench = TableRig(batch=1).attach(*range(10))
    claims = [claim for ident in range(10) for claim in bench.due(ident)]
    assert len(claims) == CLAIMS_IN_FLIGHT_MAX
    # What came meanwhile goes into the next claim together.
    actions = bench.won(claims[0])
    assert claimed(actions) == [[2, 3, 4, 5, 6, 7, 8, 9]]


def test_m9_a_batch_never_waits_to_be_filled_and_is_never_overfilled():
    bench = TableRig(batch=2).attach(1)
    assert claimed(bench.due(1)) == [[1]]
    bench = TableRig(batch=2).attach(1)
    assert claimed(bench.due(1, 2, 3)) == [[1, 2]]


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


def test_a_receiver_has_one_batch_over_all_shards():
    bench = TableRig(shards=("-80", "80-")).attach(1)
    claim = only(bench.due(1, shard="-80"), Claim)
    assert bench.due(2, shard="80-") == []
    assert delivered(bench.won(claim)) == {1: [1]}
    only(bench.post(ReceiverReady(1)), Claim)


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


def test_a_claim_of_a_lone_message_leaves_the_next_one_its_moment():
    bench = TableRig().attach(1, 2)
    claim = only(bench.due(1), Claim)
    bench.due(2, time_next_ns=bench.now_ns + 5 * SECOND_NS)
    only(bench.won(claim), Deliver)
    assert bench.wake_s() == 5
    assert claimed(bench.later(5))[0] == [2]


def test_sockets_that_are_free_are_served_only_if_there_is_something_for_them():
    bench = TableRig().attach(1)
    bench.won(only(bench.due(1), Claim))
    assert not bench.state.free([1], bench.now_ns)
    bench.won(only(bench.due(2), Claim))
    assert bench.due(3) == []
    assert bench.state.free([1], bench.now_ns)
    assert claimed(bench.post(ReceiverReady(1))) == [[3]]
