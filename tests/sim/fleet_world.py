"""The world of `tests.sim.world` with a fleet in it: each shard elects the one proxy that dispatches it.

Beside what happens there, ways between members and servers are cut and slow, servers stop for a while, turn read-only and fail
over, disks are slow, connections are killed, and the wall clock of a member is an hour off. The promises are those of
the world, and these, checked at every delivery:

* only the dispatcher delivers: it holds the shard's lock, as the server sees it, or its connection was killed less
  than 2 s ago, and never did the server free its lock because it was silent;
* nothing is written to messages but on a connection that holds the lock (`tests.sim.servers.Work`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.election import LEASE_NS
from streamfrom.engine.fleet.elector import Elector
from streamfrom.engine.fleet.lock_connection import ServerRefused, dispatcher_lock
from streamfrom.engine.messaging.conversation import StoreQuery
from streamfrom.engine.messaging.memory_store import MemoryStore
from tests.sim.servers import FakeSession, FakeShard, Network, Work, now_ns
from tests.sim.world import KEYSPACE, World


if TYPE_CHECKING:
    from streamfrom.engine.messaging.registry import Registry


GOODBYE_S = 1.0  # longer than the slowest way, so that every server has heard it


async def at_once(_call, _shard):
    """Do not even let another task run: what one transaction does is done in one step."""


@dataclass(eq=False)
class ShardOfMember:
    """One member's part in the election of one shard, and what that means to its tables."""

    world: FleetWorld
    number: int
    shard: str
    registry: Registry = field(init=False)
    network: Network = field(default_factory=Network)
    elector: Elector = field(init=False)

    def __post_init__(self):
        name = f"m{self.number}"
        own = Member(name, "", f"{name}:1", f"PEM {name}", self.number, "1", "c")
        self.elector = Elector(
            f"{KEYSPACE}/{self.shard}", self.shard, own, self, self._open, now_ns
        )

    async def _open(self, _on_lost):
        return await self.world.servers[self.shard].open(self.network)

    def dispatch(self, _term):
        self.registry.elected(KEYSPACE, self.shard)

    def withhold(self, reason):
        self.registry.deposed(KEYSPACE, self.shard, reason)

    async def drain(self):
        await self.registry.drain(KEYSPACE, self.shard)

    def changed(self, differences):
        """Follow the members: there are no ways between them here yet."""


@dataclass
class DispatchersStore:
    """A store that claims and releases on the connection that holds the lock, and reads anywhere."""

    world: FleetWorld
    number: int

    async def discover(self, keyspace, shard):
        return await self.world.store.discover(keyspace, shard)

    async def poll(self, table, shard, request):
        return await self.world.store.poll(table, shard, request)

    async def look(self, table, shard, ids):
        return await self.world.store.look(table, shard, ids)

    async def purge(self, table, shard, cutoff_ns):
        return await self.world.store.purge(table, shard, cutoff_ns)

    async def claim(self, table, shard, request):
        return await self._write(shard, lambda: self.world.core.claim(table, shard, request))

    async def release(self, table, shard, rows):
        await self._write(shard, lambda: self.world.core.release(table, shard, rows))

    async def shorten(self, table, shard, leases, due_ns):
        core = self.world.core
        return await self._write(shard, lambda: core.shorten(table, shard, leases, due_ns))

    async def _write(self, shard, run):
        def transaction():
            if self.world.fails():
                raise ServerRefused(1213, "Deadlock found")
            work = Work(run)
            yield StoreQuery(b"", about=work)
            return work.result[0]

        return await self.world.parts[self.number, shard].elector.write(transaction)


@dataclass(eq=False)
class FleetWorld(World):
    """One history of a fleet of two to five."""

    is_fleet = True
    servers: dict[str, FakeShard] = field(default_factory=dict)
    parts: dict[tuple[int, str], ShardOfMember] = field(default_factory=dict)
    core: MemoryStore = field(init=False)

    def __post_init__(self):
        super().__post_init__()
        self.settings = replace(
            self.settings,
            proxies=self.dice.randint(2, 5),
            failing=self.settings.failing or 0.01,
        )
        self.servers = {}

    def fails(self):
        return self.is_chaos and self.dice.random() < self.settings.failing

    def make_registry(self, number, keyspace, **options):
        if not self.servers:
            self.servers = {name: FakeShard() for name in self.settings.shards}
            self.core = MemoryStore(
                self.store.clock, at_once, self.store.definitions, self.store.rows
            )
        for shard in self.settings.shards:
            self.parts[number, shard] = ShardOfMember(self, number, shard)
        registry = super().make_registry(
            number,
            keyspace,
            store=DispatchersStore(self, number),
            may_send=lambda _, shard: self.parts[number, shard].elector.may_send(),
            **options,
        )
        for shard in self.settings.shards:
            part = self.parts[number, shard]
            part.registry = registry
            registry.deposed(KEYSPACE, shard, "nobody has been elected yet")
            part.elector.start()
        return registry

    # What happens

    def _trouble(self):
        """Let something happen to the servers, or to the ways to them."""
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
        # Some members hear it from the server at once; the others by what it refuses.
        for (_, name), part in self.parts.items():
            if name == shard and self.dice.random() < 0.5:
                part.elector.turned_read_only()

    def _calm(self):
        for server in self.servers.values():
            server.runs.set()
            server.write_s = 0.001
        for part in self.parts.values():
            part.network.is_whole.set()
            part.network.delay_s = 0.001

    async def _mend(self, broken):
        await asyncio.sleep(self.dice.choice([0.3, 2.5, 5, 20]))
        (broken.is_whole if isinstance(broken, Network) else broken.runs).set()

    async def _stop(self):
        await asyncio.gather(*(part.elector.stop() for part in self.parts.values()))
        await asyncio.sleep(GOODBYE_S)
        for server in self.servers.values():
            assert not server.locks, "a lock is left behind"

    # What is promised

    def check_delivery(self, consumer, rows):
        part = self.parts[consumer.proxy, rows[0].shard]
        session = part.elector.session
        assert isinstance(session, FakeSession), "delivered without a lock"
        if session.server.locks.get(dispatcher_lock(part.shard)) is not session:
            assert not session.fell_silent, "delivered after the server had freed its lock"
            assert now_ns() - session.ended_ns <= LEASE_NS, "killed, and goes on for long"
        super().check_delivery(consumer, rows)
