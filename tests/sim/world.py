"""A small world around the engine, and the promises it must keep whatever happens in it.

Proxies are registries on one `MemoryStore`; consumers are receivers that ack, forget to ack, dawdle,
and leave; producers insert, now and then past every proxy; the database is slow, and calls
fail before or after they took effect. Everything is drawn from one seed and runs on virtual
time, so a failing seed fails every time.

The promises, checked as things happen or at the end:

* nothing is lost: when the trouble is over, every message is delivered and acked;
* in a world that `is_told` everything by the one proxy there is, nothing waits for a poll's interval;
* no attempt (id, epoch) is delivered twice;
* nothing is sent that was acked before it was claimed, or acked through the same proxy;
* nothing is sent whose ack was answered early, and every such ack is written;
* nothing is sent before it is due, and nothing is claimed without being sent or released;
* no receiver holds more than its prefetch, by what the database says, and nothing that is due waits
  while somebody has room;
* what a consumer held whose connection ended is due again vt_release_after later;
* an answer with an end gives no more than its limit, waits as long as it says, and ends soon when nothing
  is due; what it gave is held by the leases alone;
* a receiver gets one batch at a time, of at most vt_batch_size or its own limit, from shards it covers,
  in the order of priority and time;
* the database is left in peace: no storm of polls, and nothing at all when nobody listens;
* the cache never holds more than vt_cache_size keys of a shard.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.attached_receiver import GATHER_NS
from streamfrom.engine.messaging.events import Claim, Deliver, Reconfigured
from streamfrom.engine.messaging.memory_store import MemoryStore, StoredRow, raw_table
from streamfrom.engine.messaging.message import ClaimedRow, receiver_numbers
from streamfrom.engine.messaging.registry import Registry
from streamfrom.engine.messaging.retry_limit import PARKED_NS
from streamfrom.engine.messaging.sending import CLAIMS_IN_FLIGHT_MAX
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from tests.sim.consumer import SECOND_NS, Consumer, LimitedConsumer
from tests.sim.settings import Settings
from tests.virtual_loop import VirtualClock


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.engine.messaging.table_state import TableState


KEYSPACE, TABLE = "ks", "msg"
POLL_NEVER_S = 10_000
SET_S = 6  # until when a clock that was set is seen to have been
POLL_LAST_S = 20  # of those that are drawn


@dataclass(eq=False)
class World:
    """One history."""

    seed: int
    has_limited = True  # streams with an end
    # How long a poll that runs already, another one and a claim may take: each of their calls takes 0.3 s at most.
    known_s = 3
    is_told: bool = False  # every commit goes through the one proxy, and no call fails
    settings: Settings = field(init=False)
    dice: random.Random = field(init=False)
    store: MemoryStore = field(init=False)
    registries: list[Registry] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    attempts: set[tuple[bytes, int]] = field(default_factory=set)
    delivered: Counter[bytes] = field(default_factory=Counter)
    # Who was sent a message last, and until when it is theirs.
    leased: dict[bytes, tuple[Consumer, int]] = field(default_factory=dict)
    given_back_count: Counter[bytes] = field(default_factory=Counter)
    rescheduled: Counter[bytes] = field(default_factory=Counter)
    touched_ns: Counter[bytes] = field(
        default_factory=Counter
    )  # when somebody wrote or locked it
    acked_in_flight: set[bytes] = field(default_factory=set)
    acked_early: set[bytes] = field(default_factory=set)
    acked_via: dict[bytes, tuple[int, tuple[int, ...]]] = field(
        default_factory=dict
    )  # id → proxies that were told of its ack
    ids: int = 0
    is_chaos: bool = True
    is_paused: bool = False
    paused: set[TableState] = field(default_factory=set)  # those that know it
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    clock: VirtualClock = field(default_factory=VirtualClock)
    jumped_s: float = -60.0  # when the clock was set last

    def __post_init__(self):
        self.dice = random.Random(self.seed)
        self.settings = Settings.drawn(self.seed, self.dice)
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
        """Live through one history; AssertionError when a promise is broken."""
        settings = self.settings
        self.store = MemoryStore(self.clock, pause=self._pause)
        self.store.create(KEYSPACE, self.definition(settings.comment))
        keyspace = Keyspace(KEYSPACE, tuple(Shard.named(name) for name in settings.shards))
        self.is_chaos = False  # begin in peace, so that every proxy knows the table
        for number in range(settings.proxies):
            registry = self.make_registry(number, keyspace)
            self.registries.append(registry)
            await registry.start()
        for registry in self.registries:
            for state in registry.schedulers:
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
        seconds = asyncio.get_running_loop().time() * len(settings.shards) * settings.proxies
        polls = sum(call == "poll" for call, _ in self.store.calls)
        assert polls < 50 * seconds, "polls without a pause"
        # Newest first, what is never acked goes before all else: past it a limit lets nothing.
        is_blocked = self.settings.newest and self.settings.max_in_flight is not None
        for consumer in list(self.consumers):
            if self.dice.random() < 0.5 or is_blocked:
                consumer.leave()
        for proxy in range(settings.proxies):
            if proxy == 0 or self.dice.random() < 0.5:
                self._join(proxy=proxy, polite=True)
        await self._until_all_acked()
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

    # What happens

    async def _live(self):
        """Insert the messages while consumers come and go and messages are rescheduled."""
        step_s = self.settings.chaos_s / (self.settings.messages * 3)
        while self.ids < self.settings.messages:
            await asyncio.sleep(self.dice.expovariate(1 / step_s))
            self.trouble()
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
        """Let something happen beside the messages."""

    def _calm(self):
        """Let all trouble end."""

    async def _stop(self):
        """Leave whatever is beside the engine."""

    def _join(self, proxy=None, *, polite=False):
        shards = None
        if not polite and self.dice.random() < 0.2:
            shards = frozenset(self.dice.sample(self.settings.shards, 1))
        kind: Callable[..., Consumer] = partial(Consumer, self)
        if self.has_limited and not polite and self.dice.random() < 0.3:
            limit, wait_s = self.dice.choice([1, 2, 5, 50]), self.dice.choice([None, 0, 1, 20])
            kind = partial(LimitedConsumer, self, limit=limit, wait_s=wait_s)
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
        self.registries[consumer.proxy].attach(consumer, KEYSPACE, TABLE)
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
        keys = self.store.insert(KEYSPACE, shard, TABLE, *rows)
        self.touched_ns.update(dict.fromkeys((row.id for row in rows), now_ns))
        effect = Effect(
            EffectKind.NEW,
            tuple(int(key.id) for key in keys),
            tuple(Key(int(key.id), key.priority, key.time_next_ns) for key in keys),
        )
        # A poll may see the rows before the server's OK is here: 7 in 24 runs of two members found that.
        self.spawn(self._tell_later(shard, effect))

    async def _tell_later(self, shard, effect):
        drawn = self._way()
        if delay_s := self.dice.choice([0, 0, 0.001, 0.02, 0.2]):
            await asyncio.sleep(delay_s)
        self.tell(shard, effect, drawn)

    # What worlds of other tables do besides

    def group(self, rows):
        """Let the messages of one transaction depend on one another."""

    def was_acked(self, shard, ids):
        """Somebody has acked messages."""

    def heard(self, event):
        """A scheduler is told an event."""

    def check_waiting(self, rows):
        """See what is unacked yet when all trouble is over."""

    def key_of(self, _number):
        """Return the key of a message."""

    def keys_named(self, *, polite):
        """Return the keys that a stream names that opens; None for all."""
        return

    async def _set_paused(self, is_paused):
        """Somebody pauses the queue, or lets it go on; a proxy whose server fails does not hear it."""
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
            way = await self._before_change(shard, row.id)
            if row.time_acked_ns is not None:
                return
            now_ns = self.store.clock.time_ns()
            row.time_next_ns = now_ns + self.dice.randrange(-SECOND_NS, 5 * SECOND_NS)
            row.priority = self.dice.choice([1, 5, 9])
            for consumer in self.consumers:
                consumer.held.pop(row.id, None)
            self.rescheduled[row.id] += 1
            self.touched_ns[row.id] = now_ns
            self.tell(shard, Effect(EffectKind.RESCHEDULE, (int(row.id),)), way)

    async def _before_change(self, shard, ident):
        """Draw the way of a statement that changes a row, and let its lease be written if it passes a proxy."""
        way, proxy = self._way()
        if way < 0.8:
            ids = (int(ident),) if way < 0.6 else None
            await self.registries[proxy].write_leases(KEYSPACE, shard, TABLE, ids)
        return way, proxy

    async def _heartbeat(self):
        """Somebody needs longer for a message that it holds."""
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
                # Otherwise it may count as over: a look may fail, or not tell it from a reschedule.
                consumer.held[ident] = epoch, until_ns

    def latest_ns(self):
        """Return the latest that the clock has shown."""
        return self.clock.time_ns()

    def _way(self):
        """Draw how the scheduler hears of a statement, and through which proxy."""
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

    def _ack(self, shard, ids):
        if self.settings.ack == "early":
            numbers, now_ns = tuple(map(int, ids)), self.store.clock.time_ns()
            taken = self.registries[0].ack_early(KEYSPACE, shard, TABLE, numbers, now_ns)
            if taken is not None:
                assert taken == len(set(ids) - self.acked_early), "acked twice"
                self.acked_early.update(ids)
                self.acked_via.update(dict.fromkeys(ids, (now_ns, (0,))))
                return
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

    def spawn(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # What is promised

    def _watch(self, state):
        state.handle = partial(self._handle, state, state.handle)

    def _handle(self, state, handle, event, now_ns):
        """Let the scheduler take one step, and look at what it keeps of its receivers."""
        self.heard(event)
        actions = handle(event, now_ns)
        if isinstance(event, Reconfigured):
            (self.paused.add if event.table.properties.paused else self.paused.discard)(state)
        if state in self.paused:
            assert not any(isinstance(action, Claim | Deliver) for action in actions)
        held: Counter[int] = Counter()
        for shard in state.shards:
            held.update(lease.receiver for lease in shard.leases)
        for receiver in state.attached.values():
            assert receiver.held == held[receiver.id]
            is_limited = receiver.limit and receiver.rows_left is None
            assert not is_limited or receiver.held <= receiver.limit
            is_free = not (receiver.has_batch or receiver.is_reserved) and receiver.room > 0
            assert (receiver.id in state.ready) == is_free
        if asyncio.get_running_loop().time() < self.jumped_s + SET_S:
            return actions
        for shard in state.shards:
            if not shard.receivers or shard.claiming.retry_ns > now_ns or state in self.paused:
                continue
            if shard.is_held_back(now_ns) or (shard.in_flight and not shard.in_flight.is_known):
                continue
            at_once = CLAIMS_IN_FLIGHT_MAX if shard.order is None else 1
            if len(shard.claims) < at_once:
                # Nothing due waits while somebody has room, but for what gathers a moment.
                for receiver in map(state.attached.__getitem__, state.ready):
                    is_due = shard.queue.due(now_ns, at_most=1, keys=receiver.keys)
                    if receiver.covers(shard.name) and is_due:
                        assert now_ns < shard.gathered_ns <= now_ns + GATHER_NS
                        assert 2 * receiver.held > receiver.limit > 0
                        assert receiver.rows_left is None
        return actions

    async def check_released(self, consumer):
        """See that a consumer's messages are due again soon after its connection has ended."""
        held = {
            ident: epoch
            for ident, (epoch, _) in consumer.held.items()
            if ident not in {row.id for row in self.claimed(consumer.unsent)}
        }
        release_after_ns = round((self.settings.release_after_s or 0) * SECOND_NS)
        due_ns = self.store.clock.time_ns() + release_after_ns
        if self.settings.failing:
            return
        began_s = asyncio.get_running_loop().time()
        # A shard whose rows are looked at, or are being made due sooner, is asked again.
        await asyncio.sleep(10)
        if self.jumped_s >= began_s:
            return
        for shard in self.settings.shards:
            for ident, row in self.store.table(KEYSPACE, shard, TABLE).items():
                if row.time_acked_ns is None and row.epoch - 1 == held.get(ident):
                    # One that is locked is tried again after a second; its lease may end before.
                    is_soon = (row.time_next_ns or 0) <= due_ns + 2 * SECOND_NS
                    is_over = row.time_next_ns == PARKED_NS
                    assert is_soon or is_over or self.rescheduled[ident], "not released"

    def _check_prefetch(self, consumer, rows, now_ns):
        """By what the database says, however the scheduler counts."""
        limit = self.settings.prefetch if consumer.prefetch is None else consumer.prefetch
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        for ident, (epoch, lease_ns) in list(consumer.held.items()):
            row = next((table[ident] for table in tables if ident in table), None)
            # Without a row it became a dead letter.
            if row is None or not self.is_held(row, epoch, lease_ns, now_ns):
                del consumer.held[ident]
        consumer.held.update((row.id, (row.epoch, row.due_next_ns)) for row in rows)
        is_limited = limit and consumer.rows_max is None
        assert not is_limited or len(consumer.held) <= limit, "more than its prefetch"

    def is_held(self, row, epoch, lease_ns, now_ns):
        """Whether what was sent with this lease is in flight, by what the database says and was acked early."""
        is_acked = row.time_acked_ns is not None or row.id in self.acked_early
        is_unwritten = row.epoch == epoch == 0 and (row.time_next_ns or 0) <= now_ns
        is_written = row.epoch == epoch + 1 and row.time_next_ns == lease_ns
        return not is_acked and lease_ns > now_ns and (is_written or is_unwritten)

    def claimed(self, rows):
        """Return *rows* as the one that dispatches them has claimed them."""
        return rows

    def check_delivery(self, consumer, rows):
        settings, now_ns = self.settings, self.latest_ns()
        is_own = isinstance(rows[0], ClaimedRow)
        is_first = not any(isinstance(row, ClaimedRow) for row in consumer.unsent)
        assert is_first or not is_own, "a second batch before the first was taken"
        rows = self.claimed(rows)
        assert not consumer.has_left
        assert consumer.ended is None
        assert 1 <= len(rows) <= (consumer.rows_max or settings.batch)
        shard = rows[0].shard
        assert all(row.shard == shard for row in rows)
        assert consumer.shards is None or shard in consumer.shards
        self._check_prefetch(consumer, rows, now_ns)
        table = self.store.table(KEYSPACE, shard, TABLE)
        for row in rows:
            assert row.time_next_ns <= now_ns, "sent before it was due"
            assert row.id not in self.acked_early, "sent after its ack was answered"
            self._check_attempt(row)
            self.check_leases(row, now_ns)
            self.delivered[row.id] += 1
            if table[row.id].time_acked_ns is not None:
                acked_ns, told = self.acked_via[row.id]
                assert row.due_next_ns - acked_ns > 0, "claimed after it was acked"
                is_told = is_own and consumer.proxy in told
                assert not is_told, "sent after its ack went through this proxy"
        for registry in self.registries:
            waiting = registry.waiting(KEYSPACE, TABLE)
            assert waiting <= settings.cache * len(settings.shards)

    def _check_attempt(self, row):
        attempt = row.id, row.epoch
        assert attempt not in self.attempts, f"attempt {attempt} delivered twice"
        self.attempts.add(attempt)

    def check_leases(self, row, now_ns):
        """See that what an answer gave that came to its end was held for its whole lease."""
        for consumer in self.consumers:
            if isinstance(consumer, LimitedConsumer) and consumer.is_finished:
                sent = consumer.leases.get(row.id)
                if sent is None or row.epoch - 1 != sent.epoch or self.rescheduled[row.id]:
                    continue
                # A row that was locked for all of its lease does not show it.
                is_shown = row.time_next_ns in (sent.due_next_ns, sent.time_next_ns)
                is_over = now_ns >= sent.due_next_ns
                assert is_shown, "sent again by a row that shows no lease"
                assert is_over, "sent before its lease was over"
        before = self.leased.get(row.id)
        if before is None or self.settings.failing or self.rescheduled[row.id]:
            return
        consumer, until_ns = before
        is_released = consumer.has_left and self.settings.release_after_s is not None
        assert is_released or now_ns >= until_ns, "sent again before its lease was over"

    def due_since(self, shards, before_ns):
        """Return the messages that were as they are since *before_ns*, and due; not those given back."""
        return [
            row
            for name in shards or self.settings.shards
            for row in self.store.table(KEYSPACE, name, TABLE).values()
            if row.time_acked_ns is None
            and row.id not in self.acked_early
            and not (row.is_locked or self.given_back_count[row.id])
            and not (row.epoch == 0 and (row.id, 0) in self.attempts)  # its lease is unwritten
            and max(row.time_next_ns or 0, self.touched_ns[row.id]) <= before_ns
        ]

    def sent(self, consumer, rows):
        """The consumer has the rows: it acks them, most of the time, some time later."""
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
        self._ack(row.shard, [row.id])

    def given_back(self, rows):
        for row in self.claimed(rows):
            self.attempts.discard((row.id, row.epoch))
            self.given_back_count[row.id] += 1

    def _check_claims(self):
        """Every claim that was committed was sent or undone, if the database did not fail."""
        sent = Counter(ident for ident, _ in self.attempts)
        for name in self.settings.shards:
            for row in self.store.table(KEYSPACE, name, TABLE).values():
                # Not sent: given back too late, when it was due again; or acked or rescheduled
                # while it was claimed, so that there was nothing left to undo.
                excused = self.given_back_count[row.id] + (row.id in self.acked_in_flight)
                excused += self.rescheduled[row.id]
                # A send may cross a reschedule: if the ack comes before the lease, nobody has counted it.
                uncounted = self.rescheduled[row.id]
                assert -uncounted <= row.epoch - sent[row.id] <= excused, (
                    f"neither sent nor released: {row}"
                )

    async def _until_all_acked(self):
        # Long enough for a proxy that is alone, takes one row at a time, and must poll for it.
        backlog_s = 30 + 1.5 * self.settings.messages
        if self.settings.prefetch or self.settings.max_in_flight:
            # What is acked past the proxy that dispatches fills a prefetch, or a limit, until its lease ends.
            backlog_s += self.settings.messages * 6 * self.settings.ack_wait_s
        if self.settings.order:
            backlog_s += self.settings.messages * 12 * self.settings.ack_wait_s
        if self.settings.max_rate:
            backlog_s += (
                10 * self.settings.messages * len(self.settings.shards) / self.settings.max_rate
            )
        late_s = backlog_s + (0 if self.is_told else 2 * self.settings.poll_s)
        calm_ns = self.store.clock.time_ns()
        while left := self._unacked():
            self.check_waiting(left)
            late_ns = self.store.clock.time_ns() - round(late_s * SECOND_NS)
            if late_ns > calm_ns:
                forgotten = [row for row in left if (row.time_next_ns or 0) < late_ns]
                assert not forgotten, f"due, and nobody cares: {forgotten}"
            await asyncio.sleep(1)
        assert len(self.delivered) == self.ids

    def _unacked(self):
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        return [row for rows in tables for row in rows.values() if row.time_acked_ns is None]

    async def _all_leave(self):
        """With nobody there, the database is left in peace."""
        for consumer in self.consumers:
            consumer.leave()
        await asyncio.sleep(5)
        before = len(self.store.calls)
        await asyncio.sleep(1.2 * min(self.settings.poll_s, POLL_LAST_S))
        idle = [call for call, _ in self.store.calls[before:] if call in ("poll", "claim")]
        assert not idle, "work without anybody to work for"
