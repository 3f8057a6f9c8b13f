"""What the parts of a scheduler share: numbers, and what each shard may send."""

from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.dispatch.table_parts import TableParts
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from tests.engine.messaging.table_rig import table


def parts_of(more=""):
    shards = {name: ShardState(name, ShardQueue(10)) for name in ("-80", "80-")}
    parts = TableParts(table(more=more), 0, shards)
    parts.limit_shards()
    return parts


def test_an_order_begins_changes_and_ends_with_its_settings():
    parts = parts_of(",vt_key=message,vt_max_per_key=1")
    shard, _ = parts.shards.values()
    first = shard.order
    assert (first.key, first.in_order, first.is_strict) == ("message", 1, False)
    parts.limit_shards(0)
    assert shard.order is first
    parts.table = table(more=",vt_key=message,vt_max_per_key=2")
    parts.limit_shards(0)
    assert shard.order.in_order == 2
    assert shard.polls.wanted
    parts.table = table(order="strict")
    parts.limit_shards(0)
    assert shard.order.is_strict
    parts.table = table()
    parts.limit_shards(0)
    assert shard.order is None
