import asyncio

import pytest

from streamfrom.engine.errors import StoreError
from streamfrom.engine.messaging.shell.registry import HIDDEN_S
from streamfrom.engine.messaging.table.discovery import HiddenDefinitions
from streamfrom.engine.messaging.table.message_table import load
from tests.engine.messaging.registry_rig import STOPPED, RegistryRig
from tests.fixtures.logged import logged
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


class Definitions:
    """Counts which definitions are asked for and loaded."""

    def __init__(self, rig, monkeypatch):
        self.asked: list[frozenset[str] | None] = []
        self.hidden: list[frozenset[str] | None] = []
        self.loaded: list[str] = []
        discover, read_hidden = rig.store.discover, rig.store.read_hidden

        async def asked(keyspace, shard, names=None, placed=(), running=()):
            self.asked.append(names)
            return await discover(keyspace, shard, names, placed, running)

        async def hidden(keyspace, shard, names=None):
            self.hidden.append(names)
            return await read_hidden(keyspace, shard, names)

        def loaded(keyspace, raw, shards):
            self.loaded.append(raw.name)
            return load(keyspace, raw, shards)

        monkeypatch.setattr(rig.store, "discover", asked)
        monkeypatch.setattr(rig.store, "read_hidden", hidden)
        monkeypatch.setattr("streamfrom.engine.messaging.shell.registry.load", loaded)


async def test_a_definition_that_a_statement_names_is_read_alone_beside_many(monkeypatch):
    async with RegistryRig(*(f"t{number}" for number in range(50))) as rig:
        before = dict(rig.registry.tables("ks"))
        counted = Definitions(rig, monkeypatch)
        rig.store.create("ks", raw_table("t5", DEFAULT_COMMENT + ",vt_prefetch=3"))
        await rig.registry.definitions_changed("ks", ("t5", "new"))
        assert counted.asked == [frozenset({"t5", "new"})]
        assert counted.hidden == [frozenset({"t5", "new"})]
        assert counted.loaded == ["t5"]
        after = rig.registry.tables("ks")
        assert after["t5"].properties.prefetch == 3
        assert all(after[name] is table for name, table in before.items() if name != "t5")
        rig.store.drop("ks", "t5")
        await rig.registry.definitions_changed("ks", ("T5",))
        assert rig.registry.table("ks", "t5") is None
        assert len(rig.registry.here.runners) == 49


@pytest.mark.parametrize("named", [(), ("other",)])
async def test_every_statement_finds_tables_that_came_or_went_past_the_proxy(
    monkeypatch, named
):
    async with RegistryRig(*(f"t{number}" for number in range(50))) as rig:
        counted = Definitions(rig, monkeypatch)
        rig.store.create("ks", raw_table("new"))
        rig.store.drop("ks", "t5")
        await rig.registry.definitions_changed("ks", named)
        assert counted.asked == [frozenset({"new", "t5", *named})]
        assert counted.loaded == ["new"]
        assert rig.registry.table("ks", "new") is not None
        assert rig.registry.table("ks", "t5") is None
        assert len(rig.registry.here.runners) == 50


async def test_what_a_lock_hides_is_not_dropped_and_is_read_again(monkeypatch):
    async with RegistryRig("t1") as rig:
        parts = {("view", "seen", ""), ("trigger", "outbox", "INSERT")}
        whole = HiddenDefinitions("db", frozenset(parts))
        partial = HiddenDefinitions("db", frozenset({("function", "f", "")}), is_partial=True)
        found = [whole, partial, whole]

        async def read_hidden(keyspace, shard, names=None):
            return found.pop(0)

        monkeypatch.setattr(rig.store, "read_hidden", read_hidden)
        await rig.registry.definitions_changed("ks", ())
        await rig.registry.definitions_changed("ks", ())
        writes = rig.registry.hidden_writes("ks")
        assert writes.by_table("outbox")
        assert writes.by_table("seen")
        await asyncio.sleep(HIDDEN_S + 1)
        assert not found


@pytest.mark.parametrize("names", [None, (), ("t5",)])
async def test_a_reading_is_one_for_all_who_ask_for_it_before_it_begins(monkeypatch, names):
    async with RegistryRig(*(f"t{number}" for number in range(50))) as rig:
        counted = Definitions(rig, monkeypatch)
        await asyncio.gather(*(rig.registry.reload("ks", names) for _ in range(20)))
        assert len(counted.asked) == 1
        assert counted.loaded == list(names or ())
        last = asyncio.create_task(rig.registry.reload("ks", names))
        await asyncio.sleep(0)
    await last  # a stop ends the reading, and not who waits for it


async def test_a_shard_that_does_not_answer_leaves_the_definitions_to_another(caplog):
    async def pause(call, shard):
        if call == "discover" and shard == "-80":
            raise StoreError("gone")

    async with RegistryRig("t1", pause=pause) as rig:
        assert set(rig.registry.tables("ks")) == {"t1"}
    assert not caplog.records


async def test_a_shard_that_gives_no_sign_of_life_is_asked_last(monkeypatch):
    async with RegistryRig("t1") as rig:
        monkeypatch.setattr(rig.store, "answering_first", lambda _, shards: shards[::-1])
        rig.store.calls.clear()
        await rig.registry.reload()
    assert {shard for call, shard in rig.store.calls if call == "discover"} == {"80-"}


async def test_a_queue_that_not_all_shards_have_is_logged_once_and_not_while_it_is_made(
    monkeypatch, caplog
):
    async with RegistryRig("t1") as rig:
        found = {"-80": frozenset(), "80-": frozenset({"half"})}

        async def come_or_gone(keyspace, shard, known):
            return found[shard]

        monkeypatch.setattr(rig.store, "come_or_gone", come_or_gone)
        await asyncio.sleep(40)
        assert not caplog.records
        await asyncio.sleep(200)
        event = "message tables differ between shards: streamfrom check says how"
        told = [(event, "ks", "80-", ["half"])]
        assert logged(caplog, "keyspace", "shard", "queues") == told
        found["80-"] = frozenset()
        await asyncio.sleep(100)
        found["80-"] = frozenset({"half"})
        await asyncio.sleep(100)
    assert logged(caplog, "keyspace", "shard", "queues") == 2 * told


async def test_when_no_shard_answers_what_was_known_stays_in_force(caplog):
    async def pause(call, _shard):
        if call == "discover" and asyncio.get_running_loop().time() > 10:
            raise StoreError("gone")

    async with RegistryRig("t1", pause=pause) as rig:
        await asyncio.sleep(100)
        assert set(rig.registry.tables("ks")) == {"t1"}
    told = logged(caplog, "keyspace", "reason")
    assert told == [("message tables cannot be read", "ks", "gone")]


async def test_other_work_goes_on_while_definitions_are_loaded(monkeypatch):
    rig = RegistryRig(*(f"t{number}" for number in range(50)))
    counted = Definitions(rig, monkeypatch)
    most = 0
    starting = asyncio.create_task(rig.registry.start())
    while not starting.done():
        before = len(counted.loaded)
        await asyncio.sleep(0)
        most = max(most, len(counted.loaded) - before)
    assert len(counted.loaded) == 50
    assert most <= 2
    await rig.registry.stop(STOPPED)
