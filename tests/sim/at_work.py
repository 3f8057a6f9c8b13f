"""Consumers that process their messages in typical ways, and the promise of leases that follow the work.

A message is processed twice only if its consumer died, or took longer than the wait for that one message (a consumer that acks several
at once has one wait for all of them). So whatever the backlog and prefetch, the simplest consumer does nothing twice.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.table.message import ClaimedRow, Tried, receiver_numbers
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.sim.consumer import SECOND_NS, Stream
from tests.sim.memory_store import MemoryStore, StoredRow, raw_table
from tests.sim.phases import check
from tests.sim.settings import KEYSPACE, TABLE
from tests.virtual_loop import VirtualClock


# An ack takes at most a third of a second to reach the dispatcher, and so does the statement that writes leases.
SLOW_S = 0.3


@dataclass(eq=False)
class Worker(Stream):
    """A consumer with a local queue: delivered messages wait here until it processes them.

    work_s: the longest time that it works on a message, less than a message's wait.
    """

    _: KW_ONLY
    world: AtWork
    work_s: float
    id: int = field(default_factory=lambda: next(receiver_numbers))
    rows: deque[ClaimedRow] = field(default_factory=deque)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    has_left: bool = False
    is_busy: bool = False
    acked_s: float = 0.0  # when it last made progress
    has_lapsed: bool = False  # it once made none for a whole wait, so others may have its current messages since

    def deliver(self, rows):
        if not (self.rows or self.is_busy):
            self.acked_s = self.world.now_s()
        self.rows.extend(rows)
        self.came.set()
        return True

    def end(self, _error):
        self.has_left = True

    def finish(self):
        self.world.registry.streams.forget(self, has_left=False)

    async def next(self):
        while not self.rows:
            self.came.clear()
            await self.came.wait()
        return self.rows.popleft()

    def takes_s(self):
        return self.world.dice.uniform(0, self.work_s)

    async def live(self):
        while True:
            await self.work_on(await self.next())

    async def work_on(self, row):
        begun_s = self.world.begins(self, row)
        await asyncio.sleep(self.takes_s())
        await self.world.ack(self, [(row, begun_s)])

    def leave(self):
        self.has_left = True
        self.world.registry.streams.detach(self)
        self.world.registry.streams.forget(self, has_left=True)


class Serial(Worker):
    """For each row: work, ack."""


class Steady(Worker):
    """Needs the same time for each."""

    def takes_s(self):
        return self.work_s


class Threads(Worker):
    """Has several threads, which take the rows in turn."""

    async def live(self):
        await asyncio.gather(*(super(Threads, self).live() for _ in range(4)))


class Batches(Worker):
    """Works on some, then acks all of them in any order."""

    async def live(self):
        while True:
            taken = [await self.next()]
            while self.rows and len(taken) < 4:
                taken.append(self.rows.popleft())
            begun = [(row, self.world.begins(self, row)) for row in taken]
            await asyncio.sleep(self.takes_s())
            self.world.dice.shuffle(begun)
            await self.world.ack(self, begun)


class Skipping(Worker):
    """Fails at some messages, and continues with the next."""

    async def work_on(self, row):
        if self.world.dice.random() < 0.2:
            self.world.begins(self, row)
            await asyncio.sleep(self.takes_s())
        else:
            await super().work_on(row)


class Beating(Worker):
    """Needs several times as long as the wait for some messages, and sends heartbeats meanwhile."""

    async def work_on(self, row):
        begun_s = self.world.begins(self, row)
        if self.world.dice.random() < 0.2:
            for _ in range(3):
                await asyncio.sleep(self.work_s)
                await self.world.beat(self, row)
        await asyncio.sleep(self.takes_s())
        await self.world.ack(self, [(row, begun_s)])


class Stuck(Worker):
    """Hangs at its third message until it is stopped."""

    async def live(self):
        for _ in range(2):
            await self.work_on(await self.next())
        self.world.begins(self, await self.next())
        await asyncio.sleep(5 * self.world.wait_s)
        self.leave()


@dataclass(eq=False)
class Taking(Worker):
    """STREAM … LIMIT: takes some, and works on them when its reply is over."""

    def __post_init__(self):
        self.rows_max = 5
        self.is_over = asyncio.Event()

    def finish(self):
        super().finish()
        self.is_over.set()

    async def live(self):
        while True:
            await self.is_over.wait()
            while self.rows:
                await self.work_on(self.rows.popleft())
            self.is_over.clear()
            self.id = next(receiver_numbers)
            self.world.registry.streams.attach(self, KEYSPACE, TABLE)


KINDS = (Serial, Steady, Threads, Batches, Skipping, Beating, Stuck, Taking)


@dataclass(eq=False)
class AtWork:
    """One history, of one proxy.

    begun: the worker that began a message, and the time, by id.
    twice: how often a message was begun that had been begun before.
    """

    seed: int
    kinds: tuple[type[Worker], ...] = KINDS
    messages: int = 60
    someone_leaves: bool = True
    begun: dict[bytes, list[tuple[Worker, float]]] = field(default_factory=dict)
    acked: set[bytes] = field(default_factory=set)
    twice: int = 0

    def __post_init__(self):
        self.dice = random.Random(self.seed)
        self.clock = VirtualClock()
        draw = self.dice.choice
        self.wait_s = draw([2, 3, 10])
        self.shards = draw([("0",), ("-80", "80-"), ("-40", "40-80", "80-")])
        self.prefetch = draw(["auto", "auto", 0, 1, 2, 5, 20, 100])
        self.failing = draw([0, 0, 0.1])
        self.lease = draw(["written", "lazy", f"lazy,vt_lease_delay={self.wait_s / 8}"])
        self.ack_way = draw(["committed", "early"])
        self.order = draw(["", "", "", ",vt_order=strict", ",vt_key=tenant,vt_max_per_key=2"])
        if self.order:
            self.lease, self.ack_way = "written", "committed"
        # One in this many rows shows no lease: the server does not write it.
        self.refused = draw([0, 0, 5])
        self.comment = (
            f"vitess_message,vt_ack_wait={self.wait_s},vt_max_backoff={self.wait_s * 2},vt_purge_after=100000,"
            f"vt_prefetch={self.prefetch},vt_lease={self.lease},vt_ack={self.ack_way},"
            f"vt_cache_size={draw([5, 20, 1000])},vt_batch_size={draw([1, 5, 100])},"
            f"vt_poller_interval={draw([1, 5])}{self.order}"
        )

    def now_s(self):
        return asyncio.get_running_loop().time()

    async def _pause(self, call, _shard):
        await asyncio.sleep(self.dice.choice([0, 0.001, 0.01, SLOW_S / 4]))
        if call == "write_leases" and self.dice.random() < self.failing:
            raise StoreError("the backend is gone")

    def _refuses(self, tried, row):
        return self.refused and tried is Tried.LEASE and int(row.id) % self.refused == 0

    def _watch(self, state):
        state.handle = partial(self._handle, state, state.handle)

    def _handle(self, state, handle, event, now_ns):
        """Run one step of the scheduler, and check its memory of messages."""
        actions = handle(event, now_ns)
        for shard in state.shards:
            check(shard)
        return actions

    async def run(self):
        """Run one history until all is acked, or the wait of all hanging workers is over."""
        self.store = MemoryStore(self.clock, pause=self._pause, refuses=self._refuses)
        self.store.create(KEYSPACE, raw_table(TABLE, self.comment, texts=("tenant",)))
        keyspace = Keyspace(KEYSPACE, tuple(Shard.named(name) for name in self.shards))
        self.registry = Registry(
            [keyspace], store=self.store, clock=self.clock, dice=random.Random(self.seed)
        )
        await self.registry.start()
        for state in self.registry.here.schedulers:
            self._watch(state)
        for number in range(self.messages):
            row = StoredRow(b"%d" % number, 5, time_next_ns=0, key=b"%d" % (number % 3))
            self.store.insert(KEYSPACE, self.dice.choice(self.shards), TABLE, row)
        # The least wait of a message, minus the time of its statements.
        work_s = self.wait_s - 2 * SLOW_S - 0.1
        workers: list[Worker] = [Serial(world=self, work_s=work_s)]
        for _ in range(self.dice.randint(0, 3)):
            kind = self.dice.choice(self.kinds)
            prefetch = self.dice.choice([None, None, 3, 30])
            own_s = work_s * self.dice.choice([1, 1, 0.3, 0.01])
            workers.append(kind(world=self, prefetch=prefetch, work_s=own_s))
        tasks = []
        for worker in workers:
            self.registry.streams.attach(worker, KEYSPACE, TABLE)
            tasks.append(asyncio.create_task(worker.live()))
        if self.someone_leaves and len(workers) > 2 and self.dice.random() < 0.5:
            await asyncio.sleep(self.wait_s * self.dice.uniform(0, 3))
            tasks[-1].cancel()
            workers[-1].leave()
        async with asyncio.timeout(self.messages * self.wait_s * 20):
            while len(self.acked) < self.messages:
                await asyncio.sleep(self.wait_s)
                for task in tasks:
                    if task.done() and not task.cancelled():
                        task.result()
        for task in tasks:
            task.cancel()
        await self.registry.stop(StoreError("shutdown"))

    def begins(self, worker, row):
        """Note that a worker begins a message, and check that no other worker is at it or has done it."""
        now_s = self.now_s()
        self.notice(worker)
        worker.is_busy = True
        before = self.begun.setdefault(row.id, [])
        others = [one for one in before if one[0] is not worker or one[1] != now_s]
        for other, begun_s in others:
            is_excused = other.has_left or now_s - begun_s >= self.wait_s
            is_excused |= other.has_lapsed or worker.has_lapsed
            assert is_excused, (
                f"{row.id!r} is worked on twice: by {type(other).__name__} since {begun_s},"
                f" and by {type(worker).__name__} at {now_s}"
            )
        self.twice += bool(others)
        # A worker that moves on to the next message without an ack has made no progress.
        since_s = worker.acked_s if isinstance(worker, Skipping) else now_s
        before.append((worker, since_s))
        return since_s

    def notice(self, worker):
        """Note if a worker has made no progress for long."""
        worker.has_lapsed |= self.now_s() - worker.acked_s >= self.wait_s

    async def ack(self, worker, begun):
        """Acknowledge messages, as a statement does."""
        await asyncio.sleep(self.dice.choice([0, 0.001, SLOW_S / 2]))
        by_shard: dict[str, list[bytes]] = {}
        for row, _ in begun:
            by_shard.setdefault(row.shard, []).append(row.id)
        for shard, ids in by_shard.items():
            now_ns = self.clock.time_ns()
            self.acked.update(ids)
            taken = None
            if self.ack_way == "early":
                taken = self.registry.here.ack_early(KEYSPACE, shard, TABLE, tuple(ids), now_ns)
            if taken is None:
                self.store.ack(KEYSPACE, shard, TABLE, ids)
                effect = Effect(EffectKind.ACK, tuple(map(int, ids)))
                self.registry.committed(KEYSPACE, shard, TABLE, [effect])
        self.notice(worker)
        worker.acked_s, worker.is_busy = self.now_s(), bool(worker.rows)
        await asyncio.sleep(self.dice.choice([0, 0.001]))

    async def beat(self, worker, row):
        """Extend the lease of a message: UPDATE … SET time_next = time_next + 1.

        This is progress, and starts a new wait for the worker, unless the server refuses it.
        """
        await self.registry.here.show_leases(KEYSPACE, row.shard, TABLE, (row.id,))
        stored = self.store.table(KEYSPACE, row.shard, TABLE)[row.id]
        until_ns = (stored.time_next_ns or 0) + SECOND_NS
        if self._refuses(Tried.LEASE, stored):
            return
        assert stored.epoch or self.failing, "a heartbeat finds a row that shows no lease"
        stored.time_next_ns = until_ns
        effect = Effect(EffectKind.HEARTBEAT, (int(row.id),))
        self.registry.committed(KEYSPACE, row.shard, TABLE, [effect])
        self.begun[row.id] = [
            (one, self.now_s() if one is worker else since_s)
            for one, since_s in self.begun[row.id]
        ]
