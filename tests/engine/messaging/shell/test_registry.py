"""The engine's front door."""

import asyncio
from dataclasses import replace

import pytest

from streamfrom.engine.errors import StoreError, TableLoadError, TableNotFound
from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable
from streamfrom.engine.sharding.vschema import parse_vschema
from tests.engine.messaging.registry_rig import KS, OTHER, STOPPED, RegistryRig, insert, new
from tests.engine.messaging.runner_rig import Receiver
from tests.sim.memory_store import raw_table


async def test_a_bad_table_hurts_only_itself(caplog):
    async with RegistryRig("t1") as rig:
        rig.store.create("ks", raw_table("bad", "vitess_message"))
        await rig.registry.reload()
        await rig.registry.reload()
        error = rig.registry.table("ks", "bad")
        assert isinstance(error, TableLoadError)
        with pytest.raises(TableLoadError) as failure:
            rig.registry.streams.attach(Receiver(), "ks", "bad")
        assert str(failure.value) == (
            "message table 'bad' failed to load:"
            " attribute vt_ack_wait not specified for message table"
        )
        receiver = Receiver()
        rig.registry.streams.attach(receiver, "ks", "t1")
        insert(rig, 1)
        rig.commit(new(1))
        await asyncio.sleep(1)
        assert receiver.ids == [1]
        rig.commit(new(2), table="bad")
    assert sum("failed to load" in record.message for record in caplog.records) == 1


async def test_a_table_that_went_bad_ends_its_streams_with_the_reason():
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.streams.attach(receiver, "ks", "t1")
        rig.store.create("ks", raw_table("t1", "vitess_message,vt_ack_wait=0"))
        await rig.registry.reload()
        assert "vt_ack_wait must be a number of seconds" in str(receiver.ended[0])
        rig.store.create("ks", raw_table("t1"))
        await rig.registry.reload()
        assert isinstance(rig.registry.table("ks", "t1"), MessageTable)


async def test_a_keyspace_that_goes_ends_its_streams_and_may_come_again():
    async with RegistryRig("t1") as rig:
        rig.store.create("other", raw_table("t2"))
        for number in range(2):
            rig.registry.add(OTHER)
            await rig.registry.reload("other")
            staying, leaving = Receiver(1 + 2 * number), Receiver(2 + 2 * number)
            rig.registry.streams.attach(staying, "ks", "t1")
            rig.registry.streams.attach(leaving, "other", "t2")
            here = rig.registry.here
            here.end_streams(STOPPED, "other")
            with pytest.raises(StoreError, match="stopped"):
                rig.registry.streams.attach(Receiver(9), "other", "t2")
            # What reads the definitions meanwhile goes on without it.
            reading = asyncio.create_task(rig.registry.reload())
            await asyncio.sleep(0)
            await rig.registry.remove("other", STOPPED)
            await reading
            assert (staying.ended, leaving.ended) == ([], [STOPPED])
            with pytest.raises(TableNotFound):
                rig.registry.streams.attach(Receiver(9), "other", "t2")
            assert rig.registry.tables("other") == {}
            # Others hear of it later.
            here.shard_checked("other", "0", "refused")
            await rig.registry.definitions_changed("other", ("t2",))
            assert {runner.table.name for runner in here.runners} == {"t1"}


def hidden(name):
    return RawTable(name, "", (), (), is_hidden=True)


async def test_what_others_changed_is_read_at_once_and_together_if_it_is_much():
    async with RegistryRig("t1") as rig:
        await asyncio.sleep(1)
        rig.store.create("ks", raw_table("t2"))
        rig.registry.reload_soon()
        await asyncio.sleep(0.01)
        assert "t2" in rig.registry.tables("ks")
        before = len(rig.store.calls)
        for _ in range(50):
            rig.registry.reload_soon()
            await asyncio.sleep(0.01)
        assert len(rig.store.calls) - before <= 6


async def test_what_is_gone_while_a_lock_hides_others_is_dropped():
    async with RegistryRig("t1", "t2") as rig:
        rig.store.drop("ks", "t1")
        rig.store.create("ks", hidden("t2"))
        await rig.registry.reload()
        assert set(rig.registry.tables("ks")) == {"t2"}


async def test_a_keyspace_that_is_down_at_the_start_is_found_later():
    async def pause(_call, _shard):
        if asyncio.get_running_loop().time() < 10:
            raise StoreError("gone")

    async with RegistryRig("t1", pause=pause) as rig:
        assert rig.registry.tables("ks") == {}
        await asyncio.sleep(31)
        assert set(rig.registry.tables("ks")) == {"t1"}


PLACED = """{"sharded": true, "vindexes": {"h": {"type": "hash"}},
    "tables": {"plain": {"column_vindexes": [{"column": "id", "name": "h"}]}}}"""


async def test_columns_of_tables_that_a_new_vschema_shards_are_known_and_stay_while_a_lock_hides_them():
    keyspace = replace(KS, vschema=parse_vschema(PLACED))
    async with RegistryRig("t1") as rig:
        rig.store.create("ks", raw_table("plain", ""))
        for _ in range(2):
            rig.registry.vschema_changed(keyspace)
            await asyncio.sleep(1)
        assert len(rig.store.calls) == 2, "the second time nothing has changed"
        rig.store.create("ks", hidden("plain"))
        await rig.registry.reload("ks")
        types = rig.registry.column_types("ks")
        assert types["plain"]["id"] == types["t1"]["id"]
        assert set(rig.registry.tables("ks")) == {"t1"}
