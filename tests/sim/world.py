"""A small world around the engine, with all events that the promises of `tests.sim.promises` cover.

Proxies are registries on one `MemoryStore`; consumers are receivers that ack, forget to ack, dawdle,
and leave; producers insert, now and then past every proxy; the database is slow, and calls
fail before or after they took effect. Everything is drawn from one seed and runs on virtual
time, so a failing seed fails every time.
"""

from __future__ import annotations

import asyncio
import random
from collections import ChainMap, Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.table.message import Tried, receiver_numbers
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from tests.sim.bad_rows import BadRows
from tests.sim.consumer import SECOND_NS, Consumer, LimitedConsumer
from tests.sim.memory_store import MemoryStore, StoredRow, raw_table
from tests.sim.promises import Promises
from tests.sim.settings import KEYSPACE, TABLE, Settings


POLL_NEVER_S = 10_000

# Messages whose acks fail because of bad rows come again and again, and fill a prefetch or a cache smaller than this.
FILLED_BY_BAD = 20


@dataclass(eq=False)
class World(Promises):
    """One history.

    changes: its settings that no seed draws, merged with those of its base classes.
    has_limited: there are streams with an end.
    has_bad_rows: in every second history the database refuses to write some rows.
    together: messages whose acks are about to be committed together, by shard.
    """

    changes: ClassVar[dict[str, Any]] = {}
    has_limited = True
    has_bad_rows = True

    dice: random.Random = field(init=False)
    is_chaos: bool = True
    is_paused: bool = False
    together: dict[str, list[bytes]] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self):
        self.dice = random.Random(self.seed)
        changes = (vars(kind).get("changes", {}) for kind in type(self).__mro__)
        drawn = Settings.drawn(self.seed, self.dice)
        self.settings = replace(drawn, **dict(ChainMap(*changes)))
        # Messages behind a bad row of their key are found by a poll, and if `is_told` there is none.
        self.bad = BadRows.drawn(self.seed if self.has_bad_rows and not self.is_told else 0)
        is_small = self.settings.prefetch and self.settings.prefetch < FILLED_BY_BAD
        if is_small or self.settings.cache < FILLED_BY_BAD:
            self.bad.spare_acks()
        if self.is_told:
            self.settings = replace(self.settings, proxies=1, failing=0, poll_s=POLL_NEVER_S)
        if self.settings.proxies == 1:
            # Without an election others could send the same rows.
            ack = self.dice.choice(["committed", "early"])
            self.settings = replace(self.settings, lease=self._lease(), ack=ack)

    def _lease(self):
        delay_s = self.dice.choice([0.05, 0.4, self.settings.ack_wait_s / 2])
        return self.dice.choice(["written", "lazy", f"lazy,vt_lease_delay={delay_s}"])

    async def run(self) -> Counter[bytes]:
        """Run one history; AssertionError when a promise is broken."""
        settings = self.settings
        self.store = MemoryStore(self.clock, pause=self._pause, refuses=self.bad.refuses)
        self.store.create(KEYSPACE, self.definition(settings.comment))
        keyspace = Keyspace(KEYSPACE, tuple(Shard.named(name) for name in settings.shards))
        self.is_chaos = False  # begin without trouble, so that every proxy knows the table
        for number in range(settings.proxies):
            registry = self.make_registry(number, keyspace)
            self.registries.append(registry)
            await registry.start()
        for registry in self.registries:
            for state in registry.here.schedulers:
                self._watch(state)
        self.is_chaos = True
        for _ in range(settings.consumers):
            self._join()
        # A few messages may take several times as long as they should.
        async with asyncio.timeout(10 * settings.chaos_s):
            await self._live()
        self.is_chaos = False
        self._calm()
        await self._set_paused(False)
        schedulers = len(settings.shards) * settings.proxies
        seconds = asyncio.get_running_loop().time() * schedulers
        polls = sum(call == "poll" for call, _ in self.store.calls)
        # Each scheduler begins with one, and a history may be over at once.
        assert polls - schedulers < 50 * seconds, "polls without a pause"
        # Messages that are never acked may come first, as the newest or by priority; a limit then lets no others pass.
        is_blocked = self.settings.max_in_flight is not None
        for consumer in list(self.consumers):
            if self.dice.random() < 0.5 or is_blocked:
                consumer.leave()
        for proxy in range(settings.proxies):
            if proxy == 0 or self.dice.random() < 0.5:
                self._join(proxy=proxy, polite=True)
        await self.until_all_acked()
        await self._all_leave()
        if not settings.failing:
            self._check_claims()
        await self._stop()
        for registry in self.registries:
            await registry.stop(StoreError("shutdown"))
        for task in self.tasks:
            task.cancel()
        return self.delivered

    def definition(self, comment):
        """Return the table of this history with other settings."""
        return raw_table(TABLE, comment)

    def make_registry(self, number, keyspace, **options):
        """Return a proxy's engine, before its start."""
        return Registry(
            [keyspace],
            **{"store": self.store} | options,
            clock=self.clock,
            dice=random.Random(self.dice.random()),
            stream_grace_s=1000,
        )

    # Events

    async def _live(self):
        """Insert the messages while consumers come and go and messages are rescheduled."""
        step_s = self.settings.chaos_s / (self.settings.messages * 3)
        while self.ids < self.settings.messages:
            await asyncio.sleep(self.dice.expovariate(1 / step_s))
            self.trouble()
            self.bad.heal_some()
            match self.dice.randrange(14):
                case 0:
                    self._join()
                case 1 if self.consumers:
                    self.dice.choice(self.consumers).leave()
                case 2:
                    self.spawn(self._reschedule())
                case 3:
                    self.spawn(self._heartbeat())
                case 4:
                    self.spawn(self._set_paused(not self.is_paused))
                case _:
                    self._insert(self.dice.choice([1, 1, 1, 2, 5]))

    def trouble(self):
        """Cause trouble apart from the messages."""

    def _calm(self):
        """End all trouble."""

    async def _stop(self):
        """Stop everything besides the engine."""

    def _join(self, proxy=None, *, polite=False):
        shards = None
        if not polite and self.dice.random() < 0.2:
            shards = frozenset(self.dice.sample(self.settings.shards, 1))
        kind: Callable[..., Consumer] = partial(Consumer, world=self)
        if self.has_limited and not polite and self.dice.random() < 0.3:
            limit, wait_s = self.dice.choice([1, 2, 5, 50]), self.dice.choice([None, 0, 1, 20])
            kind = partial(LimitedConsumer, world=self, limit=limit, wait_s=wait_s)
        consumer = kind(
            proxy=self.dice.randrange(self.settings.proxies) if proxy is None else proxy,
            id=next(receiver_numbers),
            shards=shards,
            columns=self.dice.choice([("id", "message"), ("message",)]),
            keys=self.keys_named(polite=polite),
            prefetch=None if polite else self.dice.choice([None, None, None, 0, 1, 3]),
            polite=polite,
        )
        self.consumers.append(consumer)
        self.registries[consumer.proxy].streams.attach(consumer, KEYSPACE, TABLE)
        if isinstance(consumer, LimitedConsumer):
            self.spawn(consumer.end_of_wait())

    def _insert(self, count):
        shard = self.dice.choice(self.settings.shards)
        now_ns = self.store.clock.time_ns()
        rows = []
        for _ in range(count):
            self.ids += 1
            time_next_ns = self.dice.choice(
                [0, 0, 0, None, now_ns - 5, now_ns + self.dice.randrange(20 * SECOND_NS)]
            )
            priority = self.dice.choice([1, 5, 5, 5, 9])
            row = StoredRow(b"%d" % self.ids, priority, time_next_ns=time_next_ns)
            row.key = self.key_of(self.ids)
            rows.append(row)
        self.group(rows)
        self.bad.inserted([row.id for row in rows])
        keys = self.store.insert(KEYSPACE, shard, TABLE, *rows)
        self.touched_ns.update(dict.fromkeys((row.id for row in rows), now_ns))
        effect = Effect(
            EffectKind.NEW,
            tuple(int(key.id) for key in keys),
            tuple(Key(int(key.id), key.priority, key.time_next_ns) for key in keys),
        )
        # A poll may read the rows before the server's OK arrives: 7 in 24 runs of two members showed that.
        self.spawn(self._tell_later(shard, effect))

    async def _tell_later(self, shard, effect):
        drawn = self._way()
        if delay_s := self.dice.choice([0, 0, 0.001, 0.02, 0.2]):
            await asyncio.sleep(delay_s)
        self.tell(shard, effect, drawn)

    # Further events for worlds with other tables

    def group(self, rows):
        """Let the messages of one transaction depend on one another."""

    def was_acked(self, shard, ids):
        """Called when messages were acked."""

    def key_of(self, _number):
        """Return the key of a message."""

    def keys_named(self, *, polite):
        """Return the keys that a new stream names; None for all."""
        return

    async def _set_paused(self, is_paused):
        """Pause or resume the queue; a proxy whose server fails does not notice it."""
        self.is_paused = is_paused
        comment = self.settings.comment + (",vt_paused=on" if is_paused else "")
        self.store.create(KEYSPACE, self.definition(comment))
        for registry in self.registries:
            await registry.reload(KEYSPACE)

    async def _reschedule(self):
        shard = self.dice.choice(self.settings.shards)
        rows = self.store.table(KEYSPACE, shard, TABLE)
        waiting = [row for row in rows.values() if row.time_acked_ns is None]
        if waiting:
            row = self.dice.choice(waiting)
            change = self._reorder_row if self.dice.random() < 0.3 else self._reschedule_row
            await change(shard, row)

    async def _reorder_row(self, shard, row):
        """Change a message's priority: its holder keeps it, whatever its row shows."""
        way = self._way()
        if 0.6 <= way[0] < 0.8:
            await self._show_leases(shard, None, way[1])
        row.priority = self.dice.choice([1, 5, 9])
        self.tell(shard, Effect(EffectKind.REORDER, (int(row.id),)), way)

    async def _reschedule_row(self, shard, row):
        way = await self._before_change(shard, row.id)
        if row.time_acked_ns is None:
            now_ns = self.store.clock.time_ns()
            row.time_next_ns = now_ns + self.dice.randrange(-SECOND_NS, 5 * SECOND_NS)
            row.priority = self.dice.choice([1, 5, 9])
            for consumer in self.consumers:
                consumer.held.pop(row.id, None)
            self.rescheduled[row.id] += 1
            self.touched_ns[row.id] = now_ns
            self.tell(shard, Effect(EffectKind.RESCHEDULE, (int(row.id),)), way)

    async def _before_change(self, shard, ident):
        """Draw the path of a statement that changes a row, and let its lease be written if it passes a proxy."""
        way, proxy = self._way()
        if way < 0.8:
            await self._show_leases(shard, (ident,) if way < 0.6 else None, proxy)
        return way, proxy

    async def _show_leases(self, shard, ids, proxy):
        dispatcher = self.registries[proxy].dispatcher(KEYSPACE, shard)
        await dispatcher.show_leases(KEYSPACE, shard, TABLE, ids)

    async def _heartbeat(self):
        """Extend the lease of a held message."""
        now_ns = self.store.clock.time_ns()
        held = [
            (consumer, ident)
            for consumer in self.consumers
            for ident, (_, lease_ns) in consumer.held.items()
            if lease_ns > now_ns and not (consumer.has_left or consumer.is_busy)
        ]
        if not held:
            return
        consumer, ident = self.dice.choice(held)
        shards = [
            name
            for name in self.settings.shards
            if ident in self.store.table(KEYSPACE, name, TABLE)
        ]
        if not shards:
            return
        way = await self._before_change(shards[0], ident)
        epoch, lease_ns = consumer.held.pop(ident, (0, 0))
        for shard in shards:
            row = self.store.table(KEYSPACE, shard, TABLE).get(ident)
            if row is None or (row.epoch, row.time_next_ns) != (epoch + 1, lease_ns):
                continue
            until_ns = lease_ns + round(self.dice.uniform(0, 5) * SECOND_NS)
            row.time_next_ns = until_ns
            self.rescheduled[ident] += 1
            proxy = self.tell(shard, Effect(EffectKind.HEARTBEAT, (int(ident),)), way)
            if proxy == consumer.proxy and self.is_told:
                # Otherwise it may count as over: a read may fail, or not distinguish it from a reschedule.
                consumer.held[ident] = epoch, until_ns

    def _way(self):
        """Draw how the scheduler learns of a statement, and through which proxy."""
        way = 0 if self.is_told else self.dice.random()
        return way, self.dice.randrange(self.settings.proxies)

    def tell(self, shard, effect, drawn=None):
        """Commit through a proxy, with or without readable ids, or past all of them."""
        way, proxy = drawn or self._way()
        if way < 0.6:
            self.registries[proxy].committed(KEYSPACE, shard, TABLE, [effect])
            return proxy
        if way < 0.8:
            unknown = Effect(EffectKind.UNKNOWN, None)
            self.registries[proxy].committed(KEYSPACE, shard, TABLE, [unknown])
        return None

    def sent(self, consumer, rows):
        """Let the consumer receive the rows: mostly, it acks them some time later."""
        lost = 0 if consumer.polite else self.settings.lost_acks
        acked = [row for row in self.claimed(rows) if self.dice.random() >= lost]
        for row in acked:
            self.spawn(self._ack_later(row))
        self.leased.update((row.id, (consumer, row.due_next_ns)) for row in self.claimed(rows))

    async def _ack_later(self, row):
        # Mostly at once; now and then just when the row is due again.
        late = self.dice.random() < 0.3 and self.settings.ack_wait_s * self.dice.uniform(
            0.9, 1.4
        )
        await asyncio.sleep(late or self.dice.expovariate(1 / 0.5))
        # It may hold its neighbours too, for as long as it takes, or be rolled back the first time.
        table = self.store.table(KEYSPACE, row.shard, TABLE)
        held = [one for one in table.values() if not one.is_locked and self.dice.random() < 0.5]
        for one in held:
            one.is_locked = True
        await asyncio.sleep(self.dice.choice([0, 0.001, 0.01, 0.3]))
        for one in held:
            one.is_locked = False
            self.touched_ns[one.id] = self.store.clock.time_ns()
        if self.dice.random() < 0.1:
            await asyncio.sleep(self.dice.uniform(0, 1))
        if self.dice.random() < 0.7:
            self.ack(row.shard, [row.id])
            return
        # Simultaneous acks of several clients are committed together.
        together = self.together.setdefault(row.shard, [])
        together.append(row.id)
        if len(together) == 1:
            await asyncio.sleep(self.dice.choice([0.001, 0.3, 1]))
            self.ack(row.shard, self.together.pop(row.shard))

    def ack(self, shard, ids):
        if self.settings.ack == "early":
            now_ns = self.store.clock.time_ns()
            taken = self.registries[0].here.ack_early(
                KEYSPACE, shard, TABLE, tuple(ids), now_ns
            )
            if taken is not None:
                assert taken == len(set(ids) - self.acked_early), "acked twice"
                self.acked_early.update(ids)
                self.acked_via.update(dict.fromkeys(ids, (now_ns, (0,))))
                return
        table = self.store.table(KEYSPACE, shard, TABLE)
        # For a bad row the ack fails, and the message is sent again.
        ids = [
            one for one in ids if not (one in table and self.bad.refuses(Tried.ACK, table[one]))
        ]
        acked = self.store.ack(KEYSPACE, shard, TABLE, ids)
        proxies = (
            [self.dice.randrange(self.settings.proxies)] if self.dice.random() < 0.8 else []
        )
        for ident in acked:
            epoch = self.store.table(KEYSPACE, shard, TABLE)[ident].epoch
            if epoch and (ident, epoch - 1) not in self.attempts:
                self.acked_in_flight.add(ident)
            self.acked_via[ident] = (self.store.clock.time_ns(), tuple(proxies))
        for proxy in proxies:
            effect = Effect(EffectKind.ACK, tuple(int(ident) for ident in ids))
            self.registries[proxy].committed(KEYSPACE, shard, TABLE, [effect])
        self.was_acked(shard, ids)

    async def _pause(self, _call, shard):
        await asyncio.sleep(self.dice.choice([0, 0.001, 0.001, 0.05, 0.3]))
        if self.is_chaos and self.dice.random() < self.settings.failing:
            raise StoreError(f"the backend of {shard} is gone")

    async def heal(self):
        """Make all rows good: one is written with an event, another past all proxies, and a third just when it is tried."""
        for ident in sorted(self.bad.kinds):
            del self.bad.kinds[ident]
            for shard in self.settings.shards:
                row = self.store.table(KEYSPACE, shard, TABLE).get(ident)
                if row is not None and self.seed % 4 == 1:
                    await self._reschedule_row(shard, row)

    def spawn(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
