"""The number of this process in its fleet, the least that no other member has.

It is a part of connection ids and of the ids that a proxy gives to messages, so no two members may have the same one: a unique
key of the directory on each primary sees to that.
"""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom import __version__
from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.lock_connection import (
    Numbers,
    NumberTaken,
    forget,
    numbers,
    publish,
    settings,
)
from streamfrom.engine.messaging.store.conversation import ServerRefused
from streamfrom.engine.messaging.table.message_ids import MEMBERS_MAX
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.lock_session import LockSession
from streamfrom.proxy.config.keyspaces import hash_of
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable


if TYPE_CHECKING:
    from collections.abc import Collection

    from streamfrom.proxy.config.file import Config
    from streamfrom.proxy.config.keyspaces import ShardConfig


# A start waits no longer for a server that does not answer.
TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class MemberNumber:
    """What a process is called in its fleet. name: 16 hexadecimal digits, drawn for it; number: from 1 to MEMBERS_MAX."""

    name: str
    number: int

    @classmethod
    def drawn(cls, locked: Collection[int] = ()) -> MemberNumber:
        """Return one of a process that no directory knows, if possible other than those *locked*."""
        return cls(_drawn_name(), random.SystemRandom().choice(_free((), locked)))


async def take_number(config: Config) -> MemberNumber:
    """Take the least number that is free on all shards of *config*, by a row in each directory.

    A shard that is away, or has no directory for this account, is passed over. Where all are, the number is drawn.

    Raises:
        ConfigError: every number is taken.
    """
    places = {
        (shard.primary.server, shard.primary.database): (keyspace.name, shard)
        for keyspace in config.keyspaces
        for shard in keyspace.shards
    }
    opening = [
        asyncio.ensure_future(_NumberPlace.open(*places[place])) for place in sorted(places)
    ]
    done, late = await asyncio.wait(opening, timeout=TIMEOUT_S)
    for each in late:
        each.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    # In one order for all members: of two processes that want one number, one meets the other at the first directory.
    found = [each.result() for each in opening if each in done]
    directories = [each for each in found if each is not None]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _take(config, directories)
    except TimeoutError:
        return MemberNumber.drawn()
    finally:
        for directory in directories:
            directory.session.close()


async def _take(config: Config, directories: list[_NumberPlace]) -> MemberNumber:
    name = _drawn_name()
    taken = {number for directory in directories for number in directory.numbers.taken}
    locked = {number for directory in directories for number in directory.numbers.locked}
    while directories:
        number = _free(taken, locked)[0]
        own = Member(
            name, config.fleet.name, "", "", number, __version__, hash_of(config.keyspaces)
        )
        with suppress(NumberTaken):
            for directory in list(directories):
                if not await directory.publish(own):
                    directories.remove(directory)
            if directories:
                return MemberNumber(name, number)
            break
        taken.add(number)
        for directory in directories:
            await directory.forget(name)
    return MemberNumber.drawn(locked)


def _free(taken: Collection[int], locked: Collection[int]) -> list[int]:
    """Return the numbers that no member has, in order. Those *locked* count only where no other is left. Raises ConfigError."""
    free = [number for number in range(1, MEMBERS_MAX + 1) if number not in taken]
    if not free:
        raise ConfigError(
            "",
            f"all {MEMBERS_MAX} numbers of members are taken in the directory, the database streamfrom, of these shards;"
            " the dispatcher frees those of members that have been gone for a minute",
        )
    return [number for number in free if number not in locked] or free


@dataclass(eq=False, slots=True)
class _NumberPlace:
    """The directory of one database, while a number is taken. numbers: those of its members."""

    database: str
    session: LockSession
    numbers: Numbers

    @classmethod
    async def open(cls, keyspace: str, shard: ShardConfig) -> _NumberPlace | None:
        """Return the directory of a shard; None where it is away."""
        database = shard.primary.database
        try:
            backend = await open_backend(
                keyspace,
                shard.name,
                shard.primary,
                database=None,
                program="streamfrom-election",
            )
            session = LockSession(backend, lambda: None)
            await session.converse(settings())
            found, _ = await session.converse(numbers(database))
        except (BackendUnavailable, BackendError, BackendLost, ServerRefused):
            return None
        return cls(database, session, found)

    async def publish(self, own: Member) -> bool:
        """Write the row of a member; False where it cannot be. Raises NumberTaken."""
        try:
            denied, _ = await self.session.converse(publish(self.database, own))
        except (BackendLost, ServerRefused):
            return False
        return denied is None

    async def forget(self, name: str) -> None:
        """Delete the row of a member."""
        with suppress(BackendLost, ServerRefused):
            await self.session.converse(forget(self.database, (name,)))


def _drawn_name() -> str:
    return os.urandom(8).hex()
