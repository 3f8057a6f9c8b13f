"""Figures that travel between members come as they were."""

from dataclasses import replace

from hypothesis import given, strategies as st

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import (
    MEMBERS,
    QUEUES,
    SHARDS,
    STREAMS,
    decode_stream,
    encode_queue,
)
from streamfrom.proxy.status.fleet_figures import QueueAtMember
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    StreamClient,
    StreamStatus,
)
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
NOW_NS, THERE_NS = 10**18, 7 * 10**17  # of the clock of one member and of another
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.integers(0, (1 << 63) - 1)
MOMENTS = st.none() | st.integers(0, NOW_NS)


def there(moment_ns):
    """Return a moment by the other clock."""
    return None if moment_ns is None else moment_ns - NOW_NS + THERE_NS


MEMBER = st.builds(
    MemberStatus,
    *(st.just("a1"), TEXTS, st.floats(0, 1e9), COUNTS, COUNTS, COUNTS, st.booleans()),
    address=st.just("h:1"),
    dispatches=st.lists(TEXTS).map(tuple),
    clock_unix_s=st.none() | st.floats(0, 1e10),
    certificate_expires_s=st.none() | st.floats(-1e10, 1e10),
)
SHARD = st.builds(
    ShardStatus,
    *(TEXTS, TEXTS, TEXTS, TEXTS, st.none() | TEXTS, COUNTS, COUNTS, COUNTS, COUNTS),
    is_dispatched=st.booleans(),
    member=st.just("a1"),
)


@given(MEMBER, SHARD)
def test_a_member_and_a_shard_come_as_they_were(member, shard):
    told = pb.MemberStatus.FromString(MEMBERS.encode(member).SerializeToString())
    assert MEMBERS.decode(told, member="a1", address="h:1") == member
    sent = pb.ShardStatus.FromString(SHARDS.encode(shard).SerializeToString())
    assert SHARDS.decode(sent, member="a1") == shard


CLIENTS = st.builds(
    StreamClient, TEXTS, TEXTS, st.integers(0, NOW_NS), COUNTS, st.none() | TEXTS, st.just("a1")
)


@given(
    st.builds(
        StreamStatus,
        st.integers(0, (1 << 32) - 1),
        TEXTS,
        TEXTS,
        st.none() | CLIENTS,
        COUNTS,
        COUNTS,
        MOMENTS,
        MOMENTS,
    )
)
def test_a_stream_comes_as_it_was_by_the_other_clock(stream):
    told = pb.StreamStatus.FromString(STREAMS.encode(stream, NOW_NS).SerializeToString())
    client = stream.client and replace(stream.client, opened_ns=there(stream.client.opened_ns))
    assert decode_stream(told, "a1", THERE_NS) == replace(
        stream,
        client=client,
        oldest_unacked_ns=there(stream.oldest_unacked_ns),
        stalled_since_ns=there(stream.stalled_since_ns),
    )


def counted():
    counters = Counters(1, 2, 3, 4, 5, 6, 7, 8, 9)
    counters.delivery_latency.observe(1)
    counters.ack_latency.observe(10**15, 3)
    return counters


def carried(*shards, streams=2):
    queue = QueueFigures(TABLE, shards, streams)
    data = encode_queue(queue, NOW_NS).SerializeToString()
    return QUEUES.decode(pb.QueueStatus.FromString(data), THERE_NS)


def plain(shard):
    """Return all that a shard tells as values that can be compared."""
    counters = shard.counters
    times = counters.delivery_latency, counters.ack_latency
    counted = replace(counters, delivery_latency=None, ack_latency=None)
    return replace(shard, counters=counted), [(each.counts, each.sum_ns) for each in times]


def test_a_shard_that_is_dispatched_comes_whole():
    others = {"blocked": 7, "partitions_overdue": 8, "set_aside": 9}
    shard = ShardFigures("-80", counted(), 1, 2, 3, True, 4, 5, NOW_NS - 6, **others)  # type: ignore[arg-type]
    part = carried(shard)
    assert (part.keyspace, part.table, part.streams) == ("ks", "msg", 2)
    (found,) = part.shards
    assert plain(found) == plain(replace(shard, oldest_ready_ns=THERE_NS - 6))


def test_what_memory_does_not_know_and_what_others_dispatch_is_not_told():
    shard = ShardFigures("-80", Counters(), 1, 2, 3, False, 4, 5, None)
    (found,) = carried(shard).shards
    assert (found.depth, found.is_whole, found.oldest_ready_ns) == (None, False, None)
    assert found.is_dispatched
    (empty,) = carried(replace(shard, is_whole=True, depth=0)).shards
    assert (empty.depth, empty.is_whole) == (0, True)
    # Only what has happened there.
    shard = ShardFigures("-80", counted(), 1, 2, 3, True, 4, 5, 6, is_dispatched=False)
    (found,) = carried(shard).shards
    assert (found.counters.delivered, found.ready, found.is_dispatched) == (1, 0, False)
    assert carried(replace(shard, counters=Counters())) == QueueAtMember("ks", "msg", 2, ())


def test_times_in_other_buckets_than_ones_own_are_left_out():
    told = encode_queue(
        QueueFigures(TABLE, (ShardFigures("0", counted(), 0, 0, 0, True, 0, 0, None),), 0), 0
    )
    told.shards[0].counters.delivery_latency.counts.append(1)
    (found,) = QUEUES.decode(told, 0).shards
    assert (found.counters.delivery_latency.total, found.counters.ack_latency.total) == (0, 3)
