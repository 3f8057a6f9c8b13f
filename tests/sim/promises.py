"""The promises that the histories of `tests.sim.world` check, whatever happens in them.

They are checked during the history or at its end:

* nothing is lost: when the trouble is over, every message is delivered and acked;
* in a world in which the only proxy sees every commit (`is_told`), nothing waits for a poll's interval;
* no attempt (id, epoch) is delivered twice;
* no message is sent that was acked before it was claimed, or acked through the same proxy;
* no message is sent whose ack was confirmed early, and every such ack is written;
* nothing is sent before it is due, and nothing is claimed without being sent or released;
* no receiver holds more than its prefetch, according to the database, and no due message waits
  while a receiver has room;
* the messages of a consumer whose connection ended are due again vt_release_after later;
* a reply with an end has no more rows than its limit, waits as long as its statement specifies, and ends soon when nothing
  is due; then only leases hold its messages;
* a receiver gets one batch at a time, of at most vt_batch_size or its own limit, from shards it covers,
  in the order of priority and time;
* the database has little load: no storm of polls, and no queries at all without receivers;
* the cache never holds more than vt_cache_size keys of a shard;
* a row that the database refuses to write holds up no other, and once it is good again it is delivered too (`tests.sim.bad_rows`).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import Deliver, JobDone, Reconfigured, Tick
from streamfrom.engine.messaging.dispatch.sending import CLAIMS_IN_FLIGHT_MAX
from streamfrom.engine.messaging.dispatch.table_state import TableState
from streamfrom.engine.messaging.leases.lease_rows import Release, Shorten, WriteLeases
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.streams.attached_receiver import GATHER_NS
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimedRow
from tests.sim.bad_rows import HEALED_S, BadRows
from tests.sim.consumer import SECOND_NS, Consumer, LimitedConsumer
from tests.sim.memory_store import MemoryStore
from tests.sim.phases import check
from tests.sim.settings import KEYSPACE, TABLE, Settings
from tests.virtual_loop import VirtualClock


SET_S = 6  # how long after the clock was set its effects may still show
POLL_LAST_S = 20  # of the settings that are drawn
AT_ONCE, PAUSES_S = 6, 0.7  # a write does not fail this often within this time


@dataclass(eq=False)
class Promises:
    """The state of one history, and its promises; AssertionError when one is broken."""

    seed: int
    is_told: bool = False  # every commit goes through the one proxy, and no call fails
    # The time of a running poll, another one and a claim: each of their calls takes at most 0.3 s.
    known_s = 3
    settings: Settings = field(init=False)
    bad: BadRows = field(init=False)
    store: MemoryStore = field(init=False)
    registries: list[Registry] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    clock: VirtualClock = field(default_factory=VirtualClock)
    jumped_s: float = -60.0  # when the clock was last set
    ids: int = 0  # how many messages were made
    attempts: set[tuple[bytes, int]] = field(default_factory=set)
    delivered: Counter[bytes] = field(default_factory=Counter)
    # The last receiver of each message, and when its lease ends.
    leased: dict[bytes, tuple[Consumer, int]] = field(default_factory=dict)
    given_back_count: Counter[bytes] = field(default_factory=Counter)
    rescheduled: Counter[bytes] = field(default_factory=Counter)
    # When a message was last written or locked by others.
    touched_ns: Counter[bytes] = field(default_factory=Counter)
    acked_in_flight: set[bytes] = field(default_factory=set)
    acked_early: set[bytes] = field(default_factory=set)
    # When a message was acked, and the proxies that were notified.
    acked_via: dict[bytes, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    paused: set[TableState] = field(default_factory=set)  # those that know of it
    # The times of failures of jobs, by the written rows.
    failures: defaultdict[tuple[object, ...], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def _watch(self, state):
        state.handle = partial(self._handle, state, state.handle)

    def _handle(self, state, handle, event, now_ns):
        """Run one step of the scheduler, and check its memory of its receivers."""
        self.heard(event)
        unsure = self._unsure(state) if isinstance(event, Tick) else ()
        before = {one.id: (one.held, one.limit) for one in state.receivers.attached.values()}
        actions = handle(event, now_ns)
        assert not unsure or unsure <= self._unsure(state), "ended before its row was read"
        if isinstance(event, JobDone):
            self._check_pauses(state, event)
        if isinstance(event, Reconfigured):
            (self.paused.add if event.table.properties.paused else self.paused.discard)(state)
        if state in self.paused:
            assert not any(isinstance(action, Deliver) for action in actions)
            assert not any(isinstance(action, Claim) for action in actions)
        held: Counter[int] = Counter()
        for shard in state.shards:
            held.update(lease.receiver for lease in shard.leases)
        for receiver in state.receivers.attached.values():
            assert receiver.held == held[receiver.id]
            is_limited = receiver.limit and receiver.rows_left is None
            # A window that becomes smaller takes nothing back, nor does one that begins
            # smaller than the number sent by a former dispatcher.
            held_before, limit_before = before.get(receiver.id, (receiver.held, 0))
            most = max(receiver.limit, held_before, limit_before)
            most = receiver.limit if receiver.window is None else most
            assert not is_limited or receiver.held <= most
            is_free = not (receiver.has_batch or receiver.is_reserved) and receiver.room > 0
            assert (receiver.id in state.receivers.ready) == is_free
        for shard in state.shards:
            check(shard)
        if asyncio.get_running_loop().time() < self.jumped_s + SET_S:
            return actions
        for shard in state.shards:
            # Of two simultaneous events, the one that ends a pause may come second.
            if not shard.receivers or shard.claiming.retry_ns >= now_ns or state in self.paused:
                continue
            if shard.gates.is_closed(now_ns) or (
                (limit := shard.gates.in_flight) and not limit.is_known
            ):
                continue
            may_claim = not shard.queue.in_flight
            if shard.order is None:
                may_claim = len(shard.claims) < CLAIMS_IN_FLIGHT_MAX
            if may_claim:
                # No due message waits while a receiver has room, except for the moment of gathering.
                for receiver in map(
                    state.receivers.attached.__getitem__, state.receivers.ready
                ):
                    is_due = shard.queue.due(now_ns, at_most=1, keys=receiver.keys)
                    if receiver.covers(shard.name) and is_due:
                        assert now_ns < shard.gathered_ns <= now_ns + GATHER_NS
                        # A stalled receiver waits until another has let its room gather.
                        assert 2 * receiver.held > receiver.most or receiver.has_stalled
                        assert receiver.rows_left is None
        return actions

    def _unsure(self, state):
        """Return the leases whose rows a commit may have changed."""
        shards = [(each, each.leases) for each in state.shards]
        return {
            (s.name, one.id) for s, held in shards for one in held if held.is_suspect(one.id)
        }

    def _check_pauses(self, state, done):
        """Check that rows left unchanged by a write, for example locked ones, are tried again after a pause."""
        idents = written_by(done.job)
        if idents and (done.failure or idents.issubset(getattr(done.result, "locked", ()))):
            now_s = asyncio.get_running_loop().time()
            failures = self.failures[id(state), done.shard, type(done.job), frozenset(idents)]
            failures.append(now_s)
            assert len(failures) < AT_ONCE or now_s - failures[-AT_ONCE] > PAUSES_S, done

    async def check_released(self, consumer):
        """Check that a consumer's messages are due again soon after its connection has ended."""
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
        # A shard whose rows are being read, or made due sooner, is tried again.
        await asyncio.sleep(10)
        if self.jumped_s >= began_s:
            return
        for shard in self.settings.shards:
            for ident, row in self.store.table(KEYSPACE, shard, TABLE).items():
                is_bad = ident in self.bad.ever
                if (
                    row.time_acked_ns is None
                    and row.epoch - 1 == held.get(ident)
                    and not is_bad
                ):
                    # A locked row is tried again after a second; its lease may end before.
                    is_soon = (row.time_next_ns or 0) <= due_ns + 2 * SECOND_NS
                    is_over = row.time_next_ns == PARKED_NS
                    assert is_soon or is_over or self.rescheduled[ident], "not released"

    def check_prefetch(self, consumer, rows, now_ns):
        """Check the prefetch by the rows in the database, however the scheduler counts."""
        limit = self.settings.prefetch if consumer.prefetch is None else consumer.prefetch
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        for ident, (epoch, lease_ns) in list(consumer.held.items()):
            row = next((table[ident] for table in tables if ident in table), None)
            # Without a row it became a dead letter.
            if row is None or not self.is_held(row, epoch, lease_ns, now_ns):
                del consumer.held[ident]
        consumer.held.update((row.id, (row.epoch, row.due_next_ns)) for row in rows)
        is_limited = limit > 0 and consumer.rows_max is None and self.is_settled()
        assert not is_limited or len(consumer.held) <= limit, "more than its prefetch"

    def is_settled(self):
        """Whether each stream is served by the sender of its messages."""
        return True

    def is_held(self, row, epoch, lease_ns, now_ns):
        """Whether a message sent with this lease is in flight, according to the database and the early acks."""
        is_acked = row.time_acked_ns is not None or row.id in self.acked_early
        is_unwritten = row.epoch == epoch == 0 and (row.time_next_ns or 0) <= now_ns
        is_written = row.epoch == epoch + 1 and row.time_next_ns == lease_ns
        return not is_acked and lease_ns > now_ns and (is_written or is_unwritten)

    def claimed(self, rows):
        """Return *rows* as their dispatcher has claimed them."""
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
        self.check_prefetch(consumer, rows, now_ns)
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
            for state in registry.here.schedulers:
                assert sum(len(one.queue) for one in state.shards) <= settings.cache * len(
                    settings.shards
                )

    def _check_attempt(self, row):
        attempt = row.id, row.epoch
        assert attempt not in self.attempts, f"attempt {attempt} delivered twice"
        self.attempts.add(attempt)

    def check_leases(self, row, now_ns):
        """Check that the messages of a finished reply were held for their whole lease."""
        for consumer in self.consumers:
            if isinstance(consumer, LimitedConsumer) and consumer.is_finished:
                sent = consumer.leases.get(row.id)
                if sent is None or row.epoch - 1 != sent.epoch or self.rescheduled[row.id]:
                    continue
                # A row that was locked for all of its lease does not show it.
                is_unshown = row.time_next_ns == sent.time_next_ns
                is_shown = row.time_next_ns >= sent.due_next_ns or is_unshown
                is_over = now_ns >= sent.due_next_ns
                assert is_shown, "sent again by a row that shows no lease"
                assert is_over, "sent before its lease was over"
        knows_lease, before = self.knows_lease(row), self.leased.get(row.id)
        if before is None or self.rescheduled[row.id] or not knows_lease:
            return
        consumer, until_ns = before
        is_released = consumer.has_left and self.settings.release_after_s is not None
        assert is_released or now_ns >= until_ns, "sent again before its lease was over"

    def knows_lease(self, _row):
        """Return whether the dispatcher knows the end of the earlier lease of a row that it sends."""
        return not self.settings.failing

    def due_since(self, shards, before_ns):
        """Return the messages that have been unchanged and due since *before_ns*, without those given back."""
        return [
            row
            for name in shards or self.settings.shards
            for row in self.store.table(KEYSPACE, name, TABLE).values()
            if row.time_acked_ns is None
            and row.id not in self.acked_early
            and row.id not in self.bad.ever
            and not (row.is_locked or self.given_back_count[row.id])
            and not (row.epoch == 0 and (row.id, 0) in self.attempts)  # its lease is unwritten
            and max(row.time_next_ns or 0, self.touched_ns[row.id]) <= before_ns
        ]

    def given_back(self, rows):
        for row in self.claimed(rows):
            self.attempts.discard((row.id, row.epoch))
            self.given_back_count[row.id] += 1

    def _check_claims(self):
        """Check that every committed claim was sent or undone, if the database did not fail."""
        sent = Counter(ident for ident, _ in self.attempts)
        for name in self.settings.shards:
            for row in self.store.table(KEYSPACE, name, TABLE).values():
                if row.id in self.bad.ever:
                    continue
                # Not sent: given back too late, when it was due again; or acked or rescheduled
                # while it was claimed, so that there was nothing left to undo.
                excused = self.given_back_count[row.id] + (row.id in self.acked_in_flight)
                excused += self.rescheduled[row.id]
                # A send may cross a reschedule: if the ack comes before the lease, it was never counted.
                uncounted = self.rescheduled[row.id]
                assert -uncounted <= row.epoch - sent[row.id] <= excused, (
                    f"neither sent nor released: {row}"
                )

    async def until_all_acked(self):
        """Wait until every message is acked, first those whose rows are good."""
        if self.bad.kinds:
            await self._until_acked()
            await self.heal()
            await self._until_acked(HEALED_S)
        else:
            # A row that is good again may be tried late.
            await self._until_acked(HEALED_S if self.bad.ever else 0)
        assert len(self.delivered) == self.ids - self.unsent()

    async def _until_acked(self, healed_s=0):
        # Long enough for a single proxy that takes one row at a time and must poll for it.
        backlog_s = 30 + 1.5 * self.settings.messages
        if self.settings.prefetch or self.settings.max_in_flight:
            # Messages acked past their dispatcher fill a prefetch, or a limit, until their lease ends.
            backlog_s += self.settings.messages * 6 * self.settings.ack_wait_s
        if self.settings.order:
            backlog_s += self.settings.messages * 12 * self.settings.ack_wait_s
        if self.settings.max_rate:
            backlog_s += (
                10 * self.settings.messages * len(self.settings.shards) / self.settings.max_rate
            )
        late_s = backlog_s + healed_s + (0 if self.is_told else 2 * self.settings.found_s)
        calm_ns = self.store.clock.time_ns()
        while left := self._unacked():
            self.check_waiting(left)
            late_ns = self.store.clock.time_ns() - round(late_s * SECOND_NS)
            if late_ns > calm_ns:
                forgotten = [row for row in left if (row.time_next_ns or 0) < late_ns]
                assert not forgotten, f"due, and nobody cares: {forgotten}"
            await asyncio.sleep(1)

    def _unacked(self):
        """Return the messages yet to be acked, except those with rows that are bad, or were and are tried late."""
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        left = [row for rows in tables for row in rows.values() if row.time_acked_ns is None]
        return [row for row in left if not self.bad.kinds or row.id not in self.bad.ever]

    async def _all_leave(self):
        """Check that without receivers the database gets no queries."""
        for consumer in self.consumers:
            consumer.leave()
        await asyncio.sleep(5)
        before = len(self.store.calls)
        await asyncio.sleep(1.2 * min(self.settings.poll_s, POLL_LAST_S))
        idle = [call for call, _ in self.store.calls[before:] if call in ("poll", "claim")]
        assert not idle, "work without anybody to work for"

    async def heal(self):
        """Make all rows good again."""

    # Further checks for worlds with other tables

    def unsent(self):
        """Return how many messages may stay undelivered."""
        return 0

    def heard(self, event):
        """Called when a scheduler receives an event."""

    def check_waiting(self, rows):
        """Check the unacked messages when all trouble is over."""

    def latest_ns(self):
        """Return the latest time that the clock has shown."""
        return self.clock.time_ns()


def written_by(job):
    """Return the ids of the rows that a job writes."""
    match job:
        case WriteLeases() | Shorten():
            return {lease.id for lease in job.leases}
        case WriteAcks():
            return {ident for ident, _ in job.acks}
        case Release():
            return {row.id for row in job.rows}
        case _:
            return set()
