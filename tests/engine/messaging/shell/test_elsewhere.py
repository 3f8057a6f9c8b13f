"""What a registry tells the streams elsewhere; those themselves are in tests/engine/fleet."""

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import Registry
from streamfrom.engine.messaging.table.message import PeerRow
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from tests.engine.messaging.runner_rig import Receiver
from tests.sim.memory_store import DEFAULT_COMMENT, MemoryStore, raw_table
from tests.virtual_loop import VirtualClock, running


class Told:
    """`Elsewhere` that keeps what it is told."""

    def __init__(self):
        self.calls: list[tuple[object, ...]] = []

    def admit(self, receiver):
        self.calls.append(("admit", receiver))
        return receiver

    def opened(self, receiver, keyspace, table, prefetch):
        self.calls.append(("opened", receiver, keyspace, table, prefetch))

    def prefetch_altered(self, keyspace, table, prefetch):
        self.calls.append(("prefetch_altered", keyspace, table, prefetch))

    def wait_over(self, receiver):
        self.calls.append(("wait_over", receiver))

    def progress_of(self, receiver):
        return self

    def sent(self, rows):
        """Rows are sent from here."""

    def progressed(self, row):
        """So many acks are no matter of these tests."""

    def taken(self, receiver):
        self.calls.append(("taken", receiver))

    def closed(self, receiver, unsent):
        self.calls.append(("closed", receiver, tuple(unsent)))
        return unsent

    def forget(self, receiver, *, has_left):
        self.calls.append(("forget", receiver, has_left))

    async def definitions_changed(self, keyspace, names):
        self.calls.append(("definitions_changed", keyspace, names))

    async def write_leases(self, keyspace, shard, table, ids):
        self.calls.append(("write_leases", keyspace, shard, table, ids))

    async def ack_early(self, keyspace, shard, table, ids, acked_ns):
        self.calls.append(("ack_early", keyspace, shard, table, ids, acked_ns))
        return len(ids)

    def happened(self, keyspace, table, event):
        self.calls.append(("happened", keyspace, table, event))


@running
async def test_a_receiver_is_told_of_from_its_start_to_its_end():
    store = MemoryStore(VirtualClock())
    store.create("ks", raw_table("msg", "vitess_message,vt_ack_wait=30,vt_purge_after=1000,"
        "vt_batch_size=10,vt_cache_size=1000,vt_poller_interval=10000"))  # fmt: skip
    registry = Registry([Keyspace("ks", (Shard.named("0"),))], store, clock=VirtualClock())
    told = registry.elsewhere = Told()
    await registry.start()
    receiver = Receiver()
    registry.attach(receiver, "ks", "MSG")
    registry.ready(receiver)
    registry.wait_over(receiver)
    unsent = (PeerRow(b"x", 1),)
    registry.detach(receiver, unsent)
    registry.forget(receiver, has_left=True)
    await registry.definitions_changed("ks", ("msg",))
    assert told.calls == [
        ("admit", receiver),
        ("opened", receiver, "ks", "msg", 0),
        ("taken", receiver),
        ("wait_over", receiver),
        ("closed", receiver, unsent),
        ("forget", receiver, True),
        ("definitions_changed", "ks", ("msg",)),
    ]
    await registry.stop(StoreError("stopped"))


@running
async def test_a_prefetch_that_is_altered_is_told():
    store = MemoryStore(VirtualClock())
    store.create("ks", raw_table("msg"))
    registry = Registry([Keyspace("ks", (Shard.named("0"),))], store, clock=VirtualClock())
    told = registry.elsewhere = Told()
    await registry.start()
    store.create("ks", raw_table("msg", DEFAULT_COMMENT + ",vt_prefetch=3"))
    await registry.reload()
    assert told.calls == [("prefetch_altered", "ks", "msg", 3)]
    await registry.stop(StoreError("stopped"))


@running
async def test_leases_are_written_by_whoever_dispatches():
    store = MemoryStore(VirtualClock())
    store.create("ks", raw_table("msg"))
    registry = Registry([Keyspace("ks", (Shard.named("0"),))], store, clock=VirtualClock())
    told = registry.elsewhere = Told()
    await registry.start()
    await registry.write_leases("ks", "0", "MSG", (b"1",))
    await registry.write_leases("ks", "0", "none", None)
    assert told.calls == []
    registry.served_elsewhere("ks", "0")
    await registry.write_leases("ks", "0", "MSG", (b"1", b"'a'"))
    await registry.write_leases("ks", "0", "msg", None)
    assert told.calls == [
        ("write_leases", "ks", "0", "msg", (b"1", b"'a'")),
        ("write_leases", "ks", "0", "msg", None),
    ]
    await registry.stop(StoreError("stopped"))


@running
async def test_nobody_else_is_asked_to_take_acks_that_are_to_be_committed():
    store = MemoryStore(VirtualClock())
    store.create("ks", raw_table("msg"))
    registry = Registry([Keyspace("ks", (Shard.named("0"),))], store, clock=VirtualClock())
    told = registry.elsewhere = Told()
    await registry.start()
    registry.served_elsewhere("ks", "0")
    assert await registry.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5) is None
    assert not registry.awaits_acks("ks", "0", "msg")
    assert told.calls == []
    await registry.stop(StoreError("stopped"))
