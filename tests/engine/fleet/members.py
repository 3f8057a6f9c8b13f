"""A small fleet in memory: registries on one store, elections on fake servers, ways between them."""

import asyncio
from dataclasses import dataclass, field

from streamfrom.engine.errors import StoreError
from streamfrom.engine.fleet.fleet import Fleet
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from tests.engine.messaging.runner_rig import Receiver
from tests.sim.memory_store import MemoryStore, StoredRow, raw_table
from tests.sim.servers import FakeShard, Network
from tests.sim.ways import Ways, fleet_of
from tests.virtual_loop import VirtualClock


COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=1000,vt_batch_size=10,vt_cache_size=1000,"
    "vt_poller_interval=10000,vt_prefetch=100"
)
STOPPED = StoreError("stopped")


@dataclass
class Client(Receiver):
    """A stream's client, known by the payloads that it has."""

    @property
    def payloads(self):
        return sorted(bytes(row.payload) for row in self.rows)


@dataclass
class Members:
    """Members m0, m1 … of shards; a poll comes never, so what is heard is heard by news."""

    count: int = 2
    shards: tuple[str, ...] = ("0",)
    comment: str = COMMENT
    ways: Ways = field(default_factory=Ways)
    fleets: list[Fleet] = field(default_factory=list)
    registries: list[Registry] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)

    async def __aenter__(self):
        self.store = MemoryStore(VirtualClock())
        self.store.create("ks", raw_table("msg", self.comment))
        self.servers = {shard: FakeShard() for shard in self.shards}
        for number in range(self.count):
            await self.start(number)
        await asyncio.sleep(1)
        return self

    async def __aexit__(self, *failure):
        for fleet, registry in zip(self.fleets, self.registries, strict=True):
            await fleet.stop()
            fleet.close()
            await registry.stop(STOPPED)

    async def start(self, number, *, has_ways=True):
        network = Network()

        def opener(shard):
            return lambda _on_lost: self.servers[shard].open(network)

        openers = {shard: opener(shard) for shard in self.shards}
        fleet = fleet_of(number, self.ways, openers, has_ways=has_ways)
        keyspace = Keyspace("ks", tuple(Shard.named(name) for name in self.shards))
        registry = Registry(
            [keyspace], self.store, clock=VirtualClock(), may_send=fleet.may_send
        )
        await registry.start()
        self.fleets.append(fleet)
        self.registries.append(registry)
        self.networks.append(network)
        fleet.start(registry)
        await asyncio.sleep(0.1)

    def attach(self, number, client):
        self.registries[number].streams.attach(client, "ks", "msg")
        return client

    def leave(self, number, client, unsent=()):
        self.registries[number].streams.detach(client, unsent)
        self.registries[number].streams.forget(client, has_left=True)

    def insert(self, *ids, via=None, shard=None):
        """Commit messages through a member, or past all of them."""
        shard = shard or self.shards[0]
        rows = (StoredRow(b"%d" % one, payload=b"%d" % one) for one in ids)
        self.store.insert("ks", shard, "msg", *rows)
        if via is not None:
            effect = Effect(EffectKind.NEW, ids, tuple(Key(one, 50, 0) for one in ids))
            self.registries[via].committed("ks", shard, "msg", [effect])

    def ack(self, *ids, via, shard=None):
        shard = shard or self.shards[0]
        self.store.ack("ks", shard, "msg", [b"%d" % one for one in ids])
        self.registries[via].committed("ks", shard, "msg", [Effect(EffectKind.ACK, ids)])

    def row(self, ident, shard=None):
        return self.store.table("ks", shard or self.shards[0], "msg")[b"%d" % ident]
