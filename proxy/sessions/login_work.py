"""The costly work of logins: the hashes of `$A$` accounts, the decryption of passwords sent without TLS.

The work is done in pieces, between which the loop serves all other clients. One login of an address has its turn at a
time, so a guesser delays only the logins of its own address. ADDRESSES_AT_ONCE addresses have their turn at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import nullcontext
from typing import Final, TypeVar
from weakref import WeakValueDictionary


ADDRESSES_AT_ONCE: Final = 4

T = TypeVar("T")


class LoginWork:
    """The work of all logins of a proxy."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(ADDRESSES_AT_ONCE)
        # By address: its turn, as long as one login has it or waits for it.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        """Return how many addresses have work."""
        return len(self._turns)

    async def judged(
        self,
        address: str,
        pieces: Generator[None, None, T],
        turn_s: Callable[[], float],
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        is_costly: bool = True,
    ) -> T:
        """Return the result of *pieces*, after a *wait* of *turn_s* seconds.

        is_costly: *turn_s* is called, and the work done, while no other login of *address* has its turn; they come in their order.
        """
        turn = self._turns.setdefault(address, asyncio.Lock()) if is_costly else nullcontext()
        async with turn:
            if not (wait_s := turn_s()):
                return await self.done(pieces)
        await wait(wait_s)
        async with turn:
            return await self.done(pieces)

    async def done(self, pieces: Generator[None, None, T]) -> T:
        """Return the result of *pieces*, once all of them are done."""
        async with self._places:
            while True:
                try:
                    next(pieces)
                except StopIteration as ended:
                    result: T = ended.value
                    return result
                await asyncio.sleep(0)
