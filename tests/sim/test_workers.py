"""Workers that take their time for each message: who gets what, and when the backlog is done."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.memory_store import MemoryStore, StoredRow, raw_table
from streamfrom.engine.messaging.message import ClaimedRow
from streamfrom.engine.messaging.registry import Registry
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.virtual_loop import VirtualClock, running


CALL_S = 0.003  # what a commit takes


@dataclass(eq=False)
class Worker:
    """Works on one message after the other and acks it, like most consumers."""

    office: Office
    id: int
    work_s: float
    prefetch: int | None
    shards: frozenset[str] | None = None
    columns: tuple[str, ...] = ("id", "message")
    connection_id: int = 1
    rows_max: int | None = None
    keys: frozenset[bytes] | None = None
    waiting: deque[ClaimedRow] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0

    def deliver(self, rows):
        self.waiting.extend(rows)
        self.office.sent.update(row.id for row in rows)
        self.arrived.set()
        return True

    def end(self, error):
        raise AssertionError(error)

    def finish(self):
        raise AssertionError

    async def work(self):
        while True:
            while not self.waiting:
                self.arrived.clear()
                await self.arrived.wait()
            row = self.waiting.popleft()
            await asyncio.sleep(self.work_s)
            self.done += 1
            self.office.ack(row)


class Office:
    """One proxy, its table over some shards, and the workers."""

    def __init__(self, messages, works_s, prefetch, shards=("0",), seed=1):
        self.dice = random.Random(seed)
        self.store = MemoryStore(VirtualClock(), pause=self._pause)
        self.store.create("ks", raw_table("msg"))
        keyspace = Keyspace("ks", tuple(map(Shard.named, shards)))
        self.registry = Registry([keyspace], self.store, clock=VirtualClock())
        self.sent: Counter[bytes] = Counter()
        self.left = messages
        self.is_done = asyncio.Event()
        for ident in range(messages):
            shard = self.dice.choice(shards)
            self.store.insert("ks", shard, "msg", StoredRow(b"%d" % ident))
        self.workers = [
            Worker(self, number, work_s, prefetch) for number, work_s in enumerate(works_s, 1)
        ]

    async def _pause(self, _call, _shard):
        await asyncio.sleep(self.dice.uniform(0, CALL_S))

    def ack(self, row):
        acked = self.store.ack("ks", row.shard, "msg", [row.id])
        effect = Effect(EffectKind.ACK, tuple(map(int, acked)))
        self.registry.committed("ks", row.shard, "msg", [effect])
        self.left -= len(acked)
        if not self.left:
            self.is_done.set()

    async def run(self):
        """Return how long the backlog took, in seconds."""
        await self.registry.start()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        tasks = []
        for worker in self.workers:
            self.registry.attach(worker, "ks", "msg")
            tasks.append(loop.create_task(worker.work()))
        await self.is_done.wait()
        for task in tasks:
            task.cancel()
        took_s = loop.time() - began_s
        for worker in self.workers:
            self.registry.detach(worker)
        await self.registry.stop(StoreError("stopped"))
        return took_s


@pytest.mark.parametrize(
    ("prefetch", "shards", "messages"),
    [
        (10, ("0",), 2000),
        (None, ("0",), 400),
        (1, ("0",), 400),
        (None, ("-40", "40-80", "80-"), 400),
        (1, ("-40", "40-80", "80-"), 400),
        (10, ("-40", "40-80", "80-"), 400),
    ],
)
@running
async def test_four_equal_workers_finish_a_backlog_together(prefetch, shards, messages):
    office = Office(messages, [0.05] * 4, prefetch, shards)
    assert await office.run() <= 1.15 * messages * 0.05 / 4
    assert set(office.sent.values()) == {1}, "none is sent twice"


@running
async def test_a_slow_worker_takes_what_it_can_work_on_and_leaves_the_rest():
    office = Office(1000, [1.0, 0.05, 0.05], prefetch=5)
    ideal_s = 1000 / (1 / 1.0 + 2 / 0.05)
    # The slow one may have taken its last five just before the end.
    assert await office.run() <= ideal_s + 5 * 1.0
    assert set(office.sent.values()) == {1}
    assert all(worker.done >= 5 for worker in office.workers), "nobody starves"
