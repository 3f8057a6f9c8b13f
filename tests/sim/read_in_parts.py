"""Worlds whose caches are large beside what one poll reads at an interval: all promises of `tests.sim.world` hold.

What was written past the proxies is found once the polls of some intervals have come by all that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.sim.ordered_queue import Ordered
from tests.sim.world import World


SPAN_KEYS = 2


@dataclass(eq=False)
class ReadInParts(World):
    """One history."""

    parts: int = 0

    def __post_init__(self):
        super().__post_init__()
        self.settings = replace(self.settings, cache=1000, span_keys=SPAN_KEYS, poll_s=1)

    def trouble(self):
        super().trouble()
        for registry in self.registries:
            for state in registry.here.schedulers:
                for shard in state.shards:
                    self.shrink(shard.queue)

    def shrink(self, queue):
        """Let a poll read little of *queue*, and count such polls."""
        if queue.span_keys == SPAN_KEYS:
            return
        queue.span_keys = SPAN_KEYS
        started = queue.spans_started

        def spans_started():
            self.parts += 1
            return started()

        queue.spans_started = spans_started


@dataclass(eq=False)
class OrderedInParts(ReadInParts, Ordered):
    """One history in which messages wait for others of their key."""
