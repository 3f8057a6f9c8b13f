"""Long work of one session in slices, so that it does not hold up other sessions.

A point SELECT takes about three turns of the event loop: its text arrives, its reply arrives, its rows
are written. It therefore waits for three slices; if every busy session worked in every turn, it would
wait for three slices of each. So sessions alternate: one slice of one session per turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from time import perf_counter
from typing import Final, TypeVar
from weakref import WeakKeyDictionary


# The length of a slice. 10 ms was too long: a client with 20 ms between its SELECTs, next to one
# batch of 10^5 rows, fell behind more and more, up to 5 s. So was 3 ms on a machine with five
# times more work than it could do: the client fell behind by 2 s during a merge of groups.
SLICE_S: Final = 0.001
# 200 queues of 16 shards in one turn blocked the loop for 13 to 16 ms in a sample, and for 27 ms in the overview.
QUEUES_IN_A_TURN: Final = 8

T = TypeVar("T")


class _Queue:
    """The sessions of one loop that wait for their next slice, first come first served."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def join(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Return a future that is done when it is the caller's turn."""
        if not self._waiting:
            loop.call_soon(self._next, loop)
        place = loop.create_future()
        self._waiting.append(place)
        return place

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            # Skip a session that has ended meanwhile.
            if not place.done():
                place.set_result(None)
                break
        if self._waiting:
            loop.call_soon(self._next, loop)


_queues: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue]] = WeakKeyDictionary()


def next_turn() -> asyncio.Future[None]:
    """Return a future that is done when all earlier callers have had a slice, and other clients a turn."""
    loop = asyncio.get_running_loop()
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = _Queue()
    return queue.join(loop)


class Slices:
    """The work of one session on one statement.

    clock: seconds that only ever increase.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._end_s = clock() + SLICE_S

    async def breathe(self) -> None:
        """Return at once until the slice is used up; then wait until other sessions have had theirs."""
        if self._clock() < self._end_s:
            return
        await next_turn()
        self.begin()

    def begin(self) -> None:
        """Begin a slice, after the session has waited for something else."""
        self._end_s = self._clock() + SLICE_S


async def in_turns(queues: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yield *queues* in order, QUEUES_IN_A_TURN at a time, with a turn for other sessions after each chunk."""
    for start in range(0, len(queues), QUEUES_IN_A_TURN):
        yield queues[start : start + QUEUES_IN_A_TURN]
        await next_turn()
