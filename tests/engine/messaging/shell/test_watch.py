"""Who watches: depths are asked for where memory does not know them, and seldom."""

import asyncio

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.watch import FRESH_NS, SELDOM, Watch
from streamfrom.engine.messaging.table.message import Tried
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.engine.messaging.registry_rig import RegistryRig, insert
from tests.engine.messaging.runner_rig import Receiver
from tests.sim.memory_store import REFUSAL
from tests.virtual_loop import VirtualClock


def depth_calls(rig):
    return [shard for call, shard in rig.store.calls if call == "depths"]


def watching(rig):
    return Watch(rig.registry, rig.store, VirtualClock())


async def test_depths_are_asked_once_a_second_for_all_tables_of_a_shard():
    async with RegistryRig("t1", "t2") as rig:
        insert(rig, 1, 2)
        insert(rig, 3, shard="80-", table="t2")
        watch = watching(rig)
        one, two = (await asyncio.gather(watch.queues(), watch.queues()))[1]
        assert (one.table.name, [shard.depth for shard in one.shards]) == ("t1", [2, 0])
        assert (two.table.name, [shard.depth for shard in two.shards]) == ("t2", [0, 1])
        assert sorted(depth_calls(rig)) == ["-80", "80-"]
        await asyncio.sleep(FRESH_NS / 10**9)
        insert(rig, 4)
        assert (await watch.queues())[0].shards[0].depth == 3
        assert len(depth_calls(rig)) == 4


async def test_a_question_that_takes_long_is_asked_seldom():
    async def pause(call, shard):
        if call == "depths":
            await asyncio.sleep(0.5)

    async with RegistryRig("t1", pause=pause) as rig:
        watch, loop = watching(rig), asyncio.get_running_loop()
        began_s = loop.time()
        await watch.queues()
        took_s = loop.time() - began_s
        assert took_s >= 0.5
        await asyncio.sleep((SELDOM - 1) * took_s)
        await watch.queues()
        assert len(depth_calls(rig)) == 2
        await asyncio.sleep(2 * took_s)
        await watch.queues()
        assert len(depth_calls(rig)) == 4


async def test_what_memory_knows_is_not_asked_for():
    async with RegistryRig("t1") as rig:
        insert(rig, 1, 2)
        receiver = Receiver(1)
        rig.registry.streams.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        watch = watching(rig)
        (queue,) = await watch.queues()
        assert depth_calls(rig) == []
        assert [(s.depth, s.in_flight, s.is_whole) for s in queue.shards] == [
            (2, 2, True),
            (0, 0, True),
        ]
        (stream,) = watch.streams()
        assert (stream.connection_id, stream.unacked) == (receiver.connection_id, 2)


async def test_a_shard_that_does_not_answer_leaves_its_depth_unknown():
    async def pause(call, shard):
        if call == "depths" and shard == "-80":
            raise StoreError("gone")
        if call == "depths":
            await asyncio.sleep(60)

    async with RegistryRig("t1", pause=pause) as rig:
        (queue,) = await watching(rig).queues()
        assert [shard.depth for shard in queue.shards] == [None, None]


async def test_acks_and_deletes_count_as_the_server_counted_them():
    async with RegistryRig("t1") as rig:
        rig.commit(Effect(EffectKind.ACK, (1, 2, 3), rows=2))
        rig.commit(Effect(EffectKind.ACK, None, rows=5), shard="80-")
        rig.commit(Effect(EffectKind.REMOVE, None, rows=4))
        rig.commit(Effect(EffectKind.ACK, (1,)))
        (queue,) = await watching(rig).queues()
        assert (queue.counters.acked, queue.counters.deleted) == (7, 4)


async def test_rows_that_servers_refuse_are_listed_with_their_words():
    async with RegistryRig("t1", refuses=lambda tried, _: tried is Tried.LEASE) as rig:
        insert(rig, 1)
        rig.registry.streams.attach(Receiver(), "ks", "t1")
        await asyncio.sleep(20)
        (row,) = watching(rig).set_aside()
        found = (row.queue, row.shard, row.id, row.tried, row.error)
        assert found == ("t1", "-80", "1", "lease", REFUSAL)
