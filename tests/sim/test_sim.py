"""Every promise of `tests.sim`, on many histories. SIM_SEEDS=5000 runs that many; CI sets its own."""

from __future__ import annotations

import os

import pytest

from tests.sim.fleet_world import FleetWorld
from tests.sim.locked_rows import LockedRows
from tests.sim.spent_messages import SpentMessages
from tests.sim.world import World
from tests.virtual_loop import run_virtual


SEEDS = int(os.environ.get("SIM_SEEDS", "16"))


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
def test_a_row_that_was_locked_is_sent_soon_after_it_is_free(seed):
    run_virtual(LockedRows(seed).run())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_message_is_sent_too_often_and_none_is_lost(seed, caplog):
    run_virtual(SpentMessages(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


def test_histories_of_spent_messages_park_some():
    worlds = [SpentMessages(seed) for seed in range(4)]
    for world in worlds:
        run_virtual(world.run())
    assert sum(world.revived for world in worlds) > 0


def test_a_seed_is_one_history():
    first, second = World(7), World(7)
    assert run_virtual(first.run()) == run_virtual(second.run())
    assert first.store.calls == second.store.calls
