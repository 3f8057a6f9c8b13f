"""Who gets which rows, how many at once, and when the table is read; a shard that fails, settings that change, a table that ends.

Names that begin with m restate tests of the original's manager; tests/integration/delivery restates all of them from outside."""

from dataclasses import replace

import pytest

from streamfrom.engine.errors import UnknownColumn
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Attached,
    Deliver,
    Detached,
    End,
    ReceiverReady,
    Reconfigured,
    ShardDown,
    ShardUp,
    Tick,
)
from streamfrom.engine.messaging.dispatch.sending import (
    CLAIM_BYTES_MAX,
    ROW_BYTES_ASSUMED,
)
from streamfrom.engine.messaging.queue.poll import Poll
from tests.engine.messaging.job_ends import polled
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    TableRig,
    kinds,
    only,
    table,
)


def test_a_claim_of_long_bodies_takes_few_rows_until_they_are_short_again():
    bench = TableRig(batch=10_000, cache=10_000).attach(1)
    first = only(bench.due(*range(2000)), Claim)
    assert len(first.ids) == CLAIM_BYTES_MAX // ROW_BYTES_ASSUMED
    sizes = []
    claim, size = first, 1 << 20
    for _ in range(6):
        bench.won(claim, payload=b"x" * size)
        (claim,) = kinds(bench.post(ReceiverReady(1)), Claim)
        sizes.append(len(claim.ids))
        size = 10
    assert sizes == [16, 32, 64, 128, 256, 500]


def test_shards_take_turns():
    bench = TableRig(batch=1, shards=("-80", "80-")).attach(1)
    served = []
    actions = bench.due(*range(10), shard="-80")
    bench.due(*range(10, 20), shard="80-")
    for _ in range(8):
        (claim,) = kinds(actions, Claim)
        served.append(claim.shard)
        bench.won(claim)
        actions = bench.post(ReceiverReady(1))
    assert served.count("80-") == 4


@pytest.mark.parametrize("streams", [1, 2, 3])
def test_shards_take_turns_where_acks_make_room(streams):
    bench = TableRig(batch=1, shards=("-80", "80-"))
    for number in range(streams):
        for poll in bench.post(Attached(number, None, ("id",), prefetch=1)):
            bench.post(polled(poll.shard, EMPTY))
    actions = bench.due(*range(50), shard="-80") + bench.due(*range(50, 100), shard="80-")
    claims = kinds(actions, Claim)
    served: list[str] = []
    while len(served) < 24:
        claim = claims.pop(0)
        served += [claim.shard] * len(claim.ids)
        for delivery in kinds(bench.won(claim), Deliver):
            acked = Acked(claim.shard, tuple(row.id for row in delivery.rows))
            for event in (ReceiverReady(delivery.receiver), acked):
                claims += kinds(bench.post(event), Claim)
    assert 9 <= served[:24].count("80-") <= 15


def test_who_comes_soon_after_the_last_one_needs_no_poll_for_what_is_known():
    bench = TableRig().attach(1)
    bench.post(Detached(1))
    bench.due(1)
    claim = only(bench.post(Attached(2, None, ("id",))), Claim)
    only(bench.won(claim), Deliver)
    bench.post(Detached(2))
    only(bench.post(Attached(3, None, ("id",))), Poll)


def test_m1_leaving_twice_is_fine():
    bench = TableRig().attach(1)
    assert bench.post(Detached(1)) == []
    assert bench.post(Detached(1)) == []


def test_a_clock_that_is_set_back_makes_no_poll_late():
    bench = TableRig(poll=30).attach(1)
    bench.now_ns -= 600 * SECOND_NS
    poll = only(bench.post(Tick()), Poll)
    bench.post(polled(poll.shard, EMPTY))
    assert bench.wake_s() == 30


def test_a_health_signal_starts_and_stops_the_grace():
    bench = TableRig(poll=1000).attach(1)
    assert bench.post(ShardDown("0", "refused")) == []
    assert bench.wake_s() == 30
    bench.later(29)
    only(bench.post(ShardUp("0")), Poll)
    bench.post(polled("0", EMPTY))
    assert bench.wake_s() > 900
    bench.post(ShardDown("0", "refused"))
    only(bench.later(30), End)
    assert bench.wake_s() is None


def test_a_stream_whose_column_was_dropped_ends():
    bench = TableRig().attach(1).attach(2, columns=("id",))
    altered = replace(table(), columns=("id", "priority", "epoch", "time_next", "time_acked"))
    end, poll = bench.post(Reconfigured(altered))
    assert isinstance(end, End)
    assert isinstance(poll, Poll)
    assert end.receiver == 1
    assert isinstance(end.error, UnknownColumn)
    assert bench.state.receivers == 1
