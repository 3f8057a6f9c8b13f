"""The limits that hold back due messages of one shard, and until when. Pure.

A gate lets as many through as it has room for; the narrowest one counts:

| gate              | why                                                  | it opens                                        |
|-------------------|------------------------------------------------------|-------------------------------------------------|
| pause             | `vt_paused`, or another member dispatches            | with the setting, or an election                |
|                   | (`dispatch.sending`)                                 |                                                 |
| `Trouble`         | the last claim failed                                | after 50 ms, doubling to 2 s                    |
| `InFlightLimit`   | `vt_max_in_flight` messages are in flight, or those  | with an ack, at the end of a lease, when a look |
|                   | of a former dispatcher have not been read yet        | finds one gone                                  |
| `RateLimit`       | `vt_max_rate`                                        | when the next one is earned                     |
| strict order      | the message before is not done (`order.key_order`)   | with its ack, or at the end of its lease        |

Nothing is sent either while no stream can take it (`dispatch.receivers`): each is full, has a busy socket, waits for more room, or
named other keys.

A single message waits, though others are sent, if its row is refused (`set_aside`), if it is locked (the
queue tries it again), if others of its key go first (`order.key_order`), if members of its group are not done
(`order.group_watch`), and for up to a second if it may go to another stream than the one that lost it (`streams.lost_messages`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.table_settings import RATE_UNIT


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.table_settings import Properties


DEPTH_NS: Final = 50 * 10**6
CLAIM_NS: Final = 50 * 10**6
_UNITS: Final = RATE_UNIT * 10**9


@dataclass(slots=True)
class RateLimit:
    """How many messages a second one shard may send with ``vt_max_rate``: a token bucket.

    Each shard has an equal share of the rate, because it has its own dispatcher. The bucket holds what the share allows in
    DEPTH_NS, or one message. While claims are under way it may hold what the share allows in CLAIM_NS more, so that the
    time of a claim is not lost. So in no second are more messages sent than 1.1 times the rate (below ten a second: one more
    than the rate), and in the long run never more than the rate. The bucket starts empty, because a dispatcher does not know what
    its predecessor has just sent. It counts in integers, so that nothing is lost by rounding: it gains the rate every
    nanosecond, and a message costs as many units as its share needs.

    rate: of all shards together, in millionths of a message a second.
    shards: how many share it.
    since_ns: until when the earned part is counted; None before it has begun.
    """

    rate: int
    shards: int
    since_ns: int | None = None
    _earned: int = 0

    def begin(self, now_ns: int) -> None:
        """Start empty: another process may have sent until now."""
        self.since_ns, self._earned = now_ns, 0

    def configure(self, rate: int, now_ns: int) -> None:
        """Apply a changed rate; the earned part stays, as far as it fits."""
        if rate != self.rate:
            self._earn(now_ns, 0)
            self.rate = rate

    def room(self, claimed: int, now_ns: int) -> int:
        """Return how many more may be sent now, while *claimed* ones are on their way."""
        self._earn(now_ns, claimed)
        return max(0, self._earned // self._cost - claimed)

    def next_ns(self, claimed: int, now_ns: int) -> int:
        """Return when the next one may be sent."""
        self._earn(now_ns, claimed)
        missing = (claimed + 1) * self._cost - self._earned
        return now_ns + max(0, -(-missing // self.rate))

    def sent(self, count: int, now_ns: int) -> None:
        """Count messages that were sent."""
        self._earn(now_ns, count)
        self._earned -= count * self._cost

    @property
    def _cost(self) -> int:
        return _UNITS * self.shards

    def _earn(self, now_ns: int, claimed: int) -> None:
        since_ns = now_ns if self.since_ns is None else self.since_ns
        earned = self._earned + self.rate * max(0, now_ns - since_ns)
        deepest = max(self._cost, self.rate * DEPTH_NS)
        if claimed:
            deepest += self.rate * CLAIM_NS
        self._earned = min(earned, deepest)
        self.since_ns = now_ns


# When a receiver has stalled this long, full, while messages are due, its messages are looked at, and again after as long.
# So are all messages in flight while the limit holds back due ones: acks may pass through a proxy outside the fleet.
STANDING_NS: Final = 250 * 10**6


@dataclass(slots=True)
class InFlightLimit:
    """How many messages of one shard may be in flight with ``vt_max_in_flight``.

    A message is *in flight* from its delivery until it is acked, deleted or rescheduled, or until it is due again.
    Each shard of a table has its own dispatcher, so each has a fixed share of the number: the sum can never be
    more, and dispatchers need not talk to each other. A new dispatcher reads from the rows what its predecessor has sent.

    at_most: the shard's share.
    is_known: the messages that a former dispatcher has in flight are known.
    reading: the job that reads them, while it is under way.
    look_ns: when to look at the messages in flight, if the limit holds the shard back until then; None if it does not.
    """

    at_most: int
    is_known: bool = False
    reading: object | None = None
    look_ns: int | None = None

    def begin(self) -> None:
        """Forget everything: another process may have dispatched the shard since."""
        self.is_known, self.reading, self.look_ns = False, None, None

    def room(self, in_flight: int) -> int:
        """Return how many more may be sent now."""
        room = max(0, self.at_most - in_flight)
        if room:
            self.look_ns = None
        return room

    def is_to_look(self, now_ns: int) -> bool:
        """Note that the shard is held back; return whether to look at the messages in flight."""
        is_late = self.look_ns is not None and self.look_ns <= now_ns
        if is_late or self.look_ns is None:
            self.look_ns = now_ns + STANDING_NS
        return is_late


def share(limit: int, shards: int, index: int) -> int:
    """Return the share of *limit* for the shard at *index*: the first ones get the remainder."""
    return limit // shards + (index < limit % shards)


@dataclass(slots=True)
class ShardGates:
    """The limits of one shard; None for those that its table does not have.

    load: returns how many messages streams hold, and how many are being claimed.
    strict: returns until when nothing can be sent if messages go one after the other; 0 for not at all.
    """

    load: Callable[[], tuple[int, int]]
    in_flight: InFlightLimit | None = None
    rate: RateLimit | None = None
    strict: Callable[[], int] | None = None

    def configure(
        self, properties: Properties, shards: int, index: int, now_ns: int | None
    ) -> None:
        """Apply the settings of a table with this many *shards*. now_ns: None before the first event."""
        limit = properties.max_in_flight
        at_most = limit and share(limit, shards, index)
        if at_most is None:
            self.in_flight = None
        elif self.in_flight is None:
            self.in_flight = InFlightLimit(at_most)
        else:
            self.in_flight.at_most = at_most
        if properties.max_rate is None:
            self.rate = None
        elif self.rate is None or now_ns is None:
            self.rate = RateLimit(properties.max_rate, shards, now_ns)
        else:
            self.rate.configure(properties.max_rate, now_ns)

    def begin(self, now_ns: int) -> None:
        """Forget everything: another process may have sent until now."""
        if self.in_flight is not None:
            self.in_flight.begin()
        if self.rate is not None:
            self.rate.begin(now_ns)

    def clock_set_back(self, now_ns: int) -> None:
        """Plan again what was planned by the former clock."""
        if self.rate is not None:
            self.rate.begin(now_ns)
        if self.in_flight is not None and self.in_flight.look_ns is not None:
            self.in_flight.look_ns = now_ns

    def first_stream(self, now_ns: int) -> None:
        """Start earning, unless that has begun."""
        if self.rate is not None and self.rate.since_ns is None:
            self.rate.begin(now_ns)

    def room(self, due: int, now_ns: int) -> int:
        """Return how many of *due* messages may be sent now."""
        if self.strict is not None:
            due = min(due, self.strict() <= now_ns)
        if self.in_flight is not None:
            due = min(due, self.in_flight.room(sum(self.load())))
        if self.rate is not None:
            due = min(due, self.rate.room(self.load()[1], now_ns))
        return due

    def is_closed(self, now_ns: int) -> bool:
        """Return whether nothing may be sent now, whatever is due, as far as is known."""
        is_known = self.in_flight is None or self.in_flight.is_known
        return is_known and not self.room(1, now_ns)

    def is_full(self) -> bool:
        """Return whether as many messages are in flight as may be."""
        limit = self.in_flight
        return limit is not None and not limit.room(sum(self.load()))

    def opens_ns(self, now_ns: int) -> int | None:
        """Return when rate and order let more messages through; None if they do so now."""
        if self.strict is not None and (closed_ns := self.strict()) > now_ns:
            return closed_ns
        if self.rate is not None:
            return max(now_ns, self.rate.next_ns(self.load()[1], now_ns))
        return None


RETRY_FIRST_NS: Final = 50 * 10**6
RETRY_LAST_NS: Final = 2 * 10**9
LAST_CHANCE_NS: Final = 500 * 10**6


@dataclass(slots=True)
class Trouble:
    """How long something has been failing without a break, and when it is tried again.

    since_ns: when the failures began; None while it works.
    failures: how many there were.
    retry_ns: the earliest next try.
    cause: why it failed last.
    """

    since_ns: int | None = None
    failures: int = 0
    retry_ns: int = 0
    cause: str = ""

    def failed(self, cause: str, now_ns: int, grace_ns: int) -> None:
        """Note a failure; the pause before the next try doubles, up to RETRY_LAST_NS."""
        if self.since_ns is None:
            self.since_ns = now_ns
        # The shift is bounded, as failures are not: 31 doublings are far beyond the maximum.
        doubled_ns = RETRY_FIRST_NS << min(self.failures, RETRY_LAST_NS.bit_length())
        self.retry_ns = now_ns + min(doubled_ns, RETRY_LAST_NS)
        # A shard that comes back shortly before the grace period ends must not be missed.
        last_chance_ns = self.since_ns + grace_ns - LAST_CHANCE_NS
        if now_ns < last_chance_ns < self.retry_ns:
            self.retry_ns = last_chance_ns
        self.failures += 1
        self.cause = cause

    def over(self) -> None:
        """Note that it works."""
        self.since_ns, self.failures, self.retry_ns = None, 0, 0
