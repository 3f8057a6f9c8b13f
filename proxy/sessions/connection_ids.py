"""The ids of client connections, which `KILL` takes. Pure: random bits are passed in.

An id has the 32 bits of the protocol. The upper bits are the number of the member, by which the fleet finds the member with a
connection. The lower bits count connections, from a random number on. So an id names one client, whichever member it is given to.
Two proxies may have the same number if they have no directory in common.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final


MEMBER_BITS: Final = 10
NUMBER_BITS: Final = 32 - MEMBER_BITS


def prefix_of(connection_id: int) -> int:
    """Return the prefix of the proxy that has a connection."""
    return connection_id >> NUMBER_BITS


def first_of(prefix: int) -> int:
    """Return the smallest id with a prefix."""
    return prefix << NUMBER_BITS


class ConnectionIds:
    """The ids of one proxy. *member*: its number, from 1 on, so no id is 0; *dice*: random bits."""

    def __init__(self, member: int, dice: int) -> None:
        self.member: Final = member
        self._number = dice & (1 << NUMBER_BITS) - 1

    def allocate(self, in_use: Container[int]) -> int:
        """Return an id that is not *in_use*; one is reused only when all others have been used."""
        while True:
            self._number = self._number + 1 & (1 << NUMBER_BITS) - 1
            taken = self.member << NUMBER_BITS | self._number
            if taken not in in_use:
                return taken
