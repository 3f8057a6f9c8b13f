"""How many rows may be on their way from the dispatcher to another member, and what became of them.

Rows of a stream are numbered in the order in which they are sent. The member that has the client reports how many
its socket has taken, always as the total, so a report that is lost, doubled or late does no harm.
What is sent and not reported is *away*; more is sent only while that is below WINDOW_BYTES. So a
consumer that stands still holds back its own rows and no others, as the flow control of HTTP/2 does for
bytes, but by what the client took and not by what some buffer took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import EngineError


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClaimedRow


# Small rows of a millisecond or two of a fast consumer; a large row goes alone.
WINDOW_BYTES: Final = 256 << 10
# A row's share of its message besides the bytes that the client gets.
ROW_BYTES: Final = 64


class RowsMissing(EngineError):
    """Rows of a stream between members were lost on the way, so the stream begins again."""


class RowsAway:
    """The dispatcher's side of one stream."""

    def __init__(self, window_bytes: int = WINDOW_BYTES) -> None:
        self._window_bytes = window_bytes
        self._rows: deque[ClaimedRow] = deque()
        self._bytes = 0
        self._taken = 0

    @property
    def has_credit(self) -> bool:
        """True while more may be sent; the last batch may go beyond the window."""
        return self._bytes < self._window_bytes

    def send(self, rows: Sequence[ClaimedRow]) -> int:
        """Count *rows* as away and return the number of the first one."""
        first = self._taken + len(self._rows)
        self._rows += rows
        self._bytes += sum(_size(row.payload) for row in rows)
        return first

    def reported(self, taken: int) -> bool:
        """Take in how many rows the client's socket has taken; return whether there is credit again.

        Raises:
            RowsMissing: it has taken more than it was sent.
        """
        if taken > self._taken + len(self._rows):
            raise RowsMissing("a member reports rows that it was not sent")
        had_credit = self.has_credit
        while self._taken < taken:
            self._bytes -= _size(self._rows.popleft().payload)
            self._taken += 1
        return self.has_credit and not had_credit

    def unsent(self, taken: int) -> tuple[ClaimedRow, ...]:
        """Return the rows that the client never got, by the last report of a stream that is over.

        Raises:
            RowsMissing: as `reported`.
        """
        self.reported(taken)
        return tuple(self._rows)


class RowsHere:
    """The side of the member that has the client.

    received: how many rows have come.
    """

    def __init__(self, window_bytes: int = WINDOW_BYTES) -> None:
        self._report_bytes = window_bytes // 4
        self._unreported = 0
        self.received = 0

    def receive(self, first: int, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """Return those of *payloads* that are new. first: the number of their first row.

        Raises:
            RowsMissing: rows before it never came.
        """
        if first > self.received:
            raise RowsMissing("rows of a stream were lost between two members")
        rows = payloads[self.received - first :]
        self.received += len(rows)
        self._unreported += sum(map(_size, rows))
        return rows

    def report(self) -> int | None:
        """Note that all was taken; return the total to report once that is a quarter of the window."""
        if self._unreported < self._report_bytes:
            return None
        self._unreported = 0
        return self.received


def _size(payload: bytes) -> int:
    return len(payload) + ROW_BYTES
