"""Fleets without trouble, in which each shard has a different dispatcher: streams share their prefetch among all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.sim.fleet_world import FleetWorld


@dataclass(eq=False)
class SharedPrefetch(FleetWorld):
    """One history. full: how often a stream held its whole prefetch."""

    full: int = 0

    def __post_init__(self):
        super().__post_init__()
        shards = self.dice.choice([("-80", "80-"), ("-40", "40-80", "80-")])
        self.settings = replace(
            self.settings,
            shards=shards,
            proxies=len(shards),
            messages=30,
            chaos_s=15,
            consumers=2,
            lost_acks=0.5,
            ack_wait_s=1,
            prefetch=self.dice.choice([1, 2, 5, 20]),
            lease=self.dice.choice(["written", "lazy"]),
            failing=0,
        )
        self.bad.spare_acks()

    def make_registry(self, number, keyspace, **options):
        registry = super().make_registry(number, keyspace, **options)
        for index, shard in enumerate(self.settings.shards):
            # The nearest member takes the lock.
            self.parts[number, shard].network.delay_s = 0.001 if index == number else 0.05
        return registry

    def trouble(self):
        """Leave the servers alone."""

    def check_prefetch(self, consumer, rows, now_ns):
        super().check_prefetch(consumer, rows, now_ns)
        limit = self.settings.prefetch if consumer.prefetch is None else consumer.prefetch
        self.full += self.is_settled() and 0 < limit == len(consumer.held)
