"""Nothing is worked on twice but for a reason, whatever its consumer is like."""

from __future__ import annotations

import os

import pytest

from tests.sim.at_work import AtWork, Serial, Steady, Threads
from tests.virtual_loop import run_virtual


SEEDS = int(os.environ.get("SIM_SEEDS", "4"))


@pytest.mark.parametrize("seed", range(10 * SEEDS))
def test_a_message_is_worked_on_twice_only_for_a_reason(seed, caplog):
    run_virtual(AtWork(seed).run())
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert not faults, "a fault of our own was caught and logged"


@pytest.mark.parametrize("kind", [Serial, Steady, Threads])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_consumers_that_go_on_do_nothing_twice(seed, kind):
    world = AtWork(seed, (kind,), someone_leaves=False)
    run_virtual(world.run())
    assert not world.twice
