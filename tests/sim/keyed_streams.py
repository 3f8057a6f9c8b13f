"""Worlds in which streams name the keys whose messages they receive: `STREAM … WHERE key IN (…)`.

Besides the promises of `tests.sim.world`: a stream gets no message of another key, and eventually, when all streams name keys, everything
is delivered, however small the cache, and although half of all messages have the same key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tests.sim.fleet_world import FleetWorld
from tests.sim.ordered_queue import Ordered
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


KEYS = (b"7", *(b"%d" % (10 + number) for number in range(5)))


@dataclass(eq=False)
class KeyedStreams(World):
    """One history of one proxy. named: how many messages went to streams that name keys."""

    changes: ClassVar = {"proxies": 1, "order": ",vt_key=tenant"}
    known_s = 12  # a poll reads each named key in a separate call

    named: int = 0

    definition = Ordered.definition

    def key_of(self, number):
        return KEYS[0] if number % 2 else KEYS[1 + number // 2 % 5]

    def keys_named(self, *, polite):
        if not polite:
            return None if self.dice.random() < 0.4 else self._some_keys()
        is_first = not any(one.polite for one in self.consumers)
        return frozenset(KEYS) if is_first else self._some_keys()

    def _some_keys(self):
        return frozenset(self.dice.sample(KEYS, self.dice.choice([1, 1, 2, 4])))

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        if consumer.keys is None:
            return
        for row in self.claimed(rows):
            self.named += 1
            found = self.store.table(KEYSPACE, row.shard, TABLE)[row.id].key
            assert found in consumer.keys, f"{row.id!r} is of another key"


@dataclass(eq=False)
class KeyedStreamsInOrder(KeyedStreams, Ordered):
    """One history in which the messages of a key also wait for one another."""

    def __post_init__(self):
        super().__post_init__()
        if self.is_strict:
            self.settings = replace(self.settings, order=",vt_key=tenant,vt_max_per_key=1")


@dataclass(eq=False)
class KeyedStreamsOfFleet(KeyedStreams, FleetWorld):
    """One history of a fleet, in which the current dispatcher serves the streams."""
