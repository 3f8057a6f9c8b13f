"""Work on all queues a few at a time, so that the figures of many hold no client up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from streamfrom.proxy.fairness import next_turn


T = TypeVar("T")

# 200 queues of 16 shards at once held the loop for 13 to 16 ms in a sample, and for 27 ms in the overview.
QUEUES_IN_A_TURN: Final = 8


async def in_turns(queues: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yield *queues* in their order, QUEUES_IN_A_TURN at a time, and let others in after each."""
    for start in range(0, len(queues), QUEUES_IN_A_TURN):
        yield queues[start : start + QUEUES_IN_A_TURN]
        await next_turn()
