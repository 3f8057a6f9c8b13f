"""Worlds with caches larger than the part that polls read, at an interval or of a flood: all promises of `tests.sim.world` hold.

Rows written past the proxies are found once the polls of some intervals have passed all known rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.sim.ordered_queue import Ordered
from tests.sim.world import World


SPAN_KEYS = 2


def queues(world):
    """Return the queues of all members."""
    states = [state for one in world.registries for state in one.here.schedulers]
    return [shard.queue for state in states for shard in state.shards]


@dataclass(eq=False)
class LongFloods(World):
    """One history in which rows after a flood are not read before the flood has almost ended."""

    changes: ClassVar = {"cache": 10}

    def trouble(self):
        super().trouble()
        for queue in queues(self):
            queue.low_keys = 1


@dataclass(eq=False)
class ReadInParts(World):
    """One history."""

    changes: ClassVar = {"cache": 1000, "span_keys": SPAN_KEYS, "poll_s": 1}

    parts: int = 0

    def trouble(self):
        super().trouble()
        for queue in queues(self):
            self.shrink(queue)

    def shrink(self, queue):
        """Make polls read little of *queue*, and count these polls."""
        if queue.span_keys == SPAN_KEYS:
            return
        queue.span_keys = SPAN_KEYS
        started = queue.poll_started

        def poll_started(now_ns, *, in_spans=False):
            self.parts += in_spans
            return started(now_ns, in_spans=in_spans)

        queue.poll_started = poll_started


@dataclass(eq=False)
class OrderedInParts(ReadInParts, Ordered):
    """One history in which messages also wait for others of their key."""
