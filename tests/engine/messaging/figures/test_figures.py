from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from tests.sim.memory_store import loaded, raw_table


def test_what_happened_on_all_shards_adds_up():
    shards = tuple(
        ShardFigures(
            name, Counters(delivered=sent, dead_lettered=1), 0, 0, 0, True, 0, None, None
        )
        for name, sent in (("-80", 3), ("80-", 4))
    )
    counters = QueueFigures(loaded(raw_table("msg")), shards, 0).counters
    assert (counters.delivered, counters.dead_lettered) == (7, 2)
