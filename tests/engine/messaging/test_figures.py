from streamfrom.engine.messaging.counters import Counters
from streamfrom.engine.messaging.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.memory_store import loaded, raw_table


def test_what_happened_on_all_shards_adds_up():
    shards = tuple(
        ShardFigures(name, Counters(sent=sent, dead=1), 0, 0, 0, True, 0, None, None)
        for name, sent in (("-80", 3), ("80-", 4))
    )
    counters = QueueFigures(loaded(raw_table("msg")), shards, 0).counters
    assert (counters.sent, counters.dead) == (7, 2)
