"""Worlds in which keys take turns: `vt_fair`, also if messages of a key wait for one another: `vt_max_per_key`.

Besides the promises of `tests.sim.world`: half of all messages have one key, and some have none; whatever polls leave out, everything
is delivered eventually.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tests.sim.fleet_world import FleetWorld
from tests.sim.memory_store import raw_table
from tests.sim.ordered_queue import Ordered, OrderedFleet
from tests.sim.settings import TABLE
from tests.sim.world import World


FLOOD = b"7"


@dataclass(eq=False)
class Fair(World):
    """One history of one proxy."""

    changes: ClassVar = {"proxies": 1, "newest": False, "order": ",vt_key=tenant,vt_fair=on"}
    known_s = 12  # a poll reads keys in separate calls

    def definition(self, comment):
        return raw_table(TABLE, comment, numbers=("tenant",))

    def key_of(self, number):
        if number % 2:
            return FLOOD
        return None if number % 7 == 0 else b"%d" % (10 + number % 90)


@dataclass(eq=False)
class FairFleet(Fair, FleetWorld):
    """One history of a fleet."""


@dataclass(eq=False)
class FairInOrder(Fair, Ordered):
    """One history in which only some messages of each key may have started."""

    def __post_init__(self):
        super().__post_init__()
        self.in_order = 1 + self.seed % 3
        order = f",vt_key=tenant,vt_fair=on,vt_max_per_key={self.in_order}"
        self.settings = replace(self.settings, order=order)


@dataclass(eq=False)
class FairInOrderFleet(FairInOrder, OrderedFleet):
    """One history of a fleet."""
