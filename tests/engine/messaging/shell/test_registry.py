"""The engine's front door. E1, E2 and E4 are the original's tests of its engine, restated."""

import asyncio

import pytest

from streamfrom.engine.errors import StoreError, TableDropped, TableLoadError, TableNotFound
from streamfrom.engine.messaging.dispatch.events import Acked, AckedUnnamed, Changed
from streamfrom.engine.messaging.shell.registry import HIDDEN_S, NAMED_MAX, Registry
from streamfrom.engine.messaging.table.hidden_definitions import HiddenDefinitions
from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable, load
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.sqlparse_ext.writes.message_effects import (
    ANY_TABLE,
    UNKNOWN,
    Effect,
    EffectKind,
    Key,
)
from tests.engine.messaging.runner_rig import Receiver
from tests.fixtures.logged import logged
from tests.sim.memory_store import DEFAULT_COMMENT, MemoryStore, StoredRow, raw_table
from tests.virtual_loop import START_NS, VirtualClock, run_virtual, running


SECOND_NS = 10**9
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


class Told:
    """What a process that does not dispatch would tell: `engine.messaging.shell.elsewhere.Elsewhere`, as far as commits ask."""

    def __init__(self):
        self.events = []

    def happened(self, _keyspace, _table, event):
        self.events.append(event)


class Definitions:
    """Counts which definitions are asked for and loaded."""

    def __init__(self, rig, monkeypatch):
        self.asked: list[frozenset[str] | None] = []
        self.hidden: list[frozenset[str] | None] = []
        self.loaded: list[str] = []
        discover, read_hidden = rig.store.discover, rig.store.read_hidden

        async def asked(keyspace, shard, names=None, placed=()):
            self.asked.append(names)
            return await discover(keyspace, shard, names, placed)

        async def hidden(keyspace, shard, names=None):
            self.hidden.append(names)
            return await read_hidden(keyspace, shard, names)

        def loaded(keyspace, raw, shards):
            self.loaded.append(raw.name)
            return load(keyspace, raw, shards)

        monkeypatch.setattr(rig.store, "discover", asked)
        monkeypatch.setattr(rig.store, "read_hidden", hidden)
        monkeypatch.setattr("streamfrom.engine.messaging.shell.registry.load", loaded)


@running
async def test_a_definition_that_a_statement_names_is_read_alone_beside_a_thousand(monkeypatch):
    async with RegistryRig(*(f"t{number}" for number in range(1000))) as rig:
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
        assert len(rig.registry.runners) == 999


@running
async def test_a_statement_that_names_no_table_reads_none_but_routines_beside_a_thousand(
    monkeypatch,
):
    async with RegistryRig(*(f"t{number}" for number in range(1000))) as rig:
        counted = Definitions(rig, monkeypatch)
        await rig.registry.definitions_changed("ks", ())
        assert counted.asked == [frozenset()]
        assert counted.hidden == [None]
        assert counted.loaded == []


@running
@pytest.mark.parametrize("named", [(), ("other",)])
async def test_every_statement_finds_tables_that_came_or_went_past_the_proxy(
    monkeypatch, named
):
    async with RegistryRig(*(f"t{number}" for number in range(1000))) as rig:
        counted = Definitions(rig, monkeypatch)
        rig.store.create("ks", raw_table("new"))
        rig.store.drop("ks", "t5")
        await rig.registry.definitions_changed("ks", named)
        assert counted.asked == [frozenset({"new", "t5", *named})]
        assert counted.loaded == ["new"]
        assert rig.registry.table("ks", "new") is not None
        assert rig.registry.table("ks", "t5") is None
        assert len(rig.registry.runners) == 1000


@running
async def test_what_a_lock_hides_is_not_dropped_and_is_read_again(monkeypatch):
    async with RegistryRig("t1") as rig:
        whole = HiddenDefinitions(
            "db", views=frozenset({"seen"}), triggered=frozenset({"outbox"})
        )
        found = [
            whole,
            HiddenDefinitions("db", functions=frozenset({"f"}), is_partial=True),
            whole,
        ]

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


@running
@pytest.mark.parametrize("names", [None, (), ("t5",)])
async def test_a_reading_is_one_for_all_who_ask_for_it_before_it_begins(monkeypatch, names):
    async with RegistryRig(*(f"t{number}" for number in range(50))) as rig:
        counted = Definitions(rig, monkeypatch)
        await asyncio.gather(*(rig.registry.reload("ks", names) for _ in range(20)))
        assert len(counted.asked) == 1
        assert counted.loaded == list(names or ())


@running
async def test_other_work_goes_on_while_a_thousand_definitions_are_loaded(monkeypatch):
    rig = RegistryRig(*(f"t{number}" for number in range(1000)))
    counted = Definitions(rig, monkeypatch)
    most = 0
    starting = asyncio.create_task(rig.registry.start())
    while not starting.done():
        before = len(counted.loaded)
        await asyncio.sleep(0)
        most = max(most, len(counted.loaded) - before)
    assert len(counted.loaded) == 1000
    assert most <= 2
    await rig.registry.stop(STOPPED)


@running
async def test_a_commit_that_may_have_written_anything_is_found_by_every_stream_of_its_shard():
    async with RegistryRig("t1", "t2", "t3") as rig:
        receivers = [Receiver(number, frozenset({"-80"})) for number in (1, 2)]
        for receiver, name in zip(receivers, ("t1", "t2"), strict=True):
            rig.registry.attach(receiver, "ks", name)
        await asyncio.sleep(0.1)
        rig.store.calls.clear()
        insert(rig, 1, table="t1")
        insert(rig, 2, table="t2")
        for _ in range(50):
            rig.commit(UNKNOWN, table=ANY_TABLE)
        await asyncio.sleep(0.1)
        assert [len(receiver.rows) for receiver in receivers] == [1, 1]
        assert rig.store.calls.count(("poll", "-80")) <= 4
        assert ("poll", "80-") not in rig.store.calls


@pytest.mark.parametrize(
    ("kind", "few", "many"),
    [
        (EffectKind.ACK, Acked("-80", (b"0", b"1")), AckedUnnamed("-80")),
        (EffectKind.REMOVE, Acked("-80", (b"0", b"1")), AckedUnnamed("-80")),
        (EffectKind.RESCHEDULE, Changed("-80", (b"0", b"1")), Changed("-80", None)),
    ],
)
@running
async def test_so_many_messages_that_they_would_hold_up_everybody_are_not_named(
    kind, few, many
):
    async with RegistryRig("t1") as rig:
        told = rig.registry.elsewhere = Told()
        rig.registry.deposed("ks", "-80", "another one dispatches it")
        for count in (2, NAMED_MAX + 1):
            rig.commit(Effect(kind, tuple(range(count))))
        assert told.events == [few, many]
        rig.registry.elsewhere = None


@running
async def test_e1_tables_come_change_and_go_with_the_schema():
    async with RegistryRig("t1") as rig:
        registry, store = rig.registry, rig.store
        assert set(registry.tables("ks")) == {"t1"}
        store.create("ks", raw_table("t3"))
        await registry.reload("ks")
        assert set(registry.tables("ks")) == {"t1", "t3"}
        store.drop("ks", "t3")
        store.create("ks", raw_table("t4"))
        await registry.reload()
        assert set(registry.tables("ks")) == {"t1", "t4"}


@running
async def test_e2_every_receiver_gets_rows_of_its_own_table():
    async with RegistryRig("t1", "t2") as rig:
        one, two = Receiver(1), Receiver(2)
        rig.registry.attach(one, "ks", "t1")
        rig.registry.attach(two, "ks", "T2")
        insert(rig, 1, table="t1")
        insert(rig, 2, table="t2", shard="80-")
        rig.commit(new(1))
        rig.commit(new(2), shard="80-", table="t2")
        await asyncio.sleep(1)
        assert (one.ids, two.ids) == ([1], [2])


@running
async def test_an_unknown_table_is_not_found():
    async with RegistryRig("t1") as rig:
        with pytest.raises(
            TableNotFound, match="message table 't3' not found in keyspace 'ks'"
        ):
            rig.registry.attach(Receiver(), "ks", "t3")
        assert rig.registry.table("ks", "t3") is None
        assert rig.registry.table("nowhere", "t1") is None


def test_a_bad_table_hurts_only_itself(caplog):
    async def main():
        async with RegistryRig("t1") as rig:
            rig.store.create("ks", raw_table("bad", "vitess_message"))
            await rig.registry.reload()
            await rig.registry.reload()
            error = rig.registry.table("ks", "bad")
            assert isinstance(error, TableLoadError)
            with pytest.raises(TableLoadError) as failure:
                rig.registry.attach(Receiver(), "ks", "bad")
            assert str(failure.value) == (
                "message table 'bad' failed to load:"
                " attribute vt_ack_wait not specified for message table"
            )
            receiver = Receiver()
            rig.registry.attach(receiver, "ks", "t1")
            insert(rig, 1)
            rig.commit(new(1))
            await asyncio.sleep(1)
            assert receiver.ids == [1]
            rig.commit(new(2), table="bad")

    run_virtual(main())
    assert sum("failed to load" in record.message for record in caplog.records) == 1


@running
async def test_r6_a_stream_survives_a_changed_comment_and_follows_it():
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        comment = DEFAULT_COMMENT.replace("vt_ack_wait=30", "vt_ack_wait=1")
        rig.store.create("ks", raw_table("t1", comment))
        await asyncio.sleep(31)
        insert(rig, 1)
        rig.commit(new(1))
        await asyncio.sleep(2)
        assert [row.epoch for row in receiver.rows] == [0, 1]
        assert receiver.ended == []


@running
async def test_a_dropped_table_ends_its_streams():
    async with RegistryRig("t1", "t2") as rig:
        gone, stays = Receiver(1), Receiver(2)
        rig.registry.attach(gone, "ks", "t1")
        rig.registry.attach(stays, "ks", "t2")
        rig.store.drop("ks", "t1")
        await rig.registry.reload()
        assert [str(error) for error in gone.ended] == [str(TableDropped("t1"))]
        assert stays.ended == []
        rig.registry.detach(gone)
        rig.registry.ready(gone)


@running
async def test_a_table_that_went_bad_ends_its_streams_with_the_reason():
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        rig.store.create("ks", raw_table("t1", "vitess_message,vt_ack_wait=0"))
        await rig.registry.reload()
        assert "vt_ack_wait must be a number of seconds" in str(receiver.ended[0])
        rig.store.create("ks", raw_table("t1"))
        await rig.registry.reload()
        assert isinstance(rig.registry.table("ks", "t1"), MessageTable)


def test_a_shard_that_does_not_answer_leaves_the_definitions_to_another(caplog):
    async def main():
        async def pause(call, shard):
            if call == "discover" and shard == "-80":
                raise StoreError("gone")

        async with RegistryRig("t1", pause=pause) as rig:
            assert set(rig.registry.tables("ks")) == {"t1"}

    run_virtual(main())
    assert not caplog.records


def test_when_no_shard_answers_what_was_known_stays_in_force(caplog):
    async def main():
        async def pause(call, _shard):
            if call == "discover" and asyncio.get_running_loop().time() > 10:
                raise StoreError("gone")

        async with RegistryRig("t1", pause=pause) as rig:
            await asyncio.sleep(100)
            assert set(rig.registry.tables("ks")) == {"t1"}

    run_virtual(main())
    told = logged(caplog, "keyspace", "reason")
    assert told == [("message tables cannot be read", "ks", "gone")]


def hidden(name):
    return RawTable(name, "", (), (), is_hidden=True)


@running
async def test_what_a_lock_hides_stays_in_force_and_is_looked_at_again_soon():
    async with RegistryRig("t1", "t2") as rig:
        rig.store.create("ks", hidden("t1"), hidden("new"), raw_table("t2"))
        await rig.registry.reload()
        assert set(rig.registry.tables("ks")) == {"t1", "t2"}
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        await asyncio.sleep(5)
        assert not receiver.ended
        rig.store.create("ks", raw_table("new"))
        await asyncio.sleep(1.5)
        assert set(rig.registry.tables("ks")) == {"t1", "t2", "new"}


@running
async def test_what_others_changed_is_read_at_once_and_together_if_it_is_much():
    async with RegistryRig("t1") as rig:
        await asyncio.sleep(1)
        rig.store.create("ks", raw_table("t2"))
        rig.registry.reload_soon()
        await asyncio.sleep(0.01)
        assert "t2" in rig.registry.tables("ks")
        before = len(rig.store.calls)
        for _ in range(50):
            rig.registry.reload_soon()
            await asyncio.sleep(0.01)
        assert len(rig.store.calls) - before <= 6


@running
async def test_what_is_gone_while_a_lock_hides_others_is_dropped():
    async with RegistryRig("t1", "t2") as rig:
        rig.store.drop("ks", "t1")
        rig.store.create("ks", hidden("t2"))
        await rig.registry.reload()
        assert set(rig.registry.tables("ks")) == {"t2"}


@running
async def test_a_keyspace_that_is_down_at_the_start_is_found_later():
    async def pause(_call, _shard):
        if asyncio.get_running_loop().time() < 10:
            raise StoreError("gone")

    async with RegistryRig("t1", pause=pause) as rig:
        assert rig.registry.tables("ks") == {}
        await asyncio.sleep(31)
        assert set(rig.registry.tables("ks")) == {"t1"}


@running
async def test_e4_many_reloads_at_once_are_fine():
    async with RegistryRig("t1", keyspaces=(KS, OTHER)) as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        async with asyncio.TaskGroup() as tasks:
            for _ in range(50):
                tasks.create_task(rig.registry.reload())
        insert(rig, 1)
        rig.commit(new(1))
        await asyncio.sleep(1)
        assert receiver.ids == [1]


@running
async def test_stopping_ends_every_stream_and_twice_is_fine():
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        await rig.registry.stop(STOPPED)
        assert receiver.ended == [STOPPED]
        with pytest.raises(type(STOPPED), match=str(STOPPED)):
            rig.registry.attach(Receiver(), "ks", "t1")
        await rig.registry.stop(STOPPED)
        await rig.registry.reload()
        calls = len(rig.store.calls)
        await asyncio.sleep(3600)
        assert len(rig.store.calls) == calls, "a purge would have come"


@running
async def test_what_was_sent_is_held_until_it_is_acked_or_its_wait_ends_streams_or_not():
    async with RegistryRig("t1", "t2") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        assert rig.registry.held() == 0
        insert(rig, 1, 2, 3)
        rig.commit(new(1, 2, 3))
        await asyncio.sleep(1)
        assert rig.registry.held() == 3
        rig.registry.end_streams(STOPPED)
        assert receiver.ended == [STOPPED]
        rig.registry.detach(receiver)
        rig.commit(Effect(EffectKind.ACK, (1,)))
        assert rig.registry.held() == 2
        rig.store.ack("ks", "-80", "t1", [b"2"])
        rig.commit(Effect(EffectKind.ACK, None))  # which one is looked up
        await asyncio.sleep(1)
        assert rig.registry.held() == 1
        await asyncio.sleep(60)
        assert rig.registry.held() == 0


@pytest.mark.parametrize("has_left", [True, False])
@running
async def test_what_a_stream_held_is_due_soon_once_its_connection_has_ended(has_left):
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        insert(rig, 1, 2)
        await asyncio.sleep(1)
        assert receiver.ids == [1, 2]
        rig.registry.detach(receiver)
        rig.registry.forget(receiver, has_left=has_left)
        rig.registry.forget(receiver, has_left=True)  # twice is fine
        rows = rig.store.table("ks", "-80", "t1")
        rig.store.ack("ks", "-80", "t1", [b"1"])
        await asyncio.sleep(1)
        wait_s = (rows[b"2"].time_next_ns - START_NS) / SECOND_NS
        assert (5.9 < wait_s < 6.1) == has_left
        assert rows[b"1"].time_next_ns is None
        again = Receiver(id=2)
        rig.registry.attach(again, "ks", "t1")
        await asyncio.sleep(10)
        assert again.ids == ([2] if has_left else [])


@running
async def test_acks_reach_the_cache_by_their_ids():
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        moment_ns = START_NS + 10 * SECOND_NS
        insert(rig, 1, 2, 3, time_next_ns=moment_ns)
        rig.commit(new(1, 2, 3, time_next_ns=moment_ns))
        rig.commit(Effect(EffectKind.ACK, (1,)))
        rig.commit(Effect(EffectKind.REMOVE, (2,)))
        rig.commit(Effect(EffectKind.ACK, None))
        await asyncio.sleep(10)
        assert receiver.ids == [3]


@pytest.mark.parametrize(
    "effect",
    [
        Effect(EffectKind.UNKNOWN, None),
        Effect(EffectKind.RESCHEDULE, (1,)),
        Effect(EffectKind.HEARTBEAT, (1,)),
        Effect(EffectKind.HEARTBEAT, None),
        Effect(EffectKind.NEW, None),
        Effect(EffectKind.NEW, (1,), ()),
    ],
)
@running
async def test_what_cannot_be_read_from_the_statement_is_polled_for(effect):
    async with RegistryRig("t1") as rig:
        receiver = Receiver()
        rig.registry.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        insert(rig, 1)
        rig.commit(effect)
        await asyncio.sleep(1)
        assert receiver.ids == [1]


@running
async def test_rows_a_receiver_could_not_send_are_released():
    async with RegistryRig("t1") as rig:
        receiver = Receiver(room=1)
        rig.registry.attach(receiver, "ks", "t1")
        insert(rig, 1)
        rig.commit(new(1))
        await asyncio.sleep(1)
        rig.registry.detach(receiver, receiver.rows)
        rig.registry.detach(receiver)
        await asyncio.sleep(1)
        row = rig.store.table("ks", "-80", "t1")[b"1"]
        assert (row.epoch, row.time_next_ns) == (0, 0)


@running
async def test_a_receiver_that_is_ready_again_gets_more():
    async with RegistryRig("t1") as rig:
        receiver = Receiver(room=1)
        rig.registry.attach(receiver, "ks", "t1")
        await asyncio.sleep(1)
        for ident in (1, 2):
            insert(rig, ident)
            rig.commit(new(ident))
            await asyncio.sleep(1)
        assert receiver.ids == [1]
        receiver.room = 9
        rig.registry.ready(receiver)
        await asyncio.sleep(1)
        assert receiver.ids == [1, 2]


@running
async def test_health_signals_reach_every_table_of_the_keyspace():
    async with RegistryRig("t1", "t2", keyspaces=(KS, OTHER)) as rig:
        lost, saved = Receiver(1), Receiver(2)
        rig.registry.attach(lost, "ks", "t1")
        await asyncio.sleep(1)
        rig.registry.shard_down("ks", "80-", "refused")
        rig.registry.shard_up("ks", "80-")
        rig.registry.attach(saved, "ks", "t2")
        rig.registry.shard_down("other", "0", "refused")
        await asyncio.sleep(100)
        assert lost.ended == saved.ended == []


def test_index_advice_is_logged_when_the_table_is_found(caplog):
    from dataclasses import replace

    async def main():
        async with RegistryRig() as rig:
            rig.store.create("ks", replace(raw_table("t1"), indexes=()))
            await rig.registry.reload()
            await rig.registry.reload()

    run_virtual(main())
    (event, queue, advice), _ = logged(caplog, "queue", "advice")
    assert (event, queue, "ALTER TABLE" in advice) == ("message table", "t1", True)


@running
async def test_early_acks_are_taken_where_the_message_is_in_flight_here():
    async with RegistryRig() as rig:
        registry = rig.registry
        rig.store.create("ks", raw_table("t1", DEFAULT_COMMENT + ",vt_ack=early"))
        await registry.reload("ks")
        registry.attach(Receiver(), "ks", "t1")
        await asyncio.sleep(0.1)
        insert(rig, 1, 2)
        rig.commit(new(1, 2))
        await asyncio.sleep(0.1)
        assert not registry.awaits_acks("ks", "-80", "T1")
        assert registry.ack_early("ks", "-80", "T1", (b"1",), 77) == 1
        assert registry.awaits_acks("ks", "-80", "t1")
        # Whoever is about to change it waits for the row, whatever its leases are.
        await registry.write_leases("ks", "-80", "t1", (b"1",))
        assert not registry.awaits_acks("ks", "-80", "t1")
        assert registry.ack_early("ks", "-80", "none", (b"1",), 77) is None
        assert not registry.awaits_acks("ks", "-80", "none")
        registry.deposed("ks", "-80", "another one")
        assert registry.ack_early("ks", "-80", "t1", (b"2",), 77) is None
