"""The servers of all shards, as the current configuration names them, at the start and after each reload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.backends.shard import GONE, Probe, ReplicaHealth, ShardRuntime
from streamfrom.proxy.errors import KeyspaceRemoved, NoHealthyReplica


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.file import Config, Server
    from streamfrom.proxy.config.keyspaces import KeyspaceConfig, ShardConfig


# How often a server that is retired is looked at.
LENT_LOOK_S: Final = 0.05


class ServersOfShard(NamedTuple):
    """The servers of a shard, as a configuration names them."""

    config: ShardConfig
    primary: ShardRuntime
    replicas: tuple[ShardRuntime, ...]


class ShardServers:
    """The `ShardRuntime` objects of all servers.

    on_change: called with a primary whose trouble has begun or ended.
    """

    def __init__(self, config: Config, on_change: Callable[[ShardRuntime], None]) -> None:
        # By keyspace and shard.
        self.primaries: dict[tuple[str, str], ShardRuntime] = {}
        self.replicas: dict[tuple[str, str], tuple[ShardRuntime, ...]] = {}
        self._on_change = on_change
        self._replica_health = ReplicaHealth(config.server.replica_max_lag_s)
        self._pool_timeout_s = config.server.pool_timeout_s
        self.publish(self._servers_of(config.keyspaces))

    def _servers_of(
        self, keyspaces: Iterable[KeyspaceConfig]
    ) -> dict[tuple[str, str], ServersOfShard]:
        found = {}
        for name, shard in ((k.name, shard) for k in keyspaces for shard in k.shards):
            key, timeout_s = (name, shard.name), self._pool_timeout_s
            known = {replica.dsn: replica for replica in self.replicas.get(key, ())}
            found[key] = ServersOfShard(
                shard,
                self.primaries.get(key)
                or ShardRuntime(
                    name, shard, pool_timeout_s=timeout_s, on_change=self._on_change
                ),
                tuple(
                    known.get(dsn)
                    or replica_of(
                        name, shard, dsn, pool_timeout_s=timeout_s, health=self._replica_health
                    )
                    for dsn in shard.replicas
                ),
            )
        return found

    async def prepare(
        self, keyspaces: Iterable[KeyspaceConfig]
    ) -> Mapping[tuple[str, str], ServersOfShard]:
        """Return the servers of *keyspaces* for `publish`. A replica at another address, or of another account, is a new server.

        New primaries are there at once.
        """
        found, known = self._servers_of(keyspaces), set(self)
        servers = chain(*((each.primary, *each.replicas) for each in found.values()))
        await asyncio.gather(*(each.start() for each in servers if each not in known))
        self.primaries |= {key: each.primary for key, each in found.items()}
        return found

    def publish(self, found: Mapping[tuple[str, str], ServersOfShard]) -> list[ShardRuntime]:
        """Give shards the servers in *found* from now on; return the former replicas, for `stop_retired`.

        A primary whose address has changed switches to the server there.
        """
        gone: list[ShardRuntime] = []
        for key, (config, primary, replicas) in found.items():
            for replica in set(self.replicas.get(key, ())) - set(replicas):
                trouble = f"{replica.dsn}: {GONE}"
                replica.retire(partial(NoHealthyReplica, *key, trouble))
                gone.append(replica)
            self.primaries[key], self.replicas[key] = primary, replicas
            if primary.dsn != config.primary:
                primary.move(config.primary)
            for each in (primary, *replicas):
                each.keep_limits(config)
        return gone

    def of(self, keyspaces: Collection[str]) -> list[ShardRuntime]:
        """Return the servers of *keyspaces*."""
        return [each for each in self if each.keyspace in keyspaces]

    def remove(self, keyspaces: Collection[str]) -> list[ShardRuntime]:
        """Remove the servers of *keyspaces*; return them, for `stop_retired`."""
        gone = self.of(keyspaces)
        for server in gone:
            server.retire(partial(KeyspaceRemoved, server.keyspace))
            self.primaries.pop((server.keyspace, server.name), None)
            self.replicas.pop((server.keyspace, server.name), None)
        return gone

    def keep_limits(self, server: Server) -> None:
        """Apply the limits of *server* to all servers from now on."""
        self._replica_health.lag_max_s = server.replica_max_lag_s
        self._pool_timeout_s = server.pool_timeout_s
        for runtime in self:
            runtime.pool.timeout_s = server.pool_timeout_s

    def __iter__(self) -> Iterator[ShardRuntime]:
        """Yield every server."""
        yield from self.primaries.values()
        yield from chain(*self.replicas.values())


async def stop_retired(servers: Collection[ShardRuntime], within_s: float) -> None:
    """Stop servers that were retired once no session has a connection to them, or after *within_s*."""
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while any(server.pool.lent for server in servers):  # noqa: ASYNC110  (sessions end what they do)
                    await asyncio.sleep(LENT_LOOK_S)
    finally:
        await asyncio.gather(*(server.stop() for server in servers))


def replica_of(
    keyspace: str, config: ShardConfig, dsn: Dsn, *, pool_timeout_s: float, health: Probe
) -> ShardRuntime:
    """Return a replica of a shard: like its primary, but its health is its lag."""
    return ShardRuntime(
        keyspace, replace(config, primary=dsn), pool_timeout_s=pool_timeout_s, health=health
    )
