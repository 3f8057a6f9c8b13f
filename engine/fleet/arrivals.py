"""In which order the rows of one stream came from its dispatchers, and how far its consumer has come. Pure.

The member that has the client keeps it (`engine.messaging.streams.stream_order` says what for). A dispatcher reports progress by the
row that its delivery began with. What came before that delivery is overtaken, whichever dispatcher sent it; so each other one learns
how many of its rows had come by then.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple


# Of a stream that makes no progress so many deliveries are remembered.
ARRIVALS_MAX: Final = 10_000


class _Arrival(NamedTuple):
    """Rows that came together: the first and the one after the last, counted by dispatcher."""

    dispatcher: str
    first: int
    end: int


class Arrivals:
    """The deliveries of one stream that its consumer has not passed by, as far as several dispatch to it."""

    def __init__(self) -> None:
        self._came: dict[str, int] = {}  # how many rows, by dispatcher
        self._passed: dict[str, int] = {}
        self._ahead: deque[_Arrival] = deque()

    def joined(self, dispatcher: str) -> None:
        """Count the rows of a dispatcher from now on."""
        self.left(dispatcher)
        self._came[dispatcher] = self._passed[dispatcher] = 0

    def left(self, dispatcher: str) -> None:
        """Forget a dispatcher."""
        self._came.pop(dispatcher, None)
        self._passed.pop(dispatcher, None)
        self._ahead = deque(one for one in self._ahead if one.dispatcher != dispatcher)

    def came(self, dispatcher: str, rows: int) -> None:
        """Note that *rows* came from a dispatcher that has joined."""
        first = self._came[dispatcher]
        self._came[dispatcher] = first + rows
        if len(self._came) == 1:
            # A member that dispatches alone knows the order.
            self._passed[dispatcher] = first + rows
            self._ahead.clear()
            return
        self._ahead.append(_Arrival(dispatcher, first, first + rows))
        if len(self._ahead) > ARRIVALS_MAX:
            self._pass()

    def progressed(self, dispatcher: str, row: int) -> dict[str, int]:
        """Note progress in the delivery that began with *row*; return how many rows of each other one were passed by."""
        if self._passed.get(dispatcher, row) <= row < self._came.get(dispatcher, 0):
            while self._ahead[0].dispatcher != dispatcher or self._ahead[0].end <= row:
                self._pass()
        return {one: rows for one, rows in self._passed.items() if one != dispatcher}

    def _pass(self) -> None:
        passed = self._ahead.popleft()
        self._passed[passed.dispatcher] = passed.end
