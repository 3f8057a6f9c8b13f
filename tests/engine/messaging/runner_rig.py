"""A runner on a store in memory, and a receiver that keeps what it is given."""

import asyncio
from dataclasses import dataclass, field

from streamfrom.engine.errors import ReceiverGone, StoreError
from streamfrom.engine.messaging.dispatch.events import Due
from streamfrom.engine.messaging.shell.runner import Runner
from streamfrom.engine.messaging.table.message import ClaimedRow, Purged
from streamfrom.engine.messaging.upkeep.purge import Purge
from tests.sim.consumer import Stream
from tests.sim.memory_store import MemoryStore, StoredRow, loaded, raw_table
from tests.virtual_loop import VirtualClock


SECOND_NS = 10**9
COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=100,vt_poller_interval=600,vt_prefetch=100"
)
STOPPED = StoreError("stopped")


@dataclass(eq=False)
class Receiver(Stream):
    """Takes what it is given, while it has room for it."""

    prefetch: int | None = 0
    room: int = 1000  # batches
    rows: list[ClaimedRow] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    ended: list[Exception] = field(default_factory=list)
    is_gone: bool = False
    is_finished: bool = False

    def deliver(self, rows):
        if self.is_gone:
            raise ReceiverGone
        self.room -= 1
        self.rows += rows
        self.times_s += [asyncio.get_running_loop().time()] * len(rows)
        return self.room > 0

    def end(self, error):
        self.ended.append(error)

    def finish(self):
        self.is_finished = True

    @property
    def ids(self):
        return [int(row.id) for row in self.rows]


class KeepingStore(MemoryStore):
    """Purges nothing, which is no call."""

    async def run(self, table, shard, job):
        return Purged() if isinstance(job, Purge) else await super().run(table, shard, job)


class RunnerRig:
    """A runner on a store in memory, inside a running virtual loop."""

    def __init__(self, comment=COMMENT, clock=None, *, numbers=(), **store):
        clock = clock or VirtualClock()
        self.store = KeepingStore(clock, **store)
        self.table = loaded(raw_table("msg", comment, numbers=numbers))
        self.runner = Runner(
            self.table, ["0"], self.store, clock=clock, draw=lambda: 0,
            grace_ns=30 * SECOND_NS,
        )  # fmt: skip

    def insert(self, *ids, time_next_ns=0):
        """Commit rows past the proxy."""
        rows = (StoredRow(b"%d" % one, time_next_ns=time_next_ns) for one in ids)
        return self.store.insert("ks", "0", "msg", *rows)

    def commit(self, *ids, time_next_ns=0):
        """Commit rows through the proxy."""
        self.runner.post(Due("0", self.insert(*ids, time_next_ns=time_next_ns)))

    def row(self, ident):
        return self.store.table("ks", "0", "msg")[b"%d" % ident]

    def calls(self, name):
        return sum(call == name for call, _ in self.store.calls)


async def streaming(comment=COMMENT, *, wait_s=0.1, **options):
    """Return a rig with an open stream, and its receiver, so long after it was opened."""
    rig, receiver = RunnerRig(comment, **options), Receiver()
    rig.runner.attach(receiver)
    await asyncio.sleep(wait_s)
    return rig, receiver


def now_s():
    return asyncio.get_running_loop().time()


def failing_between(start_s, end_s):
    """Return what lets every call of the store fail in that time, for its *pause*."""

    async def pause(_call, shard):
        await asyncio.sleep(0.01)
        if start_s <= now_s() < end_s:
            raise StoreError(f"the backend of {shard} is gone")

    return pause
