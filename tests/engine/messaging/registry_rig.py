"""A registry on a store in memory."""

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from tests.sim.memory_store import MemoryStore, StoredRow, raw_table
from tests.virtual_loop import VirtualClock


KS = Keyspace("ks", (Shard.named("-80"), Shard.named("80-")))
OTHER = Keyspace("other", (Shard.named("0"),))
STOPPED = StoreError("stopped")


class RegistryRig:
    def __init__(self, *names, keyspaces=(KS,), **store):
        self.store = MemoryStore(VirtualClock(), **store)
        self.store.create("ks", *(raw_table(name) for name in names))
        self.registry = Registry(keyspaces, self.store, clock=VirtualClock())

    async def __aenter__(self):
        await self.registry.start()
        return self

    async def __aexit__(self, *failure):
        await self.registry.stop(STOPPED)

    def commit(self, effect, shard="-80", table="t1"):
        self.registry.committed("ks", shard, table, [effect])


def insert(rig, *ids, shard="-80", table="t1", time_next_ns=0):
    rows = (StoredRow(b"%d" % one, time_next_ns=time_next_ns) for one in ids)
    return rig.store.insert("ks", shard, table, *rows)


def new(*ids, time_next_ns=0):
    return Effect(EffectKind.NEW, ids, tuple(Key(one, 50, time_next_ns) for one in ids))
