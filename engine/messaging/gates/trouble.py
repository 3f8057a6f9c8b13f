"""How long something has been failing without a break, and when it is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


RETRY_FIRST_NS: Final = 50 * 10**6
RETRY_LAST_NS: Final = 2 * 10**9
LAST_CHANCE_NS: Final = 500 * 10**6


@dataclass(slots=True)
class Trouble:
    """What fails, since its first failure.

    since_ns: when that was; None while it works.
    failures: how many there were.
    retry_ns: not before it is tried again.
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
        # A shard that comes back shortly before the grace ends must not be missed.
        last_chance_ns = self.since_ns + grace_ns - LAST_CHANCE_NS
        if now_ns < last_chance_ns < self.retry_ns:
            self.retry_ns = last_chance_ns
        self.failures += 1
        self.cause = cause

    def over(self) -> None:
        """Note that it works."""
        self.since_ns, self.failures, self.retry_ns = None, 0, 0
