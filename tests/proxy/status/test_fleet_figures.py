"""What several members tell becomes what one would."""

import random
from dataclasses import fields

from hypothesis import given, strategies as st

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters, Histogram
from streamfrom.proxy.status.fleet_figures import QueueAtMember, merged_queue, merged_streams
from streamfrom.proxy.status.status_rows import StreamClient, StreamStatus, Unanswered
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
SHARDS = ("-80", "80-")
SILENT = Unanswered("z", "1", "h:1", "late")
COUNTS = st.integers(0, 1000)


def histogram(times_ns):
    made = Histogram()
    for time_ns in times_ns:
        made.observe(time_ns)
    return made


HISTOGRAMS = st.lists(st.integers(0, 10**13), max_size=3).map(histogram)
COUNTERS = st.builds(
    Counters,
    delivered=COUNTS,
    acked=COUNTS,
    purge_failures=COUNTS,
    delivery_latency=HISTOGRAMS,
    ack_latency=HISTOGRAMS,
)


def on_shard(draw, name, *, is_dispatched):
    """Return a shard as its dispatcher sees it, or as another member does, which knows of no message there."""
    counters, depth = draw(COUNTERS), draw(st.none() | COUNTS)
    if not is_dispatched:
        return ShardFigures(name, counters, 1, 0, 0, False, 0, depth, None, False)
    gauges = [draw(COUNTS) for _ in range(4)]
    streams, waiting, due, in_flight = gauges
    whole = depth is not None
    return ShardFigures(
        name, counters, streams, waiting, due, whole, in_flight, depth, draw(st.none() | COUNTS)
    )


@st.composite
def fleets(draw):
    """Return what each member knows; each shard has at most one dispatcher."""
    size = draw(st.integers(1, 4))
    dispatchers = {name: draw(st.integers(-1, size - 1)) for name in SHARDS}
    return [
        QueueFigures(
            TABLE,
            tuple(
                on_shard(draw, name, is_dispatched=dispatchers[name] == number)
                for name in SHARDS
            ),
            draw(COUNTS),
        )
        for number in range(size)
    ]


def part(queue):
    return QueueAtMember(queue.table.keyspace, queue.table.name, queue.streams, queue.shards)


def plain(queue):
    """Return all that a queue tells, apart from depths that any member may ask the shard."""
    return [queue.streams, queue.unknown, queue.unanswered, *map(plain_shard, queue.shards)]


def plain_shard(shard):
    gauges = {each.name: getattr(shard, each.name) for each in fields(shard)}
    counters = gauges.pop("counters")
    if not shard.is_whole:
        del gauges["depth"]
    times = [counters.delivery_latency, counters.ack_latency]
    return (
        gauges,
        [counters.delivered, counters.acked, counters.purge_failures],
        [(each.counts, each.sum_ns) for each in times],
    )


@given(fleets(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_members_does_not_matter(fleet, dice: random.Random, is_one_silent):
    silent = [SILENT] if is_one_silent else []
    shuffled = [*fleet]
    dice.shuffle(shuffled)
    found = [
        plain(merged_queue(own, [part(other) for other in others], silent))
        for own, *others in (fleet, shuffled)
    ]
    dispatched = {s.shard for queue in fleet for s in queue.shards if s.is_dispatched}
    if silent or dispatched == set(SHARDS):
        assert found[0] == found[1]


@given(fleets())
def test_what_has_happened_adds_up(fleet):
    own, *others = fleet
    assert merged_queue(own, [], []) is own
    nothing = QueueAtMember("ks", "msg", 0, ())
    assert plain(merged_queue(own, [nothing], [])) == plain(own)
    merged = merged_queue(own, [part(other) for other in others], []).counters
    for name in ("delivered", "acked", "purge_failures"):
        assert getattr(merged, name) == sum(getattr(q.counters, name) for q in fleet)
    for name in ("delivery_latency", "ack_latency"):
        times = [getattr(queue.counters, name) for queue in fleet]
        assert getattr(merged, name).counts == [
            sum(column) for column in zip(*(each.counts for each in times), strict=True)
        ]
    assert own.counters.delivered == sum(shard.counters.delivered for shard in own.shards), (
        "own are kept"
    )


def test_a_shard_whose_dispatcher_may_be_the_silent_one_is_unknown():
    blind = ShardFigures("-80", Counters(), 1, 0, 0, False, 0, 9, None, False)
    knows = ShardFigures("80-", Counters(), 2, 3, 2, True, 1, 4, 5)
    merged = merged_queue(QueueFigures(TABLE, (blind, knows), 1), [], [SILENT])
    assert merged.unknown == {"-80"}
    assert merged.unanswered == ("member z at h:1: late",)


def test_a_stream_is_told_with_what_its_dispatchers_know():
    client = StreamClient("ann", "h", 0, 5, None, "a")
    at_client = StreamStatus(7, "ks", "msg", client, 1, 1, 40, None)
    at_dispatcher = StreamStatus(7, "ks", "msg", None, 10, 5, 30, 60)
    of_nobody = StreamStatus(8, "ks", "msg", None, 10, 5, 30, 60)
    for told in ([at_client, at_dispatcher, of_nobody], [of_nobody, at_dispatcher, at_client]):
        assert merged_streams(told) == [StreamStatus(7, "ks", "msg", client, 11, 6, 30, 60)]
