"""A model in virtual time of one queue and its consumers, to judge the rules of a prefetch window by what becomes of the work.

Only what the rules concern is in it: rows go to the stream with most room, a lease follows the stream's progress (contract: the lease
follows the work), and commits and rows take CALL_S.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from streamfrom.engine.messaging.streams.prefetch_window import FIRST, PrefetchWindow


if TYPE_CHECKING:
    from collections.abc import Callable


SECOND_NS = 10**9
CALL_S = 0.001


@dataclass(eq=False)
class Consumer:
    """A consumer.

    work_s: draws how long it works on one message.
    threads: how many it works on at the same time.
    batch: how many it works on, at most, before it acks them together.
    is_stuck: it never acks.
    joins_s: when it connects.
    """

    work_s: Callable[[random.Random], float]
    threads: int = 1
    batch: int = 1
    is_stuck: bool = False
    joins_s: float = 0.0
    first: int = FIRST
    windows: list[PrefetchWindow] = field(default_factory=list)  # one for each dispatcher
    waiting: deque[int] = field(default_factory=deque)
    held: list[set[int]] = field(default_factory=list)
    busy: int = 0
    progress_s: float = 0.0
    has_stalled: bool = False
    sizes: list[int] = field(default_factory=list)  # of all windows together
    done: int = 0

    def room(self, dispatcher: int) -> int:
        """Return how many more messages it may hold of a dispatcher."""
        return self.windows[dispatcher].size - len(self.held[dispatcher])


class Model:
    """One history of *messages* messages. now_s: when the last one was acked."""

    def __init__(
        self,
        messages: int,
        consumers: list[Consumer],
        *,
        ack_wait_s: float = 30.0,
        per_s: float = 0.0,
        seed: int = 1,
        dispatchers: int = 1,
        window: Callable[[], Any] | None = None,
    ) -> None:
        """per_s: as many are inserted a second; 0 for all at the start. window: makes another one than the one to be judged."""
        self.now_s = 0.0
        self.worked: Counter[int] = Counter()
        self.sent: Counter[int] = Counter()
        self._consumers = consumers
        self._ack_wait_s = ack_wait_s
        self._window = window
        self._dice = random.Random(seed)
        self._ready: list[deque[int]] = [deque() for _ in range(dispatchers)]
        self._left = messages
        self._streams: list[Consumer] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        for number in range(messages):
            if per_s:
                self._at(number / per_s, partial(self._inserted, number))
            else:
                self._of(number).append(number)
        for consumer in consumers:
            self._at(consumer.joins_s, partial(self._joined, consumer))

    def run(self) -> float:
        """Return how long it took until all were acked, in seconds."""
        while self._left:
            self.now_s, _, happens = heapq.heappop(self._events)
            happens()
        return self.now_s

    @property
    def _now_ns(self) -> int:
        return round(self.now_s * SECOND_NS)

    def _at(self, moment_s: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment_s, next(self._numbers), happens))

    def _of(self, message: int) -> deque[int]:
        return self._ready[message % len(self._ready)]

    def _inserted(self, message: int) -> None:
        self._of(message).append(message)
        self._serve()

    def _joined(self, consumer: Consumer) -> None:
        for _ in self._ready:
            consumer.held.append(set())
            if self._window is None:
                is_part = len(self._ready) > 1
                made = PrefetchWindow(self._now_ns, first=consumer.first, is_part=is_part)
            else:
                made = self._window()
            consumer.windows.append(made)
        self._streams.append(consumer)
        self._serve()

    def _serve(self) -> None:
        for dispatcher in range(len(self._ready)):
            self._dispatch(dispatcher)

    def _dispatch(self, dispatcher: int) -> None:
        ready = self._ready[dispatcher]
        given: dict[Consumer, list[int]] = {}
        for stream in self._streams:
            stream.windows[dispatcher].passed(self._now_ns)
        while ready:
            free = [one for one in self._streams if one.room(dispatcher) > 0]
            if not free:
                break
            chosen = max(free, key=lambda one: (not one.has_stalled, one.room(dispatcher)))
            if not any(chosen.held):
                chosen.progress_s = self.now_s
            message = ready.popleft()
            self.sent[message] += 1
            chosen.held[dispatcher].add(message)
            given.setdefault(chosen, []).append(message)
        for stream, messages in given.items():
            if stream.room(dispatcher) > 0:
                stream.windows[dispatcher].starved()
            self._at(self.now_s + CALL_S, partial(self._arrived, stream, messages))
            end_s = self.now_s + self._ack_wait_s
            self._at(end_s, partial(self._may_end, stream, dispatcher, messages))

    def _may_end(self, stream: Consumer, dispatcher: int, messages: list[int]) -> None:
        held = [message for message in messages if message in stream.held[dispatcher]]
        if not held:
            return
        end_s = stream.progress_s + self._ack_wait_s
        if end_s > self.now_s:
            self._at(end_s, partial(self._may_end, stream, dispatcher, held))
            return
        stream.held[dispatcher].difference_update(held)
        stream.has_stalled = True
        stream.windows[dispatcher].lost()
        self._ready[dispatcher].extendleft(held)
        self._serve()

    def _arrived(self, stream: Consumer, messages: list[int]) -> None:
        stream.waiting.extend(messages)
        self._work(stream)

    def _work(self, stream: Consumer) -> None:
        while stream.waiting and stream.busy < stream.threads and not stream.is_stuck:
            stream.busy += 1
            taken = [
                stream.waiting.popleft() for _ in range(min(stream.batch, len(stream.waiting)))
            ]
            took_s = sum(stream.work_s(self._dice) for _ in taken)
            self._at(self.now_s + took_s, partial(self._worked, stream, taken))

    def _worked(self, stream: Consumer, messages: list[int]) -> None:
        self.worked.update(messages)
        stream.done += len(messages)
        self._at(self.now_s + CALL_S, partial(self._acked, stream, messages))
        stream.busy -= 1
        self._work(stream)

    def _acked(self, stream: Consumer, messages: list[int]) -> None:
        stream.progress_s, stream.has_stalled = self.now_s, False
        for dispatcher, window in enumerate(stream.windows):
            gone = stream.held[dispatcher].intersection(messages)
            if not gone:
                continue
            stream.held[dispatcher] -= gone
            self._left -= len(gone)
            window.acked(len(gone), self._now_ns)
            if window.wants_backlog:
                together = sum(one.windows[dispatcher].size for one in self._streams)
                window.begin(len(self._ready[dispatcher]), together)
        stream.sizes.append(sum(window.size for window in stream.windows))
        self._serve()
