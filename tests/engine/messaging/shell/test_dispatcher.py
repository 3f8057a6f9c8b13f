"""What a registry asks of who dispatches; the dispatchers of a fleet are in tests/engine/fleet."""

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.dispatch.events import Acked
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.sim.memory_store import DEFAULT_COMMENT, MemoryStore, raw_table
from tests.virtual_loop import VirtualClock


class Told:
    """`Dispatcher`, as far as it is asked, which keeps what it is told."""

    def __init__(self, registry):
        self.calls: list[tuple[object, ...]] = []
        registry.streams = self

    def reconfigure(self, table):
        self.calls.append((table.name, table.properties.prefetch))

    async def definitions_changed(self, keyspace, names):
        self.calls.append((keyspace, names))

    def happened(self, keyspace, table, event):
        self.calls.append((keyspace, table, event))


async def test_who_dispatches_hears_of_commits_and_definitions():
    store = MemoryStore(VirtualClock())
    store.create("ks", raw_table("msg"))
    registry = Registry([Keyspace("ks", (Shard.named("0"),))], store, clock=VirtualClock())
    told = Told(registry)
    await registry.start()
    acked = Effect(EffectKind.ACK, (1,))
    assert registry.dispatcher("ks", "0") is registry.here
    registry.committed("ks", "0", "MSG", [acked])
    store.create("ks", raw_table("msg", DEFAULT_COMMENT + ",vt_prefetch=3"))
    await registry.definitions_changed("ks", ("msg",))
    registry.here.served_elsewhere("ks", "0")
    assert registry.dispatcher("ks", "0") is registry.streams
    registry.committed("ks", "0", "MSG", [acked])
    assert told.calls == [("msg", 3), ("ks", ("msg",)), ("ks", "msg", Acked("0", (b"1",)))]
    await registry.stop(StoreError("stopped"))
