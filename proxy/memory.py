"""The memory that clients make the proxy hold, in bytes: one budget a connection, one a user. Pure.

These are counted: commands that are incomplete, wait for their turn, or are large and run; long data;
prepared statements; compressed bytes that wait; answers that the client does not read. A small
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

    # Returns what may be held at most, at this moment.
    _limit_bytes: Callable[[], int] = lambda: sys.maxsize
    _exceeded: Callable[[int], Exception] | None = None  # makes the error that says so
    used_bytes: int = 0  # what is held now
    _user: Memory | None = None

    def change(self, by_bytes: int, *, slack_bytes: int = 0) -> None:
        """Hold *by_bytes* more, or less where that is negative.

        slack_bytes: how far the connection may exceed its own limit; the user's limit has no slack.
        Raises what `exceeded` makes if the connection or its user would exceed the limit; nothing has changed then.
        """
        used_bytes = self.used_bytes + by_bytes
        if by_bytes > 0 and used_bytes > self._limit_bytes() + slack_bytes:
            assert self._exceeded is not None
            raise self._exceeded(self._limit_bytes())
        if self._user is not None:
            self._user.change(by_bytes)
        self.used_bytes = used_bytes

    def belong_to(self, user: Memory | None) -> None:
        """Count for *user* from now on, what is held already included; None: for no user.

        Nothing is refused here: who logs in holds next to nothing.
        """
        if self._user is not None:
            self._user.used_bytes -= self.used_bytes
        self._user = user
        if user is not None:
            user.used_bytes += self.used_bytes


def users_memory(
    limit_bytes: Callable[[], int], exceeded: Callable[[str, int], Exception]
) -> Callable[[str], Memory]:
    """Return what gives each user, by name, one budget of *limit_bytes*, always the same.

    exceeded: makes the error that says so, from the name and the limit.
    """
    return cache(lambda user: Memory(limit_bytes, partial(exceeded, user)))
