import asyncio

import pytest

from streamfrom.engine.errors import TableNotFound
from streamfrom.sqlparse_ext.writes.message_effects import (
    ANY_TABLE,
    UNKNOWN,
    Effect,
    EffectKind,
)
from tests.engine.messaging.registry_rig import KS, OTHER, STOPPED, RegistryRig, insert, new
from tests.engine.messaging.runner_rig import Receiver
from tests.fixtures.logged import logged
from tests.sim.memory_store import raw_table


async def test_an_unknown_table_is_not_found():
    async with RegistryRig("t1") as rig:
        with pytest.raises(
            TableNotFound, match="message table 't3' not found in keyspace 'ks'"
        ):
            rig.registry.streams.attach(Receiver(), "ks", "t3")
        assert rig.registry.table("ks", "t3") is None
        assert rig.registry.table("nowhere", "t1") is None


async def test_what_was_sent_is_held_until_it_is_acked_or_its_wait_ends_streams_or_not():
    async with RegistryRig("t1", "t2") as rig:
        receiver = Receiver()
        rig.registry.streams.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        assert rig.registry.here.held() == 0
        insert(rig, 1, 2, 3)
        rig.commit(new(1, 2, 3))
        await asyncio.sleep(1)
        assert rig.registry.here.held() == 3
        rig.registry.here.end_streams(STOPPED)
        assert receiver.ended == [STOPPED]
        rig.registry.streams.detach(receiver)
        rig.commit(Effect(EffectKind.ACK, (1,)))
        assert rig.registry.here.held() == 2
        rig.store.ack("ks", "-80", "t1", [b"2"])
        rig.commit(Effect(EffectKind.ACK, None))  # which one is looked up
        await asyncio.sleep(1)
        assert rig.registry.here.held() == 1
        await asyncio.sleep(60)
        assert rig.registry.here.held() == 0


async def test_health_signals_reach_every_table_of_the_keyspace():
    async with RegistryRig("t1", "t2", keyspaces=(KS, OTHER)) as rig:
        lost, saved = Receiver(1), Receiver(2)
        rig.registry.streams.attach(lost, "ks", "t1")
        await asyncio.sleep(1)
        rig.registry.here.shard_checked("ks", "80-", "refused")
        rig.registry.here.shard_checked("ks", "80-", None)
        rig.registry.streams.attach(saved, "ks", "t2")
        rig.registry.here.shard_checked("other", "0", "refused")
        await asyncio.sleep(100)
        assert lost.ended == saved.ended == []


async def test_index_advice_is_logged_when_the_table_is_found(caplog):
    from dataclasses import replace

    async with RegistryRig() as rig:
        rig.store.create("ks", replace(raw_table("t1"), indexes=()))
        await rig.registry.reload()
        await rig.registry.reload()
    (event, queue, advice), _ = logged(caplog, "queue", "advice")
    assert (event, queue, "ALTER TABLE" in advice) == ("message table", "t1", True)


async def test_a_commit_that_may_have_written_anything_is_found_by_every_stream_of_its_shard():
    async with RegistryRig("t1", "t2", "t3") as rig:
        receivers = [Receiver(number, frozenset({"-80"})) for number in (1, 2)]
        for receiver, name in zip(receivers, ("t1", "t2"), strict=True):
            rig.registry.streams.attach(receiver, "ks", name)
        await asyncio.sleep(0.1)
        rig.store.calls.clear()
        insert(rig, 1, table="t1")
        insert(rig, 2, table="t2")
        for _ in range(50):
            rig.commit(UNKNOWN, table=ANY_TABLE)
        await asyncio.sleep(0.1)
        assert [len(receiver.rows) for receiver in receivers] == [1, 1]
        assert rig.store.calls.count(("poll", "-80")) <= 4
        assert ("poll", "80-") not in rig.store.calls


async def test_what_is_in_flight_is_known_to_the_one_who_dispatches_it():
    async with RegistryRig("t1") as rig:
        here, ident = rig.registry.here, 2**53 + 1
        rig.registry.streams.attach(Receiver(), "ks", "t1")
        insert(rig, ident)
        rig.commit(new(ident))
        await asyncio.sleep(1)
        double = int(float(ident))
        assert here.find_rounded("ks", "T1", [double]) == (double, str(ident))
        assert here.find_rounded("ks", "none", [double]) is None
        found = here.leases_of("ks", "-80", "t1")
        assert found is not None
        leases, connections = found
        assert [(int(one.id), connections[one.receiver]) for one in leases] == [(ident, 1)]
        here.served_elsewhere("ks", "-80")
        assert here.leases_of("ks", "-80", "t1") is None
        assert await here.ack_early_elsewhere("ks", "-80", "t1", (), 0) is None, "there is none"
