"""A shard that fails, settings that change, a table that ends."""

from dataclasses import replace

from streamfrom.engine.errors import StoreError, StreamLost, UnknownColumn
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Attached,
    Changed,
    Claim,
    End,
    ReceiverReady,
    Reconfigured,
    ShardDown,
    ShardUp,
    TableEnded,
    Tick,
)
from streamfrom.engine.messaging.leases.lease_rows import Release
from streamfrom.engine.messaging.queue.poll import Poll
from tests.engine.messaging.job_ends import claim_failed, poll_failed, polled
from tests.engine.messaging.table_rig import (
    EMPTY,
    SECOND_NS,
    START_NS,
    TableRig,
    only,
    table,
)


def fail_until(bench, seconds):
    """Let every claim and poll fail for so long; return the actions of the last moment."""
    end_ns = bench.now_ns + round(seconds * SECOND_NS)
    pending = list(bench.actions)
    while True:
        for action in list(pending):
            pending.remove(action)
            if isinstance(action, Poll):
                pending += bench.post(poll_failed(action.shard, "no route"))
            elif isinstance(action, Claim):
                pending += bench.post(claim_failed(action.number, action.shard, "no route"))
            elif isinstance(action, End):
                return [action]
        wake_ns = bench.state.wake_ns()
        if wake_ns is None or wake_ns > end_ns:
            bench.now_ns = end_ns
            return []
        bench.now_ns = wake_ns
        pending += bench.post(Tick())


def test_r9_a_shard_that_fails_for_30_seconds_ends_the_streams():
    bench = TableRig()
    bench.post(Attached(1, None, ("id",)))
    end = only(fail_until(bench, 31), End)
    assert (end.receiver, bench.now_ns) == (1, START_NS + 30 * SECOND_NS)
    assert isinstance(end.error, StreamLost)
    assert str(end.error) == (
        "message stream from ks/0 has repeatedly failed for longer than 30s: no route"
    )
    assert bench.wake_s() is None


def test_polls_that_fail_while_claims_work_are_no_lost_shard():
    bench = TableRig().attach(1)
    bench.post(Changed("0"))
    for second in range(100):
        bench.now_ns += SECOND_NS
        if any(isinstance(action, Poll) for action in bench.post(poll_failed("0", "slow"))):
            continue
        claims = [action for action in bench.due(second) if isinstance(action, Claim)]
        for claim in claims:
            bench.won(claim)
            bench.post(Acked("0", claim.ids))
            bench.post(ReceiverReady(1))
        bench.later(1)
    assert bench.state.receivers == 1


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


def test_a_stream_whose_column_was_dropped_ends():
    bench = TableRig().attach(1).attach(2, columns=("id",))
    altered = replace(table(), columns=("id", "priority", "epoch", "time_next", "time_acked"))
    end = bench.post(Reconfigured(altered))[0]
    assert isinstance(end, End)
    assert end.receiver == 1
    assert isinstance(end.error, UnknownColumn)
    assert bench.state.receivers == 1


def test_rows_claimed_when_the_table_ends_are_released():
    bench = TableRig().attach(1)
    claim = only(bench.due(1), Claim)
    bench.post(TableEnded(StoreError("shutdown")))
    only(bench.won(claim), Release)
