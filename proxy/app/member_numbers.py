"""Which numbers the members of a fleet have, by the table in which they publish them.

A number is a part of connection ids, and of the ids that a proxy gives to messages: two members must not have the same one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.errors import BackendError, BackendUnavailable


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import Config
    from streamfrom.proxy.config.keyspaces import ShardConfig


# A start waits no longer for a server that does not answer.
TIMEOUT_S: Final = 2.0

_NUMBERS: Final = "SELECT id_prefix FROM streamfrom_members"


async def numbers_in_use(config: Config) -> frozenset[int]:
    """Return the numbers that members published on any shard of *config*.

    A shard that is away, or has no table yet, or none for this account, is passed over.
    """
    asking = [
        asyncio.ensure_future(_numbers(keyspace.name, shard))
        for keyspace in config.keyspaces
        for shard in keyspace.shards
    ]
    done, late = await asyncio.wait(asking, timeout=TIMEOUT_S)
    for each in late:
        each.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    return frozenset(number for each in done for number in each.result())


async def _numbers(keyspace: str, shard: ShardConfig) -> list[int]:
    control = Control(keyspace, shard.name, shard.primary)
    try:
        rows = await control.rows(_NUMBERS)
    except (BackendUnavailable, BackendError):
        return []
    finally:
        await control.close()
    return [int(number) for (number,) in rows]
