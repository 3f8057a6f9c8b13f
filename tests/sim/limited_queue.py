"""Worlds in which the table limits deliveries: `vt_max_in_flight` and `vt_max_rate`.

Besides the promises of `tests.sim.world`, and of `tests.sim.fleet_world` for a fleet: according to the database, there are never more
messages in flight than the limit, on all shards together, through whichever proxy they were sent; and in no second are more
sent than the rate allows.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import ClassVar

from streamfrom.engine.messaging.gates.shard_gates import CLAIM_NS, DEPTH_NS
from tests.sim.consumer import SECOND_NS
from tests.sim.fleet_world import FleetWorld
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


@dataclass(eq=False)
class InFlightLimited(World):
    """One history of one proxy. most: the highest number in flight."""

    changes: ClassVar = {"proxies": 1}  # without an election each would send as much

    in_flight: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # id → epoch, lease
    most: int = 0

    def __post_init__(self):
        super().__post_init__()
        dice = random.Random(self.seed)
        least = len(self.settings.shards)
        limit = dice.choice([least, least + 1, max(8, least)])
        self.settings = replace(self.settings, max_in_flight=limit)
        self.bad.spare_acks()

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        now_ns = self.store.clock.time_ns()
        for ident in list(self.in_flight):
            if not self._is_in_flight(ident, now_ns):
                del self.in_flight[ident]
        claimed = self.claimed(rows)
        self.in_flight.update((row.id, (row.epoch, row.due_next_ns)) for row in claimed)
        self.most = max(self.most, len(self.in_flight))
        assert len(self.in_flight) <= (self.settings.max_in_flight or 0), "more than allowed"

    def _is_in_flight(self, ident, now_ns):
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        row = next(table[ident] for table in tables if ident in table)
        return self.is_held(row, *self.in_flight[ident], now_ns)

    def given_back(self, rows):
        super().given_back(rows)
        for row in self.claimed(rows):
            self.in_flight.pop(row.id, None)


@dataclass(eq=False)
class InFlightLimitedFleet(InFlightLimited, FleetWorld):
    """One history of a fleet whose dispatchers change."""

    def __post_init__(self):
        super().__post_init__()
        # Messages sent by a dispatcher that died are known only from the rows.
        self.settings = replace(self.settings, lease="written")


@dataclass(eq=False)
class RateLimited(World):
    """One history of one proxy. sent_ns: when each message was sent, by shard."""

    changes: ClassVar = {"proxies": 1}

    sent_ns: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        rate = random.Random(self.seed).choice([0.9, 3, 10, 47.5, 300])
        self.settings = replace(self.settings, max_rate=rate)

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        now_ns = self.store.clock.time_ns()
        sent_ns = self.sent_ns.setdefault(rows[0].shard, [])
        sent_ns += [now_ns] * len(rows)
        own = (self.settings.max_rate or 0) / len(self.settings.shards)
        for seconds in (1, 10):
            count = len(sent_ns) - bisect_left(sent_ns, now_ns - seconds * SECOND_NS + 1)
            slack = max(1, own * DEPTH_NS / SECOND_NS) + own * CLAIM_NS / SECOND_NS
            assert count <= own * seconds + slack, "sent too fast"
