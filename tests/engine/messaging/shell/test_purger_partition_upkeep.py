"""The partitions of a queue over time, on a virtual clock and a store in memory."""

import asyncio
from dataclasses import replace

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.shell.purger import Purger
from streamfrom.engine.messaging.table.message_ids import first_id
from streamfrom.engine.messaging.upkeep.partitions import SPANS, Partitions
from tests.fixtures.logged import logged
from tests.sim.memory_store import MemoryStore, StoredRow, loaded, raw_table
from tests.virtual_loop import START_NS, VirtualClock


SECOND_NS = 10**9
HOUR = SPANS["HOUR"]
COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=600,vt_batch_size=10,"
    "vt_cache_size=100,vt_poller_interval=60"
)
TABLE = replace(loaded(raw_table("msg", COMMENT)), is_partitioned=True)
AT = "ks", "0", "msg"
FIRST = HOUR.partition(START_NS).name


class Rig:
    def __init__(self):
        self.store = MemoryStore(VirtualClock())
        timed = [HOUR.partition(START_NS + n * HOUR.length_ns) for n in range(HOUR.ahead + 1)]
        self.store.partitioned[AT] = Partitions(HOUR, tuple(timed), "prest")
        self.shard = ShardState("0", ShardQueue(10))
        self.counters = self.shard.counters
        self.is_elected = True
        self.purger = Purger(
            TABLE,
            [self.shard],
            self.store,
            VirtualClock(),
            may_purge=lambda _: self.is_elected,
            report_refused=lambda _: None,
        )

    def insert(self, at_s, acked_s=None, **options):
        acked_ns = None if acked_s is None else START_NS + acked_s * SECOND_NS
        row = StoredRow(
            b"%d" % first_id(START_NS + at_s * SECOND_NS), time_acked_ns=acked_ns, **options
        )
        self.store.insert(*AT, row)
        return self.store.table(*AT)[row.id]

    @property
    def names(self):
        return [name for name, _ in self.store.partitioned[AT].timed]

    def calls(self, name):
        return [call for call, _ in self.store.calls].count(name)


@pytest.fixture
async def rig(caplog):
    caplog.set_level("INFO")
    rig = Rig()
    yield rig
    await rig.purger.stop()


def overdue(caplog):
    """Return name and reason of each partition that the log reports."""
    lines = logged(caplog, "partition", "reason")
    return [(name, reason) for event, name, reason in lines if event == "partition overdue"]


async def test_two_days_of_hours(rig, caplog):
    """Each hour one partition is made and one dropped, and no row is deleted by itself."""
    await asyncio.sleep(5)  # beside the moments at which it purges
    for hour in range(2 * 24):
        rig.insert(hour * 3600 + 5, acked_s=hour * 3600 + 6)
        await asyncio.sleep(3600)
    # The last hour's row is too young.
    assert rig.names[0] == HOUR.partition(START_NS + (2 * 24 - 1) * HOUR.length_ns).name
    assert len(rig.names) > HOUR.least + 1
    assert len(rig.store.table(*AT)) == 1
    assert rig.calls("drop_partition") == rig.counters.purged == 2 * 24 - 1
    assert rig.calls("make_partitions") == 3, "each 13 hours, when 24 are left of 36"
    assert not [record for record in caplog.records if record.levelname != "INFO"]


async def test_a_transaction_that_holds_the_table_is_waited_for_in_longer_pauses(rig, caplog):
    rig.insert(5, acked_s=6)
    other = rig.insert(4000, is_locked=True)
    await asyncio.sleep(2 * 3600)
    assert FIRST in rig.names
    # For 50 minutes, with every other purge at most, as its pause is not longer than a minute.
    assert 48 <= rig.calls("drop_partition") <= 102
    told = [
        name for name, reason in overdue(caplog) if reason == "a transaction holds the table"
    ]
    assert 1 <= len(told) == len(set(told)), "once for each partition"
    other.is_locked = False
    await asyncio.sleep(2 * 61)
    assert FIRST not in rig.names
    assert rig.store.partitioned[AT].missing(VirtualClock().time_ns()) == ()


async def test_a_transaction_that_is_soon_over_is_nothing_to_tell(rig, caplog):
    other = rig.insert(5, acked_s=6, is_locked=True)
    await asyncio.sleep(3600 + 600 + 31)
    assert rig.calls("drop_partition") == 2
    other.is_locked = False
    await asyncio.sleep(600)
    assert FIRST not in rig.names
    assert not [record for record in caplog.records if record.levelname != "INFO"]


async def test_only_the_dispatcher_touches_partitions(rig, caplog):
    rig.insert(5, acked_s=6)
    rig.is_elected = False
    await asyncio.sleep(3 * 3600)
    assert rig.store.calls == []
    rig.is_elected = True
    await asyncio.sleep(61)
    assert FIRST not in rig.names
    assert rig.counters.purged == 1


async def test_an_account_that_may_not_drop_may_delete(rig, caplog):
    async def refuse(call, shard):
        if call in ("drop_partition", "make_partitions"):
            raise StoreError("DROP command denied")

    rig.store.pause = refuse
    rig.insert(5, acked_s=6)
    await asyncio.sleep(2 * 3600)
    assert FIRST in rig.names
    assert not rig.store.table(*AT)
    assert rig.counters.purged == 1
    assert rig.counters.purge_failures > 1
    failures = [
        each for each in logged(caplog, "queue", "shard", "reason") if each[0] == "purge failed"
    ]
    assert failures == [("purge failed", "msg", "0", "DROP command denied")]


async def test_after_a_long_absence_it_goes_on(rig, caplog):
    rig.is_elected = False
    await asyncio.sleep(90 * 3600)
    rig.is_elected = True
    await asyncio.sleep(61)
    assert rig.store.partitioned[AT].missing(VirtualClock().time_ns()) == ()
    assert not rig.store.rows_of_partition(TABLE, "0", "prest")


async def test_a_row_beyond_all_partitions_is_told_once_it_is_in_the_way(rig, caplog):
    row = rig.insert(10**6)
    await asyncio.sleep(12 * 3600)
    assert not overdue(caplog)
    await asyncio.sleep(2 * 3600)
    assert rig.calls("make_partitions") == 0
    ((name, reason),) = overdue(caplog)
    assert (name, reason.startswith("1 message with")) == ("prest", True)
    row.time_acked_ns = VirtualClock().time_ns()
    await asyncio.sleep(3600 + 2 * 600 + 2 * 61)
    assert not rig.store.table(*AT)
    assert rig.calls("make_partitions") == 1
    assert rig.store.partitioned[AT].missing(VirtualClock().time_ns()) == ()


async def test_a_table_that_is_partitioned_otherwise_is_purged_by_rows():
    rig = Rig()
    del rig.store.partitioned[AT]
    rig.insert(-1000, acked_s=-601)
    await asyncio.sleep(61)
    assert not rig.store.table(*AT)
    await rig.purger.stop()
