"""This process as a member of its fleet: who it says it is, and whose elections it takes part in."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.fleet import ElectedDatabase, Fleet
from streamfrom.proxy.backends.lock_session import LockSession


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamfrom.engine.fleet.peer_link import PeerTransport
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Config


def member_of_config(config: Config, name: str) -> Member:
    """Return this process as the directories shall know it. *name*: its id, 16 hexadecimal digits."""
    shards = [
        (keyspace.name, shard.name, str(shard.primary))
        for keyspace in config.keyspaces
        for shard in keyspace.shards
    ]
    try:
        product = version("streamfrom")
    except PackageNotFoundError:
        product = "unknown"
    return Member(
        id=name,
        fleet=config.fleet or "",
        address="",
        certificate="",
        id_prefix=0,
        version=product,
        configuration=hashlib.sha256(repr(shards).encode()).hexdigest(),
    )


def make_fleet(
    shards: Mapping[tuple[str, ShardName], ShardRuntime],
    member: Member,
    transport: PeerTransport | None,
) -> Fleet:
    """Return *member*'s part in the fleet of *shards*; those that are one database have one election."""
    same: dict[tuple[str, str], list[tuple[str, ShardName]]] = defaultdict(list)
    for key, runtime in shards.items():
        same[runtime.dsn.server, runtime.database].append(key)
    databases = [
        ElectedDatabase(tuple(keys), database, partial(_open, shards[keys[0]]))
        for (_, database), keys in same.items()
    ]
    return Fleet(member, databases, transport, time.monotonic_ns)


async def _open(runtime: ShardRuntime, on_lost: Callable[[], None]) -> LockSession:
    backend = await runtime.open_backend(runtime.database, 0)
    return LockSession(backend, on_lost)
