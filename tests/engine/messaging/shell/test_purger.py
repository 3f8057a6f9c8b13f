import asyncio

from streamfrom.engine.errors import StoreError, TableGone
from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.shell.purger import Purger
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX
from tests.fixtures.logged import logged
from tests.sim.memory_store import MemoryStore, StoredRow, loaded, raw_table
from tests.virtual_loop import START_NS, VirtualClock


SECOND_NS = 10**9
COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=100,vt_batch_size=10,"
    "vt_cache_size=100,vt_poller_interval=1"
)


def table(comment=COMMENT):
    return loaded(raw_table("msg", comment))


def filled(count, acked_s, **options):
    store = MemoryStore(VirtualClock(), **options)
    rows = (
        StoredRow(b"%d" % one, time_acked_ns=START_NS + acked_s * SECOND_NS)
        for one in range(count)
    )
    store.insert("ks", "0", "msg", *rows)
    return store


def begun(store, *shards):
    """Return a purger of shards, by default of one, and these."""
    states = {name: ShardState(name, ShardQueue(10)) for name in shards or ("0",)}
    purger = Purger(
        table(), states.values(), store, VirtualClock(), lambda _: True, lambda _: None
    )
    return purger, states


def left(store):
    return len(store.table("ks", "0", "msg"))


async def test_m16_rows_go_in_batches_until_one_is_short_and_are_counted():
    store = filled(2 * PURGE_ROWS_MAX + 1, acked_s=-1000)
    purger, shards = begun(store)
    await asyncio.sleep(31)
    assert left(store) == 0
    assert shards["0"].counters.purged == 2 * PURGE_ROWS_MAX + 1
    assert len(store.calls) == 3
    await purger.stop()


async def test_a_failure_is_logged_once_and_tried_again_and_other_shards_go_on(caplog):
    async def pause(_call, shard):
        if shard == "80-" and asyncio.get_running_loop().time() < 95:
            raise StoreError("gone")

    store = filled(3, acked_s=-1000, pause=pause)
    rows = [StoredRow(b"1", time_acked_ns=1)]
    store.insert("ks", "80-", "msg", *rows)
    purger, shards = begun(store, "0", "80-")
    await asyncio.sleep(94)
    assert [one.counters.purge_failures for one in shards.values()] == [0, 3]
    assert left(store) == 0
    assert store.table("ks", "80-", "msg")
    await asyncio.sleep(30)
    assert not store.table("ks", "80-", "msg")
    await purger.stop()
    told = logged(caplog, "keyspace", "queue", "shard", "reason")
    assert told == [("purge failed", "ks", "msg", "80-", "gone")]


async def test_a_queue_that_was_dropped_through_another_proxy_is_no_trouble(caplog):
    async def pause(_call, _shard):
        raise TableGone("no such table")

    purger, shards = begun(filled(1, acked_s=-1000, pause=pause))
    await asyncio.sleep(94)
    await purger.stop()
    assert not shards["0"].counters.purge_failures
    assert not logged(caplog)


async def test_rows_that_are_to_go_soon_go_sooner_from_the_change_on():
    store = filled(3, acked_s=-10)
    purger, _ = begun(store)
    await asyncio.sleep(15)
    purger.reconfigure(table(COMMENT.replace("purge_after=100", "purge_after=2")))
    await asyncio.sleep(2.1)
    assert left(store) == 0
    await purger.stop()
