"""A function that processes the messages of one queue, and how it is called."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from .message import Message
from .outcomes import Outcome, Park, Result, Retry


Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Handler:
    """A function and its checked options from `Worker.queue`.

    batch: the maximum number of messages in a call's list; None to pass a single message instead of a list.
    heartbeat_s: seconds between two extensions of a lease; None for a third of the queue's `ack_wait`.
    """

    queue: str
    function: Function
    concurrency: int = 1
    prefetch: int | None = None
    batch: int | None = None
    columns: Sequence[str] | None = None
    json: Sequence[str] | None = None
    heartbeat_s: float | None = None
    retry: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        """Check the numeric options."""
        for name in ("concurrency", "prefetch", "batch"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(
                    f"{name} of queue {self.queue} must be at least 1, not {value!r}"
                )
        if self.heartbeat_s is not None and self.heartbeat_s <= 0:
            raise ValueError(f"heartbeat of queue {self.queue} must be more than 0 seconds")

    @property
    def prefetched(self) -> int:
        """How many messages a worker holds at most: all that it can process at once, or `prefetch` if that is more."""
        least = self.concurrency * (self.batch or 1)
        return max(self.prefetch or least, least)

    async def call(self, messages: Sequence[Message], threads: Executor) -> list[Result]:
        """Call the function with *messages* and return their results. A function that is no coroutine runs in a thread.

        With `batch`, an error applies to all messages of the call. If cancelled, the results are RETURNED.
        """
        given: Any = messages[0] if self.batch is None else list(messages)
        started_s = time.monotonic()
        error: BaseException | None = None
        outcome = Outcome.ACKED
        try:
            if inspect.iscoroutinefunction(self.function):
                await self.function(given)
            else:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(threads, partial(self.function, given))
        except asyncio.CancelledError:
            outcome = Outcome.RETURNED
        except Park as raised:
            error, outcome = raised, Outcome.PARKED
        except Exception as raised:  # noqa: BLE001 - any error of the user's function
            error, outcome = raised, Outcome.RETRIED
        seconds = time.monotonic() - started_s
        return [self.result(one, outcome, seconds, error) for one in messages]

    def result(
        self,
        message: Message,
        outcome: Outcome,
        seconds: float,
        error: BaseException | None = None,
    ) -> Result:
        """Return the result of one message, with `retry_after` from the error or the `retry` option."""
        after: float | None = None
        if outcome is Outcome.RETRIED:
            if isinstance(error, Retry) and error.after is not None:
                after = error.after
            elif self.retry is not None:
                after = self.retry(message.delivery)
        told = message.queue, message.id, message.delivery, outcome, seconds, error, after
        return Result(*told, is_written=outcome is Outcome.ACKED and message.is_acknowledged)
