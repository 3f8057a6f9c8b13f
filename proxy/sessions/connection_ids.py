"""The ids of client connections, which `KILL` takes. Pure: the dice are the caller's.

An id has the 32 bits of the protocol. The upper ones are the proxy's own, drawn at random when it
starts; the lower ones count from a random place. So an id that a client was told by one proxy, and
gives to another one through a load balancer, names nobody there: with MEMBER_BITS and a thousand
clients the chance that it does is one in four million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from collections.abc import Container


MEMBER_BITS: Final = 10
NUMBER_BITS: Final = 32 - MEMBER_BITS


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
