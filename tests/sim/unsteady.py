"""Worlds whose wall clock is set, forward and back, and in which events arrive twice.

All promises of `tests.sim.world`, and of `tests.sim.fleet_world` for a fleet, hold for the latest time that the clock has ever shown:
messages due at that time are due, and leases that had ended by then have ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.sim.consumer import SECOND_NS
from tests.sim.fleet_world import FleetWorld
from tests.sim.world import World
from tests.virtual_loop import VirtualClock


@dataclass(eq=False)
class JumpingClock(VirtualClock):
    """A wall clock that is set. latest_ns: the latest time that it has shown."""

    ahead_ns: int = 0
    latest_ns: int = 0

    def time_ns(self) -> int:
        now_ns = super().time_ns() + self.ahead_ns
        self.latest_ns = max(self.latest_ns, now_ns)
        return now_ns


@dataclass(eq=False)
class Unsteady(World):
    """One history. jumps: how often the clock was set."""

    clock: JumpingClock = field(default_factory=JumpingClock)
    jumps: int = 0
    was_set_back: bool = False

    def trouble(self):
        super().trouble()
        if self.jumps < 3 and self.dice.random() < 0.2:
            self.jumps += 1
            self.jumped_s = asyncio.get_running_loop().time()
            jump_s = self.dice.choice([-300, -30, -3, -0.3, 0.3, 3, 30, 300])
            self.clock.ahead_ns += round(jump_s * SECOND_NS)
            self.was_set_back = self.was_set_back or jump_s < 0

    def latest_ns(self):
        self.clock.time_ns()
        return self.clock.latest_ns

    def check_leases(self, row, now_ns):
        # After the clock was set back, a row that is no longer due looks rescheduled.
        if not self.was_set_back:
            super().check_leases(row, now_ns)

    async def check_released(self, consumer):
        if not self.was_set_back:
            await super().check_released(consumer)

    def tell(self, shard, effect, drawn=None):
        way, proxy = drawn or self._way()
        if self.dice.random() < 0.2:
            super().tell(shard, effect, (way, self.dice.randrange(self.settings.proxies)))
        return super().tell(shard, effect, (way, proxy))


@dataclass(eq=False)
class UnsteadyFleet(Unsteady, FleetWorld):
    """One history of a fleet, all of whose machines have the same clock."""
