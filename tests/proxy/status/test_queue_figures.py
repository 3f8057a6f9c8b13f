"""What a queue's figures are of its shards, and how they are named."""

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.status.queue_figures import FIGURES, QueueLook, Unit
from tests.sim.memory_store import loaded, raw_table


SECOND_NS = 10**9
TABLE = loaded(raw_table("msg"))


def on_shard(name, **figures):
    values = dict.fromkeys(("cached", "ready", "in_flight", "depth"), 0) | {
        "streams": 1,
        "is_whole": True,
        "oldest_ready_ns": None,
        "counters": Counters(),
    }
    return ShardFigures(shard=name, **values | figures)


def queue_row(*shards, table=TABLE, now_ns=0):
    look = QueueLook(QueueFigures(table, shards, 1), now_ns)
    return {figure.name: figure.read(look) for figure in FIGURES}


def test_names_are_given_once_and_what_only_grows_is_a_counter():
    for names in (
        [figure.name for figure in FIGURES],
        [figure.metric for figure in FIGURES if figure.metric],
        [figure.label for figure in FIGURES if figure.label],
        [figure.heading for figure in FIGURES if figure.heading],
    ):
        assert len(names) == len(set(names))
    for figure in FIGURES:
        assert figure.help or not (figure.metric or figure.label)
        assert (figure.unit is Unit.TOTAL) == figure.metric.endswith("_total")


def test_shards_add_up_and_the_oldest_counts():
    row = queue_row(
        on_shard("-80", depth=3, ready=1, in_flight=2, oldest_ready_ns=5 * SECOND_NS),
        on_shard("80-", depth=4, ready=2, oldest_ready_ns=3 * SECOND_NS),
        now_ns=10 * SECOND_NS,
    )
    assert (row["depth"], row["depth_is_exact"], row["ready"], row["in_flight"]) == (7, 1, 3, 2)
    assert row["oldest_ready_age_s"] == 7.0


def test_what_is_not_known_of_one_shard_is_not_known():
    row = queue_row(on_shard("-80", depth=3), on_shard("80-", depth=None, is_whole=False))
    assert (row["depth"], row["depth_is_exact"]) == (None, 0)
    row = queue_row(on_shard("-80"), on_shard("80-", streams=0, is_whole=False, depth=9))
    assert (row["depth"], row["ready"], row["ack_latency_p99_s"]) == (9, None, None)
    low = on_shard("-80", parked=3, dead_lettered=1)
    for other, known in (({"parked": 4, "dead_lettered": 0}, (7, 1)), ({}, (None, None))):
        row = queue_row(low, on_shard("80-", **other))
        assert (row["parked"], row["dead_lettered"]) == known
