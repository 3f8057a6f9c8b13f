"""The memory that clients make the proxy hold, in bytes: one budget per connection, one per user. Pure.

Counted are commands that are incomplete, queued, or large and running; long data; prepared statements;
compressed bytes that wait; and replies that the client does not read. A small
command that runs at once is not counted, so a point SELECT costs nothing here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial


@dataclass(slots=True, eq=False)
class Memory:
    """One budget."""

    # Returns the current limit.
    _limit_bytes: Callable[[], int] = lambda: sys.maxsize
    _exceeded: Callable[[int], Exception] | None = None  # makes the error for an exceeded limit
    used_bytes: int = 0  # bytes held now
    _user: Memory | None = None

    def change(self, by_bytes: int, *, slack_bytes: int = 0) -> None:
        """Hold *by_bytes* more, or less if negative.

        slack_bytes: how far the connection may exceed its own limit; the user's limit has no slack.
        Raises the error from `exceeded`, without a change, if the connection or its user would exceed the limit.
        """
        used_bytes = self.used_bytes + by_bytes
        if by_bytes > 0 and used_bytes > self._limit_bytes() + slack_bytes:
            assert self._exceeded is not None
            raise self._exceeded(self._limit_bytes())
        if self._user is not None:
            self._user.change(by_bytes)
        self.used_bytes = used_bytes

    def belong_to(self, user: Memory | None) -> None:
        """Count for *user* from now on, including the bytes already held; None: for no user.

        The limit is not checked here, because a client that logs in holds next to nothing.
        """
        if self._user is not None:
            self._user.used_bytes -= self.used_bytes
        self._user = user
        if user is not None:
            user.used_bytes += self.used_bytes


def users_memory(
    limit_bytes: Callable[[], int], exceeded: Callable[[str, int], Exception]
) -> Callable[[str], Memory]:
    """Return a function from a user's name to that user's one budget of *limit_bytes*.

    exceeded: makes the error for an exceeded limit, from the name and the limit.
    """
    return cache(lambda user: Memory(limit_bytes, partial(exceeded, user)))
