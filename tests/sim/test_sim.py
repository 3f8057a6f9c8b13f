"""Every promise of `tests.sim`, on many histories. SIM_SEEDS=5000 runs that many; CI sets its own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

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
from tests.sim.ordered_queue import Ordered, OrderedFleet
from tests.sim.read_in_parts import LongFloods, OrderedInParts, ReadInParts
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
    "messages of a key wait for one another where caches are read in parts": OrderedInParts,
    "every promise is kept where floods are long beside what is read of them": LongFloods,
    "a fleet keeps every promise whatever happens": FleetWorld,
    "dispatchers share the prefetch of a stream": SharedPrefetch,
    "a clock that is set and news that comes twice break no promise": Unsteady,
    "a clock that is set and news that comes twice break no promise of a fleet": UnsteadyFleet,
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


# Kinds of histories, seeds of some, and what of their promises is to happen in them, how often.
REACHED = [
    (SharedPrefetch, range(4), lambda world: world.full, 10),
    (InFlightLimited, range(4), lambda world: world.most == world.settings.max_in_flight, 0),
    (KeyedStreams, (2, 3), lambda world: world.named, 20),
    (ReadInParts, (3,), lambda world: world.parts, 10),
    (OrderedInParts, range(4), lambda world: world.parts, 10),
    (Ordered, (2, 3), lambda world: world.waited, 20),
    (SpentMessages, range(4), lambda world: world.revived, 0),
    (DeadLetters, (3,), lambda world: world.dead, 0),
    (GroupedMessages, (3,), lambda world: min(len(world.held), len(world.fired)), 0),
    (World, range(1, 20, 2), lambda world: world.bad.refused, 0),
]


@pytest.mark.parametrize(("kind", "seeds", "count", "more_than"), REACHED)
def test_histories_reach_what_their_promise_is_about(kind, seeds, count, more_than):
    found = 0
    for seed in seeds:
        world = kind(seed)
        run_virtual(world.run())
        found += count(world)
        if found > more_than:
            return
    raise AssertionError(found)


def test_a_seed_is_one_history_in_each_process():
    """A set of texts has another order in each, and a list of what lies at some address too."""
    program = (
        "from tests.sim.fleet_world import FleetWorld; from tests.virtual_loop import run_virtual;"
        "world = FleetWorld(6); print(run_virtual(world.run()), world.store.calls)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "3"}  # this process has another seed
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True
    )
    world = FleetWorld(6)
    assert f"{run_virtual(world.run())} {world.store.calls}\n" == done.stdout.decode()
