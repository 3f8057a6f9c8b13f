"""Every promise of `tests.sim`, on many histories. SIM_SEEDS=5000 runs that many; CI sets its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pytest

from streamfrom.engine.messaging.groups import FireResult
from streamfrom.engine.messaging.memory_store import MemoryStore
from tests.sim.dead_letters import DeadLetters
from tests.sim.fair_queue import Fair, FairFleet
from tests.sim.fleet_world import FleetWorld
from tests.sim.grouped_messages import (
    GroupedMessages,
    GroupedMessagesFleet,
    GroupedMessagesInOrder,
)
from tests.sim.keyed_streams import KeyedStreams, KeyedStreamsInOrder, KeyedStreamsOfFleet
from tests.sim.limited_queue import InFlightLimited, InFlightLimitedFleet, RateLimited
from tests.sim.locked_rows import LockedRows
from tests.sim.ordered_queue import Ordered, OrderedFleet
from tests.sim.shared_prefetch import SharedPrefetch
from tests.sim.spent_messages import SpentMessages
from tests.sim.unsteady import Unsteady, UnsteadyFleet
from tests.sim.world import World
from tests.virtual_loop import run_virtual


SEEDS = int(os.environ.get("SIM_SEEDS", "10"))


@pytest.mark.parametrize("is_told", [False, True], ids=["troubled", "told"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_promise_is_kept_whatever_happens(seed, is_told, caplog):
    run_virtual(World(seed, is_told).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_fleet_keeps_every_promise_whatever_happens(seed, caplog):
    run_virtual(FleetWorld(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_dispatchers_share_the_prefetch_of_a_stream(seed, caplog):
    run_virtual(SharedPrefetch(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("kind", [Unsteady, UnsteadyFleet])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_clock_that_is_set_and_news_that_comes_twice_break_no_promise(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_row_that_was_locked_is_sent_soon_after_it_is_free(seed):
    run_virtual(LockedRows(seed).run())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_message_is_sent_too_often_and_none_is_lost(seed, caplog):
    run_virtual(SpentMessages(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_dead_letter_was_sent_exactly_as_often_as_it_may(seed, caplog):
    run_virtual(DeadLetters(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_comes_after_a_group_fires_once_when_the_group_is_done(seed, caplog):
    """Of every four histories one is told everything, one goes over kills of the dispatcher, and one goes by keys as well."""
    kinds = [GroupedMessages, GroupedMessages, GroupedMessagesFleet, GroupedMessagesInOrder]
    world = kinds[seed % 4](seed, is_told=seed % 4 == 0)
    run_virtual(world.run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("kind", [InFlightLimited, InFlightLimitedFleet])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_never_are_more_in_flight_than_allowed(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize(
    "kind",
    [Ordered, partial(Ordered, is_told=True), OrderedFleet],
    ids=["alone", "told", "fleet"],
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_messages_of_a_key_wait_for_one_another(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize(
    "kind",
    [
        KeyedStreams,
        partial(KeyedStreams, is_told=True),
        KeyedStreamsInOrder,
        KeyedStreamsOfFleet,
    ],
    ids=["alone", "told", "in order", "fleet"],
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stream_is_given_messages_of_the_keys_it_names(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize(
    "kind", [Fair, partial(Fair, is_told=True), FairFleet], ids=["alone", "told", "fleet"]
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_where_keys_take_turns_every_promise_is_kept(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_sent_faster_than_the_rate(seed, caplog):
    run_virtual(RateLimited(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


def test_histories_of_shared_prefetches_fill_them():
    worlds = [SharedPrefetch(seed) for seed in range(4)]
    for world in worlds:
        run_virtual(world.run())
    assert sum(world.full for world in worlds) > 10


def test_histories_of_limited_queues_reach_their_limits():
    worlds = [InFlightLimited(seed) for seed in range(4)]
    for world in worlds:
        run_virtual(world.run())
    assert any(world.most == world.settings.max_in_flight for world in worlds)


def test_histories_of_streams_that_name_keys_give_them_many_messages():
    world = KeyedStreams(3)
    run_virtual(world.run())
    assert world.named > 20


def test_histories_of_spent_messages_park_some():
    worlds = [SpentMessages(seed) for seed in range(4)]
    for world in worlds:
        run_virtual(world.run())
    assert sum(world.revived for world in worlds) > 0


def test_histories_of_dead_letters_give_some_up():
    world = DeadLetters(3)
    run_virtual(world.run())
    assert world.dead > 0


def test_a_seed_is_one_history():
    first, second = World(7), World(7)
    assert run_virtual(first.run()) == run_virtual(second.run())
    assert first.store.calls == second.store.calls


def test_a_seed_is_one_history_in_each_process():
    """A set of texts has another order in each, and a list of what lies at some address too."""
    program = (
        "from tests.sim.fleet_world import FleetWorld; from tests.virtual_loop import run_virtual;"
        "world = FleetWorld(6); print(run_virtual(world.run()), world.store.calls)"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": number},
            check=True,
            capture_output=True,
        ).stdout
        for number in ("0", "3")
    )
    assert first == second


class Careless(MemoryStore):
    """A store whose claims look at no groups."""

    async def claim(self, table, shard, request):
        return await super().claim(replace(table, groups=None), shard, request)


class Forgetful(MemoryStore):
    """A store that fires nothing."""

    async def fire(self, table, shard, request):
        return FireResult()


@dataclass(eq=False)
class BrokenGroups(GroupedMessages):
    """A history over a store that breaks a promise."""

    kind: type[MemoryStore] = MemoryStore

    def make_registry(self, number, keyspace, **options):
        store = self.store
        self.store = self.kind(store.clock, store.pause, store.definitions, store.rows)
        return super().make_registry(number, keyspace, **options)


def test_a_history_that_breaks_a_promise_of_groups_is_found_out(caplog):
    # It breaks in a task of the scheduler, which is logged as in every history.
    with suppress(AssertionError):
        run_virtual(BrokenGroups(3, kind=Careless).run())
    assert "sent before its group was done" in caplog.text
    with pytest.raises(AssertionError, match="held, and its group is done"):
        run_virtual(BrokenGroups(3, kind=Forgetful).run())


def test_histories_of_groups_hold_and_fire_some():
    world = GroupedMessages(3)
    run_virtual(world.run())
    assert world.held
    assert world.fired
