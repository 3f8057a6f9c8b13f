"""A world in which messages that were sent often enough become dead letters, and nothing fails, so that all can be counted.

Besides the promises of `tests.sim.world`: no message is sent more than vt_max_attempts times; a dead letter was sent exactly so
often, and is nowhere else; and every message is acknowledged or a dead letter. A claim that the database does not undo counts as
a send: the row is left as it is, and nothing else survives the proxy.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from tests.sim.memory_store import raw_table
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


GRAVE = "grave"


@dataclass(eq=False)
class DeadLetters(World):
    """One history of one proxy. dead: how many messages were given up."""

    dead: int = field(default=0)

    def __post_init__(self):
        super().__post_init__()
        dice = random.Random(self.seed)
        self.settings = replace(
            self.settings,
            proxies=1,
            failing=0,
            max_attempts=dice.choice([1, 2, 3]),
            lost_acks=dice.choice([0.2, 0.5, 0.9]),
        )
        self.settings = replace(self.settings, lease=self._lease())

    def definition(self, comment):
        return raw_table(TABLE, f"{comment},vt_dead_letter={GRAVE}")

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        sent = Counter(ident for ident, _ in self.attempts)
        assert max(sent[row.id] for row in rows) <= self.settings.max_attempts, "sent too often"

    def unsent(self):
        graves = (self.store.table(KEYSPACE, name, GRAVE) for name in self.settings.shards)
        return sum(
            ident not in self.delivered and self.bad.unreturned[ident] > 0
            for grave in graves
            for ident in grave
        )

    async def _stop(self):
        sent = Counter(ident for ident, _ in self.attempts)
        most = self.settings.max_attempts
        found = 0
        for name in self.settings.shards:
            table = self.store.table(KEYSPACE, name, TABLE)
            grave = self.store.table(KEYSPACE, name, GRAVE)
            assert not table.keys() & grave.keys(), "sent on, though it was given up"
            found += len(table) + len(grave)
            self.dead += len(grave)
            for row in grave.values():
                assert row.time_acked_ns is None, "acknowledged, and given up"
                assert row.epoch == most, "given up too soon or too late"
                # What was given back too late counts as sent; a send may cross a reschedule.
                slack = self.given_back_count[row.id] + self.rescheduled[row.id]
                slack += self.bad.unreturned[row.id]
                assert abs(most - sent[row.id]) <= slack, "counted wrongly"
        assert found == self.ids, "lost on the way"
        (registry,) = self.registries
        counted = sum(
            state.counters(name).dead
            for state in registry.schedulers
            for name in self.settings.shards
        )
        assert counted == self.dead
