"""How work on a message ends, and what a function raises to choose it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """How work on a message ended."""

    ACKED = "acked"  # the function returned
    RETRIED = "retried"  # it raised: the message comes again later
    PARKED = "parked"  # it raised Park, or the message cannot be decoded: it stays in the table, undelivered
    RETURNED = "returned"  # the worker stopped first: another one gets the message at once


class Retry(Exception):
    """Raise it to have the message delivered again.

    after: seconds from now; None for the queue's own backoff.
    why: what `last_error` shows.
    """

    def __init__(self, why: str = "", *, after: float | None = None) -> None:
        if after is not None and after < 0:
            raise ValueError(f"after must be at least 0 seconds, not {after}")
        super().__init__(why)
        self.why = why
        self.after = after


class Park(Exception):
    """Raise it to set the message aside for good: it stays in the table and is not delivered again.

    why: what `last_error` shows.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Result:
    """What became of one message, for hooks: logs, metrics, traces.

    seconds: how long the function ran.
    error: what it raised, if it did.
    retry_after: seconds until the message is ready again, of a retry.
    is_written: the function acknowledged the message itself.
    """

    queue: str
    id: Any
    delivery: int
    outcome: Outcome
    seconds: float
    error: BaseException | None = None
    retry_after: float | None = None
    is_written: bool = False
