"""Worlds in which keys take turns: `vt_fair`.

Besides the promises of `tests.sim.world`: half of all messages have one key, and some have none; whatever is left out by polls, in the end
all is delivered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.sim.fleet_world import FleetWorld
from tests.sim.memory_store import raw_table
from tests.sim.settings import TABLE
from tests.sim.world import World


FLOOD = b"7"


@dataclass(eq=False)
class Fair(World):
    """One history of one proxy."""

    known_s = 12  # a poll reads keys by calls of their own

    def __post_init__(self):
        super().__post_init__()
        self.settings = replace(
            self.settings, proxies=1, newest=False, order=",vt_key=tenant,vt_fair=on"
        )

    def definition(self, comment):
        return raw_table(TABLE, comment, numbers=("tenant",))

    def key_of(self, number):
        if number % 2:
            return FLOOD
        return None if number % 7 == 0 else b"%d" % (10 + number % 90)


@dataclass(eq=False)
class FairFleet(Fair, FleetWorld):
    """One history of a fleet."""

    def __post_init__(self):
        FleetWorld.__post_init__(self)
        self.settings = replace(self.settings, newest=False, order=",vt_key=tenant,vt_fair=on")
