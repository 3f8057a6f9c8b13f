"""The outcomes of processing a message, and the exceptions with which a function chooses one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """The outcome of processing a message."""

    ACKED = "acked"  # the function returned
    RETRIED = "retried"  # it raised: the message will be redelivered
    PARKED = "parked"  # it raised Park, or the message cannot be decoded: the message stays in the table, undelivered
    RETURNED = "returned"  # the worker stopped first: another worker gets the message at once


class Retry(Exception):
    """Raise this to have the message redelivered.

    after: seconds until the message is ready again; None for the queue's backoff.
    why: the text for `last_error`.
    """

    def __init__(self, why: str = "", *, after: float | None = None) -> None:
        if after is not None and after < 0:
            raise ValueError(f"after must be at least 0 seconds, not {after}")
        super().__init__(why)
        self.why = why
        self.after = after


class Park(Exception):
    """Raise this to park the message: it stays in the table and is not delivered again.

    why: the text for `last_error`.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Result:
    """The result of processing one message, for hooks: logs, metrics, traces.

    seconds: how long the function ran.
    error: the exception that it raised, if any.
    retry_after: seconds until a retried message is ready again.
    is_written: whether the function acknowledged the message itself.
    """

    queue: str
    id: Any
    delivery: int
    outcome: Outcome
    seconds: float
    error: BaseException | None = None
    retry_after: float | None = None
    is_written: bool = False
