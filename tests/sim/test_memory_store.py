"""The store in memory keeps the rules that the real one gets from its SQL."""

import asyncio

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
from streamfrom.engine.messaging.table.message import LeaseWrite, LeaseWrites
from tests.sim.memory_store import DEFAULT_COMMENT, MemoryStore, StoredRow, loaded, raw_table
from tests.virtual_loop import VirtualClock, running


TABLE = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_lease=written"))
LAZY = loaded(raw_table("msg"))


def rig(*rows, **options):
    store = MemoryStore(VirtualClock(), **options)
    store.create("ks", raw_table("msg"))
    store.insert("ks", "0", "msg", *rows)
    return store


def request(*ids):
    return ClaimRequest(ids, ("id",), lambda: 0)


@running
async def test_a_first_delivery_writes_nothing_until_its_lease_is_written():
    store = rig(StoredRow(b"1"), StoredRow(b"2", is_locked=True), StoredRow(b"3", epoch=1))
    won = (await store.claim(LAZY, "0", request(b"1", b"2", b"3"))).rows
    assert [(row.id, row.is_written) for row in won] == [
        (b"1", False), (b"2", False), (b"3", True),
    ]  # fmt: skip
    rows = store.table("ks", "0", "msg")
    assert [row.epoch for row in rows.values()] == [0, 0, 2]
    leases = [LeaseWrite(row.id, row.due_next_ns) for row in won[:2]]
    assert await store.write_leases(LAZY, "0", leases) == LeaseWrites((), (b"2",))
    assert rows[b"1"].epoch == 1
    assert rows[b"1"].time_next_ns == won[0].due_next_ns


@pytest.mark.parametrize(("fails_at", "epoch"), [(1, 0), (2, 1)])
@running
async def test_a_call_may_fail_before_or_after_it_took_effect(fails_at, epoch):
    steps = []

    async def pause(_call, _shard):
        await asyncio.sleep(0)
        steps.append(1)
        if len(steps) == fails_at:
            raise StoreError("gone")

    store = rig(StoredRow(b"1"), pause=pause)
    with pytest.raises(StoreError):
        await store.claim(TABLE, "0", request(b"1"))
    assert store.table("ks", "0", "msg")[b"1"].epoch == epoch
