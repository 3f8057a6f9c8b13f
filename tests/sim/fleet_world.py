"""The world of `tests.sim.world` with a fleet in it: each shard elects the one proxy that dispatches it.

In addition, connections between members and servers are cut and slow, servers stop for a while, turn read-only and fail
over, disks are slow, and connections are killed; members lose each other, and cannot be reached for a while. The promises are those of
the world, and these, checked at every delivery:

* only the dispatcher sends, to its own clients and to other members: it holds the shard's lock, as the server sees it, or its connection was killed less
  than 2 s ago; and the server never freed its lock because of silence;
* no receiver holds more than its prefetch of all dispatchers together, once the dispatcher has not changed for the longest lease;
* a dispatcher that is elected again, without another in between, sends nothing again before its lease is over, whether its row shows that or not;
* messages are written only on a connection that holds the lock (`tests.sim.servers.Work`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from streamfrom.engine.fleet.election import LEASE_NS
from streamfrom.engine.fleet.fleet import Fleet
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import Deposed, Elected
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.messaging.table.store_job import Access
from tests.sim.memory_store import MemoryStore
from tests.sim.servers import FakeSession, FakeShard, Network, Work, now_ns
from tests.sim.settings import KEYSPACE
from tests.sim.ways import Ways, fleet_of
from tests.sim.world import World


GOODBYE_S = 1.0  # longer than the slowest connection, so that every server has received it


async def at_once(_call, _shard):
    """Do not even let another task run: everything in one transaction is done in one step."""


class TracedPayload(bytes):
    """A client's copy of a row, with the row that its dispatcher has claimed."""

    row: ClaimedRow
    term: Term

    @classmethod
    def of(cls, row, term):
        traced = cls(row.payload)
        traced.term = term
        traced.row = row._replace(payload=traced)
        return traced.row


class Term(NamedTuple):
    """A time in which only one member has sent messages of a shard: elected again, it continues with its own."""

    number: int
    member: int


@dataclass(eq=False)
class ShardOfMember:
    """One member's connections to the server of one shard."""

    world: FleetWorld
    number: int
    shard: str
    network: Network = field(default_factory=Network)

    async def open(self, _on_lost):
        return await self.world.servers[self.shard].open(self.network)

    @property
    def elector(self):
        return self.world.fleets[self.number].elector(KEYSPACE, self.shard)


@dataclass
class DispatchersStore:
    """A store that claims and releases on the connection that holds the lock, and reads anywhere."""

    world: FleetWorld
    number: int

    def __getattr__(self, name):
        return getattr(self.world.store, name)

    async def run(self, table, shard, job):
        if job.access is Access.READ:
            return await self.world.store.run(table, shard, job)
        return await self._write(shard, partial(self._run, table, shard, job))

    async def _run(self, table, shard, job):
        result = await self.world.core.run(table, shard, job)
        if isinstance(job, Claim):
            term = self.world.term(self.number, shard)
            rows = tuple(TracedPayload.of(row, term) for row in result.rows)
            result = replace(result, rows=rows)
        return result

    async def _write(self, shard, run):
        def transaction():
            if self.world.fails():
                raise ServerRefused(1213, "Deadlock found")
            work = Work(run)
            yield StoreQuery(work)  # type: ignore[arg-type]
            return work.result[0]

        return await self.world.parts[self.number, shard].elector.write(transaction)


@dataclass(eq=False)
class FleetWorld(World):
    """One history of a fleet of two to five."""

    has_limited = False  # they are watched by ids, which rows of another member do not have

    servers: dict[str, FakeShard] = field(default_factory=dict)
    parts: dict[tuple[int, str], ShardOfMember] = field(default_factory=dict)
    fleets: dict[int, Fleet] = field(default_factory=dict)
    ways: Ways = field(init=False)
    core: MemoryStore = field(init=False)
    terms: dict[str, Term] = field(default_factory=dict)
    senders: dict[tuple[bytes, int], set[Term]] = field(default_factory=dict)
    sent_last: dict[bytes, Term] = field(default_factory=dict)
    changed_s: float = 0.0  # when a member last began to serve the streams of a shard

    def __post_init__(self):
        super().__post_init__()
        # Servers and members communicate all the time, so a short life costs half as much.
        poll_s, ack_wait_s = min(self.settings.poll_s, 5), min(self.settings.ack_wait_s, 3)
        self.settings = replace(self.settings, poll_s=poll_s, ack_wait_s=ack_wait_s)
        self.settings = replace(
            self.settings,
            proxies=self.dice.randint(2, 5),
            lease=self._lease(),
            ack="committed",  # a dead member's early acks are lost
            failing=self.settings.failing or 0.01,
        )
        self.servers = {}
        self.ways = Ways(self._delay, self._check_sent)

    def _delay(self):
        return self.dice.choice([0.0002, 0.001, 0.05]) if self.is_chaos else 0.001

    def fails(self):
        return self.is_chaos and self.dice.random() < self.settings.failing

    def make_registry(self, number, keyspace, **options):
        if not self.servers:
            self.servers = {name: FakeShard() for name in self.settings.shards}
            self.core = MemoryStore(
                self.store.clock,
                at_once,
                self.store.definitions,
                self.store.rows,
                refuses=self.bad.refuses,
            )
        for shard in self.settings.shards:
            self.parts[number, shard] = ShardOfMember(self, number, shard)
        openers = {shard: self.parts[number, shard].open for shard in self.settings.shards}
        fleet = self.fleets[number] = fleet_of(number, self.ways, openers)
        registry = super().make_registry(
            number,
            keyspace,
            store=DispatchersStore(self, number),
            may_send=fleet.may_send,
            **options,
        )
        fleet.start(registry)
        return registry

    # Events

    def trouble(self):
        """Cause some trouble for the servers, or for the connections to them."""
        part = self.dice.choice(list(self.parts.values()))
        server = self.servers[part.shard]
        match self.dice.randrange(24):
            case 0:
                part.network.is_whole.clear()
                self.spawn(self._mend(part.network))
            case 1:
                part.network.delay_s = self.dice.choice([0.001, 0.1, 0.9])
            case 2:
                server.runs.clear()
                self.spawn(self._mend(server))
            case 3:
                self._fail_over(part.shard)
            case 4:
                for session in list(server.sessions):
                    if self.dice.random() < 0.5:
                        server.end(session)
            case 5:
                server.write_s = self.dice.choice([0.001, 0.05, 1.5, 4])
            case 6:
                for pair in list(self.ways.pairs):
                    if self.dice.random() < 0.5:
                        pair.cut()
            case 7:
                name = f"m{part.number}"
                self.ways.cut(name)
                self.spawn(self._reach_again(name))
            case _:
                pass

    def _fail_over(self, shard):
        old = self.servers[shard]
        self.servers[shard] = old.replica()
        self.servers[shard].runs.set()
        if self.dice.random() < 0.5:
            old.crash()
            return
        old.is_read_only = True
        # Some members are notified by the server at once; the others notice by its refusals.
        for (_, name), part in self.parts.items():
            if name == shard and self.dice.random() < 0.5:
                part.elector.turned_read_only()

    def _calm(self):
        self.ways.cut_off.clear()
        for server in self.servers.values():
            server.runs.set()
            server.write_s = 0.001
        for part in self.parts.values():
            part.network.is_whole.set()
            part.network.delay_s = 0.001

    async def _reach_again(self, name):
        await asyncio.sleep(self.dice.choice([0.3, 2.5, 20]))
        self.ways.cut_off.discard(name)

    async def _mend(self, broken):
        await asyncio.sleep(self.dice.choice([0.3, 2.5, 5, 20]))
        (broken.is_whole if isinstance(broken, Network) else broken.runs).set()

    async def _stop(self):
        await asyncio.gather(*(fleet.stop() for fleet in self.fleets.values()))
        for fleet in self.fleets.values():
            fleet.close()
        await asyncio.sleep(GOODBYE_S)
        for server in self.servers.values():
            assert not server.locks, "a lock is left behind"

    # Promises

    def heard(self, event):
        super().heard(event)
        if isinstance(event, Elected | Deposed):
            self.changed_s = asyncio.get_running_loop().time()

    def is_settled(self):
        # Messages of a former dispatcher, or of a link that broke, count for a stream until their lease ends.
        longest_s = 1.1 * 4 * self.settings.ack_wait_s
        return asyncio.get_running_loop().time() > self.changed_s + longest_s

    def check_delivery(self, consumer, rows):
        if isinstance(rows[0], ClaimedRow):
            self._check_lock(consumer.proxy, rows[0].shard)
        super().check_delivery(consumer, rows)

    def claimed(self, rows):
        return tuple(row if isinstance(row, ClaimedRow) else row.payload.row for row in rows)

    def term(self, member, shard):
        """Return the current term of a shard in which a member sends."""
        last = self.terms.get(shard, Term(0, -1))
        if last.member != member:
            self.terms[shard] = Term(last.number + 1, member)
        return self.terms[shard]

    def _check_attempt(self, row):
        """Check that a dispatcher sends no attempt twice; its successor may resend attempts that the row does not show."""
        term = row.payload.term
        senders = self.senders.setdefault((row.id, row.epoch), set())
        assert term not in senders, f"attempt {row.id, row.epoch} delivered twice"
        assert row.epoch == 0 or not senders, "sent again, and its row showed it"
        senders.add(term)
        self.attempts.add((row.id, row.epoch))

    def knows_lease(self, row):
        term, (consumer, _) = row.payload.term, self.leased.get(row.id, (None, 0))
        last, self.sent_last[row.id] = self.sent_last.get(row.id), term
        # Messages of another member's client are due sooner when the link to that member breaks.
        return last == term and consumer is not None and consumer.proxy == term.member

    def given_back(self, rows):
        super().given_back(rows)
        for row in self.claimed(rows):
            self.senders.get((row.id, row.epoch), set()).discard(row.payload.term)

    def _check_sent(self, name, payloads):
        if payloads:
            self._check_lock(int(name[1:]), payloads[0].row.shard)

    def _check_lock(self, number, shard):
        session = self.parts[number, shard].elector.session
        assert isinstance(session, FakeSession), "sent without a lock"
        if session not in session.server.locks.values():
            assert not session.fell_silent, "sent after the server had freed its lock"
            assert now_ns() - session.ended_ns <= LEASE_NS, "killed, and goes on for long"
