"""The ids of client connections, which `KILL` takes. Pure: the dice are the caller's.

An id has the 32 bits of the protocol. The upper bits are the number of the member, by which the fleet finds who has a
connection. A member draws its number at random when it starts, from those that no other member has published. The
lower bits count connections, from a random number on. So an id names one client, whichever member it is given to.
Two proxies may draw the same number if they are of no fleet, or start within the same second. With a thousand clients
each, an id of one proxy then names a client of the other with a chance of one in four million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from collections.abc import Callable, Container


MEMBER_BITS: Final = 10
NUMBER_BITS: Final = 32 - MEMBER_BITS
DRAWS_MAX: Final = 100_000


def prefix_of(connection_id: int) -> int:
    """Return the prefix of the proxy that has a connection."""
    return connection_id >> NUMBER_BITS


def first_of(prefix: int) -> int:
    """Return the smallest id with a prefix."""
    return prefix << NUMBER_BITS


def draw(dice: Callable[[], int], is_free: Callable[[int], bool]) -> ConnectionIds:
    """Return the ids of a member whose number *is_free*, or any where none was found in DRAWS_MAX throws of *dice*."""
    ids = ConnectionIds(dice())
    for _ in range(DRAWS_MAX):
        if is_free(ids.member):
            break
        ids = ConnectionIds(dice())
    return ids


class ConnectionIds:
    """The ids of one proxy. *dice*: 32 random bits.

    Attributes:
        member: the number of this proxy, from 1 on.
    """

    def __init__(self, dice: int) -> None:
        # Never 0, so that no id is.
        self.member = dice >> NUMBER_BITS & (1 << MEMBER_BITS) - 1 or 1
        self._number = dice & (1 << NUMBER_BITS) - 1

    def allocate(self, in_use: Container[int]) -> int:
        """Return an id that is not *in_use*; one is given again only when all others have been."""
        while True:
            self._number = self._number + 1 & (1 << NUMBER_BITS) - 1
            taken = self.member << NUMBER_BITS | self._number
            if taken not in in_use:
                return taken
