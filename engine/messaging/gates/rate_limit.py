"""How many messages a second one shard may send, where ``vt_max_rate`` says so: a token bucket. Pure.

Each shard has an equal share of the rate, as it is dispatched by itself. The bucket holds what the share allows in
DEPTH_NS, or one message. While claims are under way it may hold what the share allows in CLAIM_NS more, so that the
time of a claim is not lost. So in no second are more messages sent than 1.1 times the rate (below ten a second: one more
than the rate), and in the long run never more than the rate. The bucket begins empty, as a dispatcher does not know what
the one before it has just sent.

The bucket counts in integers, so that nothing is lost by rounding. It gains the rate, in millionths of a message a
second, every nanosecond, and a message costs as many units as its share needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamfrom.engine.messaging.table.table_settings import RATE_UNIT


DEPTH_NS: Final = 50 * 10**6
CLAIM_NS: Final = 50 * 10**6
_UNITS: Final = RATE_UNIT * 10**9


@dataclass(slots=True)
class RateLimit:
    """The bucket of one shard.

    rate: of all shards together, in millionths of a message a second.
    shards: how many share it.
    since_ns: until when what was earned is counted; None before it has begun.
    """

    rate: int
    shards: int
    since_ns: int | None = None
    _earned: int = 0

    def begin(self, now_ns: int) -> None:
        """Begin with nothing: another process may have sent until now."""
        self.since_ns, self._earned = now_ns, 0

    def configure(self, rate: int, now_ns: int) -> None:
        """Follow a changed rate; what was earned before stays, as far as it fits."""
        if rate != self.rate:
            self._earn(now_ns, 0)
            self.rate = rate

    def room(self, claimed: int, now_ns: int) -> int:
        """Return how many more may be sent now, when *claimed* ones are on their way."""
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
