"""How many unacked messages a stream with prefetch `auto` holds: a window, whose size is found by trial. Pure.

A consumer does not report whether it works on one message at a time or on eight, nor how long each takes. Only its acks show it.

**The floor** is the number of acks in the last half second, at most FLOOR_MAX. A consumer that never holds less has half
a second of work, so a fast one never waits for the next message, and a slow one holds no more than it needs.

**The base** is for work that takes longer. It starts at FIRST and is tried in both directions, in *rounds* of a window's acks,
at least ROUND_MIN. If the backlog is at least twice the windows of all streams together, a round is tried with twice the base, which
is kept if the rate of acks rises by a third. Equally often a round is tried with half the base, which is kept unless the rate falls
by a quarter. A failed trial is repeated after 2, 4, 8, … PAUSE_MAX rounds. A round in which the stream was given less than it had
room for shows nothing about its consumer, and starts again.

**Several dispatchers** of one stream, on several members, have a window each for the messages they send (*is_part*). They start
with 1, and keep a trial at other rates.

**A new dispatcher** starts with the messages that the stream still holds. If the floor turns out to explain these, the base starts
from FIRST.

A stream that loses a lease without progress has a window of 1 until its next ack.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple


FIRST: Final = 2
# For command-line clients, so that a person who watches sees messages come.
FIRST_WATCHED: Final = 100
FLOOR_NS: Final = 500 * 10**6
FLOOR_MAX: Final = 1000
ROUND_MIN: Final = 8
PAUSE_FIRST: Final = 2
PAUSE_MAX: Final = 64
RATE_ROUNDS: Final = 8
# The largest base: as many messages as the consumer with the most threads works on.
BASE_MAX: Final = 1 << 14
# The floor is counted in this many parts of its time.
_PARTS: Final = 8


class KeptAt(NamedTuple):
    """The change of the ack rate at which a trial with twice the base, and with half of it, is kept."""

    up: float
    down: float


ALONE: Final = KeptAt(4 / 3, 3 / 4)
# A larger part of the messages that a worker holds gets more of its acks, though it works no faster: 4/3 if two dispatchers
# send to it. With as many threads as it holds messages it is 2.
OF_A_PART: Final = KeptAt(1.75, 0.57)


@dataclass(slots=True)
class _Trials:
    """When to try one direction again, in rounds."""

    pause: int = 0
    left: int = 0

    def over(self, *, is_kept: bool) -> None:
        """Note how a trial ended."""
        self.pause = 0 if is_kept else min(PAUSE_MAX, 2 * self.pause or PAUSE_FIRST)
        self.left = self.pause


class PrefetchWindow:
    """The window of one stream.

    size: how many messages the stream may hold.
    is_part: other dispatchers send to the stream as well, each with its own window.
    wants_backlog: a round is over, and `begin` must decide whether a trial may follow.
    """

    def __init__(
        self,
        now_ns: int,
        *,
        first: int = FIRST,
        lease_delay_ns: int = 0,
        is_part: bool = False,
    ) -> None:
        """Begin. lease_delay_ns: how long after delivery a lease is written; the floor alone must not make messages wait so long."""
        self.is_part = is_part
        self._first = first
        self._base = self._base_first
        self._factor = 1.0  # of the base, in this round
        self._floor_ns = min(FLOOR_NS, lease_delay_ns // 2) or FLOOR_NS
        self._floor = 0
        self._parts: deque[list[int]] = deque()  # the part of the time, and its number of acks
        self._is_lost = False
        self._taken_over = 0  # how many messages set the base, unless the floor explains them
        self._pause_up, self._pause_down = _Trials(), _Trials()
        self._up_is_next = True
        self._acks = 0
        self._skip = 1  # a round begins and ends with an ack
        self._since_ns = now_ns
        self._rate: float | None = None  # of the last rounds without a trial
        self._rounds = 0
        self.wants_backlog = False
        self.size = first
        self._resize()

    def shared(self, *, is_part: bool) -> None:
        """Note whether other dispatchers send to the stream as well. A window that is now the only one starts afresh."""
        if self.is_part and not is_part:
            self._base = max(self._base, self._first)
        self.is_part = is_part
        self._resize()

    def took_over(self, held: int) -> None:
        """Continue with the window that a former dispatcher found and filled with the *held* messages."""
        if held > self._base:
            self._base = self._taken_over = min(BASE_MAX, held)
            self.starved()  # a round under way shows nothing about this dispatcher

    def acked(self, count: int, now_ns: int) -> None:
        """Count *count* messages as acked, deleted or rescheduled."""
        part = now_ns * _PARTS // self._floor_ns
        parts = self._parts
        if parts and parts[-1][0] == part:
            parts[-1][1] += count
        else:
            parts.append([part, count])
        self._floor += count
        self._expire(part)
        self._is_lost = False
        if 0 < self._taken_over <= 2 * self._floor:
            self._base, self._taken_over = self._base_first, 0
        if self._skip > 0:
            self._skip -= count
            if self._skip <= 0:
                self._since_ns, self._acks = now_ns, 0
        else:
            self._acks += count
            if self._acks >= max(ROUND_MIN, self.size):
                self._end_round(now_ns)
        self._resize()

    def passed(self, now_ns: int) -> None:
        """Drop acks that are older than the floor's time."""
        if self._parts:
            self._expire(now_ns * _PARTS // self._floor_ns)
            self._resize()

    def starved(self) -> None:
        """Note that the stream was given less than it had room for, so its rate of acks shows nothing about its window."""
        self._rate, self._rounds, self._factor, self._skip = None, 0, 1.0, 1
        self.wants_backlog = False
        self._resize()

    def lost(self) -> None:
        """Note that a lease ended while the stream made no progress."""
        self.starved()
        self._is_lost = True
        self._resize()

    def clock_set_back(self) -> None:
        """Forget the times of acks: by the new clock they are in the future."""
        self._parts.clear()
        self._floor = 0
        self.starved()

    def begin(self, backlog: int, windows: int) -> None:
        """Begin the next round, with a trial if it is time for one.

        backlog: how many messages are ready. windows: how many all streams of the queue may hold together.
        """
        self.wants_backlog = False
        is_up = self._pause_up.left <= 0 and backlog >= 2 * windows
        # Within the floor another base changes nothing.
        is_up = is_up and self._floor < 2 * self._base <= BASE_MAX
        is_down = self._pause_down.left <= 0 and self._base > self._least
        if is_up and (self._up_is_next or not is_down):
            self._try(2.0)
        elif is_down:
            self._try(0.5)

    def _try(self, factor: float) -> None:
        """Continue with another factor of the base. The messages held by then show nothing about it."""
        before = self.size
        self._factor = factor
        self._up_is_next = factor < 1
        self._resize()
        self._skip = max(before, self.size)

    def _end_round(self, now_ns: int) -> None:
        rate = self._acks / max(1, now_ns - self._since_ns)
        self._since_ns, self._acks = now_ns, 0
        for trials in (self._pause_up, self._pause_down):
            trials.left -= 1
        if self._factor == 1.0 or self._rate is None:
            # The mean of the last rounds with this base, weighted towards the later ones.
            weight = 1 / min(self._rounds + 1, RATE_ROUNDS)
            self._rate = (
                rate if self._rate is None else (1 - weight) * self._rate + weight * rate
            )
            self._rounds += 1
            self.wants_backlog = True
            return
        is_up = self._factor > 1
        rules = OF_A_PART if self.is_part else ALONE
        is_kept = rate >= (rules.up if is_up else rules.down) * self._rate
        (self._pause_up if is_up else self._pause_down).over(is_kept=is_kept)
        if is_kept:
            self._base = max(self._least, int(self._base * self._factor))
            self._rate, self._rounds, self._factor = rate, 1, 1.0
            self.wants_backlog = True
        else:
            self._try(1.0)

    @property
    def _least(self) -> int:
        return 1 if self.is_part else FIRST

    @property
    def _base_first(self) -> int:
        return max(self._least, self._first // 2 if self.is_part else self._first)

    def _expire(self, part: int) -> None:
        parts = self._parts
        while parts and parts[0][0] <= part - _PARTS:
            self._floor -= parts.popleft()[1]

    def _resize(self) -> None:
        if self._is_lost:
            self.size = 1
        else:
            base = self._base if self._factor == 1.0 else max(1, int(self._base * self._factor))
            self.size = max(base, min(self._floor, FLOOR_MAX))
