"""A world in which messages are sent only a few times, and parked ones are revived.

Besides the promises of `tests.sim.world`: between two revivals no message is sent more than vt_max_attempts
times; a parked message was sent this often or its claim was lost; and one UPDATE makes it an ordinary message again.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


REVIVAL_S = 5


@dataclass(eq=False)
class SpentMessages(World):
    """One history; revived counts the rows that were parked and brought back."""

    revived: int = field(default=0)

    def __post_init__(self):
        super().__post_init__()
        max_attempts = random.Random(self.seed).choice([1, 2, 3])
        self.settings = replace(self.settings, max_attempts=max_attempts)

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        sent = dict.fromkeys((row.id for row in self.claimed(rows)), 0)
        for ident, _ in self.attempts:
            if ident in sent:
                sent[ident] += 1
        assert max(sent.values()) <= self.settings.max_attempts, "sent once too often"

    def _calm(self):
        self.spawn(self._revive())

    async def _revive(self):
        while True:
            await asyncio.sleep(REVIVAL_S)
            for shard in self.settings.shards:
                for row in self.store.table(KEYSPACE, shard, TABLE).values():
                    if row.time_next_ns == PARKED_NS:
                        assert row.epoch >= self.settings.max_attempts, "parked too soon"
                        self._revive_row(shard, row)

    def _revive_row(self, shard, row):
        row.epoch = row.time_next_ns = 0
        self.revived += 1
        self.rescheduled[row.id] += 1
        self.touched_ns[row.id] = self.store.clock.time_ns()
        self.attempts -= {(row.id, epoch) for epoch in range(self.settings.max_attempts)}
        self.tell(shard, Effect(EffectKind.UNKNOWN, None))
