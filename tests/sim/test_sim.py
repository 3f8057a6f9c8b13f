"""Every promise of `tests.sim`, on many histories. SIM_SEEDS=5000 runs that many; CI sets its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pytest

from streamfrom.engine.messaging.table.groups import FireResult
from tests.sim.dead_letters import DeadLetters
from tests.sim.fair_queue import Fair, FairFleet, FairInOrder, FairInOrderFleet
from tests.sim.fleet_world import FleetWorld
from tests.sim.grouped_messages import (
    GroupedMessages,
    GroupedMessagesFleet,
    GroupedMessagesInOrder,
)
from tests.sim.keyed_streams import KeyedStreams, KeyedStreamsInOrder, KeyedStreamsOfFleet
from tests.sim.limited_queue import InFlightLimited, InFlightLimitedFleet, RateLimited
from tests.sim.locked_rows import LockedRows
from tests.sim.memory_store import MemoryStore
from tests.sim.ordered_queue import Ordered, OrderedFleet
from tests.sim.read_in_parts import ReadInParts
from tests.sim.shared_prefetch import SharedPrefetch
from tests.sim.spent_messages import SpentMessages
from tests.sim.unsteady import Unsteady, UnsteadyFleet
from tests.sim.world import World
from tests.virtual_loop import run_virtual


SEEDS = int(os.environ.get("SIM_SEEDS", "4"))


def grouped_messages(seed: int) -> World:
    """Of every four histories one is told everything, one goes over kills of the dispatcher, and one goes by keys as well."""
    kinds = (GroupedMessages, GroupedMessages, GroupedMessagesFleet, GroupedMessagesInOrder)
    kind: type[World] = kinds[seed % 4]
    return kind(seed, seed % 4 == 0)


HISTORIES = {
    "every promise is kept whatever happens": World,
    "every promise is kept where all is told": partial(World, is_told=True),
    "every promise is kept where caches are read in parts": ReadInParts,
    "a fleet keeps every promise whatever happens": FleetWorld,
    "dispatchers share the prefetch of a stream": SharedPrefetch,
    "a clock that is set and news that comes twice break no promise": Unsteady,
    "a clock that is set and news that comes twice break no promise of a fleet": UnsteadyFleet,
    "a row that was locked is sent soon after it is free": LockedRows,
    "no message is sent too often and none is lost": SpentMessages,
    "a dead letter was sent exactly as often as it may": DeadLetters,
    "what comes after a group fires once when the group is done": grouped_messages,
    "never are more in flight than allowed": InFlightLimited,
    "never are more of a fleet in flight than allowed": InFlightLimitedFleet,
    "messages of a key wait for one another": Ordered,
    "messages of a key wait for one another where all is told": partial(Ordered, is_told=True),
    "messages of a key wait for one another in a fleet": OrderedFleet,
    "a stream is given messages of the keys it names": KeyedStreams,
    "a stream is given them where all is told": partial(KeyedStreams, is_told=True),
    "a stream is given them in order": KeyedStreamsInOrder,
    "a stream is given them by a fleet": KeyedStreamsOfFleet,
    "where keys take turns every promise is kept": Fair,
    "where keys take turns every promise is kept and all is told": partial(Fair, is_told=True),
    "where keys take turns a fleet keeps every promise": FairFleet,
    "keys take turns in which messages of a key wait for one another": FairInOrder,
    "keys take such turns where all is told": partial(FairInOrder, is_told=True),
    "keys of a fleet take such turns": FairInOrderFleet,
    "nothing is sent faster than the rate": RateLimited,
}


@pytest.mark.parametrize("kind", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_history_keeps_its_promise(seed, kind, caplog):
    run_virtual(kind(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


def test_histories_of_shared_prefetches_fill_them():
    worlds = [SharedPrefetch(seed) for seed in range(4)]
    for world in worlds:
        run_virtual(world.run())
    assert sum(world.full for world in worlds) > 10


def test_histories_of_limited_queues_reach_their_limits():
    def reaches_it(seed: int) -> bool:
        world = InFlightLimited(seed)
        run_virtual(world.run())
        return world.most == world.settings.max_in_flight

    assert any(map(reaches_it, range(4)))


def test_histories_of_streams_that_name_keys_give_them_many_messages():
    worlds = [KeyedStreams(seed) for seed in (2, 3)]
    for world in worlds:
        run_virtual(world.run())
    assert sum(world.named for world in worlds) > 20


def test_caches_are_read_in_parts_where_they_are_large():
    world = ReadInParts(3)
    run_virtual(world.run())
    assert world.parts > 10


def test_histories_of_spent_messages_park_some():
    def parks_some(seed: int) -> bool:
        world = SpentMessages(seed)
        run_virtual(world.run())
        return world.revived > 0

    assert any(map(parks_some, range(4)))


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


def test_histories_have_rows_that_the_database_does_not_write():
    def is_refused(seed: int) -> bool:
        world = World(seed)
        run_virtual(world.run())
        return world.bad.refused > 0

    assert not is_refused(0)
    assert any(map(is_refused, range(1, 20, 2)))
