"""The costly work of logins: the hashes of `$A$` accounts, the decryption of what comes without TLS.

The work is done in pieces, between which the loop serves all other clients. One login of an address has its turn at a
time, so a guesser delays the logins of its own address alone. ADDRESSES_AT_ONCE addresses have their turn at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Final, TypeVar


ADDRESSES_AT_ONCE: Final = 4

T = TypeVar("T")


class LoginWork:
    """The work of all logins of a proxy."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(ADDRESSES_AT_ONCE)
        # By address: its turn, and how many wait for it or have it.
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    def __len__(self) -> int:
        """Return how many addresses have work."""
        return len(self._turns)

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait until no other login of *address* has its turn; they come in their order."""
        lock, number = self._turns.get(address) or (asyncio.Lock(), 0)
        self._turns[address] = lock, number + 1
        try:
            async with lock:
                yield
        finally:
            lock, number = self._turns.pop(address)
            if number > 1:
                self._turns[address] = lock, number - 1

    async def done(self, pieces: Generator[None, None, T]) -> T:
        """Return what *pieces* return, once all of them are done."""
        async with self._places:
            while True:
                try:
                    next(pieces)
                except StopIteration as ended:
                    result: T = ended.value
                    return result
                await asyncio.sleep(0)
