import asyncio

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.leases.lease_rows import Look, Release, Shorten
from streamfrom.engine.messaging.leases.leases import Lease
from streamfrom.engine.messaging.queue.poll import Poll, PollRequest
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message import ClaimedRow, Purged
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.engine.messaging.upkeep.partitions import (
    DropPartition,
    MakePartitions,
    Outcome,
    Partition,
    RowsLeft,
    TakeCensus,
)
from streamfrom.engine.messaging.upkeep.purge import Purge
from streamfrom.proxy.backends import shard_store as module
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import Error, HangUp, Rows, Silence, rows_of, until
from tests.proxy.rigs import (
    NOW_NS,
    FixedClock,
    SessionRig,
    add_message_table,
    claimed,
    running_shard,
)


CLAIM = Rows(("id", "epoch", "time_next", "id", "message"), (claimed(5, b"five"),))


@pytest.fixture
async def store(server, shard):
    add_message_table(server)
    return ShardStore({("plain", "-"): shard}, FixedClock())


@pytest.fixture
async def table(store):
    (raw,) = await store.ask("plain", "-", discover)
    loaded = load("plain", raw)
    assert isinstance(loaded, MessageTable)
    return loaded


CLAIM_JOB = Claim(1, "-", (b"5",), ("id", "message"))


async def test_many_queues_that_purge_at_once_leave_connections_to_clients(server, table):
    gate = asyncio.Event()
    server.on("FOR UPDATE SKIP LOCKED", Silence(gate, rows_of()))
    async with running_shard(server, pool_size=module.PURGES_AT_ONCE + 1) as shard:
        store = ShardStore({("plain", "-"): shard}, FixedClock())
        purges = [asyncio.create_task(store.run(table, "-", Purge(NOW_NS))) for _ in range(200)]
        await until(lambda: shard.pool.lent == module.PURGES_AT_ONCE)
        assert not shard.pool.waiting
        gate.set()
        assert await asyncio.gather(*purges) == [Purged(0, 0)] * 200


async def test_the_engines_connection_is_reset_before_a_client_gets_it(server, table):
    async with running_shard(server, pool_size=1) as shard:
        store = ShardStore({("plain", "-"): shard}, FixedClock())
        await store.run(table, "-", CLAIM_JOB)
        session = SessionRig(shard)
        await session.run("SELECT 1")
        (connection,) = server.relays
        assert connection.autocommit
        assert "transaction_isolation" not in connection.variables
        await session.leave()


@pytest.mark.parametrize("answer", [Error(1205, "Lock wait timeout exceeded"), HangUp()])
@pytest.mark.parametrize("step", ["FOR UPDATE SKIP LOCKED", "UPDATE `msg`", "COMMIT"])
async def test_a_claim_that_fails_takes_its_transaction_with_it(
    server, shard, store, table, step, answer
):
    server.on("FOR UPDATE SKIP LOCKED", CLAIM)
    server.once(step, answer)
    with pytest.raises(StoreError):
        await store.run(table, "-", CLAIM_JOB)
    assert shard.pool.connections == 0
    await until(lambda: not server.relays)


async def test_a_claim_that_takes_too_long_is_given_up(
    server, shard, store, table, monkeypatch
):
    monkeypatch.setattr(module, "STATEMENT_TIMEOUT_S", 0.02)
    server.once("FOR UPDATE SKIP LOCKED", Silence())
    with pytest.raises(StoreError, match=r"no answer in 0\.02 s"):
        await store.run(table, "-", CLAIM_JOB)
    assert shard.pool.connections == 0


@pytest.mark.parametrize("is_lock", [True, False])
async def test_a_cancelled_claim_and_a_wait_for_a_lock_leave_no_transaction_behind(
    server, shard, store, table, is_lock
):
    server.on("LOCK TABLES", Silence())
    server.once("FOR UPDATE SKIP LOCKED", Silence())
    if is_lock:
        working = asyncio.ensure_future(store.run(table, "-", DropPartition("p1", 99, 0.01)))
        await until(lambda: any("KILL QUERY" in text for text in server.controlled))
    else:
        working = asyncio.ensure_future(store.run(table, "-", CLAIM_JOB))
        await until(lambda: any("SKIP LOCKED" in text for text in server.heard))
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert shard.pool.connections == 0


async def test_somebodys_lock_is_no_error(server, shard, store, table):
    server.on("LOCK TABLES", Error(1205, "Lock wait timeout exceeded"))
    made = [Partition("p2", 2)]
    # MariaDB has two columns less there than MySQL.
    server.on("EXPLAIN", Rows(tuple("abcdefghij"), ((*[b"x"] * 8, b"7", b"y"),)))
    assert await store.run(table, "-", DropPartition("p1", 99, 0.1)) == (Outcome.HELD, 7)
    assert await store.run(table, "-", MakePartitions(made, "prest", 0.1)) is Outcome.HELD
    assert shard.pool.connections == 0
    server.on("LOCK TABLES", Error(1044, "Access denied"))
    with pytest.raises(StoreError, match="Access denied"):
        await store.run(table, "-", DropPartition("p1", 99, 0.1))


PARTITIONED = (
    (b"p20270114", b"RANGE", b"`id`", b"214601564160000"),
    (b"p20270115", b"RANGE", b"`id`", b"215167795200000"),
    (b"prest", b"RANGE", b"`id`", b"MAXVALUE"),
)


async def test_partitions_that_are_dropped_meanwhile_are_read_again_until_it_is_enough(
    monkeypatch, server, store, table
):
    monkeypatch.setattr(module, "CHANGING_PAUSES_S", (0.0, 0.0))
    text, numbers = (FieldType.VAR_STRING,) * 4, (FieldType.LONGLONG,) * 3
    server.on("information_schema.partitions", Rows(tuple("abcd"), PARTITIONED, types=text))
    counts = Rows(tuple("abc"), ((b"0", b"3", b"0"),), types=numbers)
    changed = Error(1735, "Unknown partition 'p20270114'")
    server.once("PARTITION (`prest`)", changed, counts)
    census = await store.run(table, "-", TakeCensus())
    assert census is not None
    assert census.left == {"p20270114": RowsLeft(3, 0)}
    for error, asked in ((changed, 3), (Error(1142, "denied"), 1)):
        server.on("PARTITION (`prest`)", error)
        before = sum("PARTITION (`prest`)" in text for text in server.controlled)
        with pytest.raises(StoreError, match=error.message):
            await store.run(table, "-", TakeCensus())
        after = sum("PARTITION (`prest`)" in text for text in server.controlled)
        assert after - before == asked


async def test_a_server_that_is_down_is_a_store_error_everywhere(server, store, table):
    server.stop()
    for call in (
        store.run(table, "-", TakeCensus()),
        store.run(table, "-", DropPartition("p1", 99, 0.1)),
        store.run(table, "-", MakePartitions([Partition("p2", 2)], "prest", 0.1)),
        store.ask("plain", "-", discover),
        store.run(table, "-", Poll("-", PollRequest(10))),
        store.run(table, "-", Purge(NOW_NS)),
        store.run(table, "-", CLAIM_JOB),
        store.run(table, "-", Look("-", (b"5",))),
        store.run(table, "-", Release(1, "-", (ClaimedRow(b"5", "-", 0, 0, 9, b""),))),
        store.run(table, "-", Shorten("-", 1, (Lease(9, b"5", 1),), 7)),
    ):
        with pytest.raises(StoreError, match="not available"):
            await call
