"""A world in which messages become dead letters after enough deliveries, and nothing fails, so that all can be counted.

Besides the promises of `tests.sim.world`: no message is sent more than vt_max_attempts times; a dead letter was sent exactly this
often, and exists nowhere else; and every message is acknowledged or a dead letter. A claim whose rows never reached the consumer counts
as a send if it was undone too late, or the database refused to undo it, because only the row survives the proxy.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import ClassVar

from streamfrom.engine.messaging.dispatch.events import JobDone
from streamfrom.engine.messaging.leases.lease_rows import Release
from tests.sim.memory_store import raw_table
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


GRAVE = "grave"


@dataclass(eq=False)
class DeadLetters(World):
    """One history of one proxy.

    dead: how many messages were given up.
    unsent_claims: ids and epochs of claims that a consumer gave back, or that the database refused to undo.
    """

    changes: ClassVar = {"proxies": 1, "failing": 0}

    dead: int = field(default=0)
    unsent_claims: set[tuple[bytes, int]] = field(default_factory=set)

    def __post_init__(self):
        super().__post_init__()
        dice = random.Random(self.seed)
        self.settings = replace(
            self.settings,
            max_attempts=dice.choice([1, 2, 3]),
            lost_acks=dice.choice([0.2, 0.5, 0.9]),
        )

    def definition(self, comment):
        return raw_table(TABLE, f"{comment},vt_dead_letter={GRAVE}")

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        sent = Counter(ident for ident, _ in self.attempts)
        assert max(sent[row.id] for row in rows) <= self.settings.max_attempts, "sent too often"

    def given_back(self, rows):
        super().given_back(rows)
        self.unsent_claims.update((row.id, row.epoch) for row in self.claimed(rows))

    def heard(self, event):
        super().heard(event)
        if isinstance(event, JobDone) and isinstance(event.job, Release) and event.result:
            self.unsent_claims.update(
                (row.id, row.epoch) for row in event.job.rows if row.id in event.result
            )

    def unsent(self):
        most = self.settings.max_attempts
        return sum(
            all((ident, epoch) in self.unsent_claims for epoch in range(most))
            for name in self.settings.shards
            for ident in self.store.table(KEYSPACE, name, GRAVE).keys() - self.delivered.keys()
        )

    async def _stop(self):
        most = self.settings.max_attempts
        counted_as_sent = self.attempts | self.unsent_claims
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
                # A send may cross a reschedule.
                never = [one for one in range(most) if (row.id, one) not in counted_as_sent]
                assert len(never) <= self.rescheduled[row.id], "counted wrongly"
        assert found == self.ids, "lost on the way"
        (registry,) = self.registries
        counted = sum(
            state.shard(name).counters.dead_lettered
            for state in registry.here.schedulers
            for name in self.settings.shards
        )
        assert counted == self.dead
