"""Rows that others lock for a while, and how soon they are sent once they are free.

One proxy, one consumer that is always ready, and transactions of others that hold rows for between
a millisecond and some seconds, as an ack does that locks its neighbours, or a client's own
transaction. No poll helps: the next one is hours away. A claim takes 2 ms.

The promises, for each row:

* it is sent once it is free, after at most as long as it was locked and a millisecond, and never
  more than a second;
* it costs few claims: ten in the first second that it is locked, then one a second.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from tests.sim.consumer import Stream
from tests.sim.memory_store import MemoryStore, StoredRow, raw_table
from tests.virtual_loop import VirtualClock


KEYSPACE, SHARD, TABLE = "ks", "0", "msg"
COMMENT = (
    "vitess_message,vt_ack_wait=1000,vt_purge_after=100000,vt_batch_size=10,vt_cache_size=1000,"
    "vt_poller_interval=10000,vt_lease=written"
)
MESSAGES = 30
STEP_S = 0.001  # half a claim
# The end of a claim that came too early, the claim that is waited for, and the row's own.
CLAIMING_S = 5 * STEP_S
PAUSE_FIRST_S, PAUSE_LAST_S = 0.001, 1.0


class LockedRows(Stream):
    """One history, which is its consumer too."""

    prefetch = 0

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.store = MemoryStore(VirtualClock(), pause=self._pause)
        self.store.create(KEYSPACE, raw_table(TABLE, COMMENT))
        self.free_s: dict[bytes, float] = {}
        self.locked_s: dict[bytes, float] = {}
        self.sent_s: dict[bytes, float] = {}

    async def run(self) -> None:
        """Live through it; AssertionError when a promise is broken."""
        registry = Registry(
            [Keyspace(KEYSPACE, (Shard.named(SHARD),))],
            self.store,
            clock=VirtualClock(),
            dice=random.Random(0),
            stream_grace_s=1000,
        )
        await registry.start()
        registry.here.attach(self, KEYSPACE, TABLE)
        await asyncio.sleep(1)
        polls = self._calls("poll")
        async with asyncio.TaskGroup() as group:
            for number in range(MESSAGES):
                await asyncio.sleep(self.dice.expovariate(1 / 0.05))
                group.create_task(self._message(registry, b"%d" % number))
        await asyncio.sleep(2 * PAUSE_LAST_S)
        assert self.sent_s.keys() == self.free_s.keys()
        for ident, sent_s in self.sent_s.items():
            pause_s = min(self.locked_s[ident] + PAUSE_FIRST_S, PAUSE_LAST_S)
            late_s = sent_s - self.free_s[ident]
            assert -CLAIMING_S <= late_s <= pause_s + CLAIMING_S, (ident, late_s, pause_s)
        assert self._calls("poll") == polls
        assert self._calls("claim") <= sum(12 + locked_s for locked_s in self.locked_s.values())
        registry.streams.detach(self)
        await registry.stop(StoreError("shutdown"))

    async def _message(self, registry: Registry, ident: bytes) -> None:
        loop = asyncio.get_running_loop()
        row = StoredRow(ident, is_locked=True)
        (key,) = self.store.insert(KEYSPACE, SHARD, TABLE, row)
        new = Effect(EffectKind.NEW, (int(ident),), (Key(int(ident), key.priority, 0),))
        registry.committed(KEYSPACE, SHARD, TABLE, [new])
        locked_s = self.dice.choice([0.0, 0.001, 0.002, 0.005, 0.02, 0.2, 3.0])
        self.locked_s[ident] = locked_s = locked_s * self.dice.random()
        await asyncio.sleep(locked_s)
        row.is_locked = False
        self.free_s[ident] = loop.time()

    def deliver(self, rows: Sequence[ClaimedRow]) -> bool:
        for row in rows:
            assert row.id not in self.sent_s, "sent twice"
            self.sent_s[row.id] = asyncio.get_running_loop().time()
        return True

    def end(self, error: Exception) -> None:
        raise AssertionError(error)

    def finish(self) -> None:
        raise AssertionError

    def _calls(self, name: str) -> int:
        return sum(call == name for call, _ in self.store.calls)

    async def _pause(self, _call: str, _shard: str) -> None:
        await asyncio.sleep(STEP_S)
