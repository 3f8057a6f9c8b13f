"""Workers that take their time for each message: who gets what, and when the backlog is done."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from math import inf

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.sim.consumer import Stream
from tests.sim.memory_store import DEFAULT_COMMENT, MemoryStore, StoredRow, raw_table
from tests.virtual_loop import VirtualClock


CALL_S = 0.003  # what a commit takes


@dataclass(eq=False)
class Worker(Stream):
    """Works on one message after the other and acks it, like most consumers, in each of its threads.

    work_s: how long it works on a message, or what draws that; it hangs where that is infinite.
    batch: how many it works on, at most, before it acks them.
    sizes: how many it might hold when it acked, each time.
    """

    _: KW_ONLY
    office: Office
    work_s: float | Callable[[random.Random], float]
    threads: int = 1
    batch: int = 1
    waiting: deque[ClaimedRow] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    done: int = 0
    sizes: list[int] = field(default_factory=list)

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
            rows = [self.waiting.popleft() for _ in range(min(self.batch, len(self.waiting)))]
            for row in rows:
                work_s = self.work_s(self.office.dice) if callable(self.work_s) else self.work_s
                await asyncio.sleep(work_s)
                self.done += 1
                self.office.worked[row.id] += 1
            self.sizes += [
                state.receivers.attached[self.id].limit for state in self.office.states
            ]
            for row in rows:
                self.office.ack(row)


class Office:
    """One proxy, its table over some shards, and the workers."""

    def __init__(
        self, messages, works_s, prefetch=None, shards=("0",), *, ack_wait_s=30, seed=1, **how
    ):
        self.dice = random.Random(seed)
        self.store = MemoryStore(VirtualClock(), pause=self._pause)
        comment = DEFAULT_COMMENT.replace("vt_ack_wait=30", f"vt_ack_wait={ack_wait_s}")
        self.store.create("ks", raw_table("msg", comment))
        keyspace = Keyspace("ks", tuple(map(Shard.named, shards)))
        self.registry = Registry([keyspace], self.store, clock=VirtualClock())
        self.sent: Counter[bytes] = Counter()
        self.worked: Counter[bytes] = Counter()
        self.left = messages
        self.is_done = asyncio.Event()
        for ident in range(messages):
            shard = self.dice.choice(shards)
            self.store.insert("ks", shard, "msg", StoredRow(b"%d" % ident))
        self.workers = [
            Worker(number, office=self, work_s=work_s, prefetch=prefetch, **how)
            for number, work_s in enumerate(works_s, 1)
        ]

    @property
    def states(self):
        return self.registry.here.schedulers

    async def _pause(self, _call, _shard):
        await asyncio.sleep(self.dice.uniform(0, CALL_S))

    def ack(self, row):
        acked = self.store.ack("ks", row.shard, "msg", [row.id])
        effect = Effect(EffectKind.ACK, tuple(map(int, acked)))
        self.registry.committed("ks", row.shard, "msg", [effect])
        self.left -= len(acked)
        if not self.left:
            self.is_done.set()

    async def run(self, apart_s=0.0):
        """Return how long the backlog took, in seconds. apart_s: between the first worker and the others."""
        await self.registry.start()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        tasks = []
        for worker in self.workers:
            self.registry.streams.attach(worker, "ks", "msg")
            tasks += [loop.create_task(worker.work()) for _ in range(worker.threads)]
            if worker is self.workers[0]:
                await asyncio.sleep(apart_s)
        await self.is_done.wait()
        for task in tasks:
            task.cancel()
        took_s = loop.time() - began_s
        for worker in self.workers:
            self.registry.streams.detach(worker)
        await self.registry.stop(StoreError("stopped"))
        return took_s


async def test_a_slow_worker_takes_what_it_can_work_on_and_leaves_the_rest():
    office = Office(500, [1.0, 0.05, 0.05], prefetch=5)
    ideal_s = 500 / (1 / 1.0 + 2 / 0.05)
    # The slow one may have taken its last five just before the end.
    assert await office.run() <= ideal_s + 5 * 1.0
    assert set(office.sent.values()) == {1}
    assert all(worker.done >= 5 for worker in office.workers), "nobody starves"


# The window of each stream follows its acks


@pytest.mark.parametrize("shards", [("0",), ("-40", "40-80", "80-")])
@pytest.mark.parametrize(
    ("messages", "work_s", "workers", "prefetch"),
    [(16, 1.0, 4, None), (60, 0.25, 2, None), (120, 1.0, 2, None), (400, 0.02, 4, None), (400, 0.05, 4, 1), (600, 0.05, 4, 10)],
)  # fmt: skip
async def test_workers_of_any_speed_share_a_backlog(
    messages, work_s, workers, prefetch, shards
):
    office = Office(messages, [work_s] * workers, prefetch, shards)
    assert await office.run() <= 1.1 * messages * work_s / workers
    assert set(office.sent.values()) == {1}, "none is sent twice"


async def test_who_connects_first_takes_no_more_than_its_part():
    office = Office(16, [1.0] * 4)
    assert await office.run(apart_s=0.1) <= 4.3
    assert {worker.done for worker in office.workers} == {4}


async def test_one_that_hangs_holds_up_no_more_than_it_has():
    office = Office(60, [inf, 1.0, 1.0, 1.0], ack_wait_s=10)
    # The wait is drawn per message, up to a third longer.
    assert await office.run() <= 10 * 4 / 3 + 1.2 * 60 / 4
    assert set(office.worked.values()) == {1}


async def test_eight_threads_have_work():
    office = Office(600, [lambda dice: dice.uniform(1.0, 2.8)], threads=8)
    assert 600 * 1.9 / 8 / await office.run() >= 0.75
    assert set(office.worked.values()) == {1}


@pytest.mark.parametrize("batch", [1, 100])
async def test_a_fast_consumer_is_as_fast_as_without_any_limit(batch):
    office, free = (Office(1200, [0.0001], prefetch, batch=batch) for prefetch in (None, 0))
    assert await office.run() <= 1.1 * await free.run()
    assert set(office.sent.values()) == {1}


def exponential(dice):
    return dice.expovariate(1.0)


async def test_a_serial_worker_of_random_times_holds_two_to_eight():
    office = Office(300, [exponential], ack_wait_s=60)
    await office.run()
    (worker,) = office.workers
    assert statistics.median(worker.sizes) == 2
    assert statistics.quantiles(worker.sizes, n=20)[-1] <= 8


async def test_workers_of_random_times_share_a_backlog():
    assert await Office(200, [exponential] * 4, ack_wait_s=60).run() <= 1.2 * 50


async def test_a_worker_that_was_slow_and_is_fast_is_not_held_up():
    left = iter([5.0] * 4)
    assert await Office(800, [lambda _: next(left, 0.001)]).run() <= 20 + 1.1 * 0.8


@pytest.mark.parametrize("seed", range(3))
async def test_a_mixture_is_about_as_fast_as_with_the_best_number(seed):
    dice = random.Random(seed)
    means_s = [dice.choice([0.01, 0.1, 0.5]) for _ in range(dice.choice([1, 2, 4]))]
    works_s = [
        lambda dice, mean_s=mean_s: mean_s * dice.uniform(0.1, 1.9) for mean_s in means_s
    ]
    threads = dice.choice([1, 4])
    took_s = [
        await Office(100, works_s, prefetch, seed=seed, threads=threads).run()
        for prefetch in (None, 1, 4, 32)
    ]
    assert took_s[0] <= 1.25 * min(took_s[1:]) + 3
