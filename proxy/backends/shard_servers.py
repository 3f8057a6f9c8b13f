"""All servers of a configuration: the primary and the replicas of each shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from streamfrom.proxy.backends.health import Probe, ReplicaHealth
from streamfrom.proxy.backends.shard import ShardRuntime


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import Config, Server, ShardConfig


class ShardServers:
    """The `ShardRuntime` objects of all servers.

    on_change: called with a primary whose trouble has begun or ended.

    Attributes:
        primaries, replicas: by keyspace and shard.
    """

    def __init__(self, config: Config, on_change: Callable[[ShardRuntime], None]) -> None:
        self.primaries: dict[tuple[str, str], ShardRuntime] = {}
        self.replicas: dict[tuple[str, str], tuple[ShardRuntime, ...]] = {}
        self._replica_health = health = ReplicaHealth(config.server.replica_max_lag_s)
        timeout_s = config.server.pool_timeout_s
        for name, shard in ((k.name, shard) for k in config.keyspaces for shard in k.shards):
            key = name, shard.name
            self.primaries[key] = ShardRuntime(
                name, shard, pool_timeout_s=timeout_s, on_change=on_change
            )
            self.replicas[key] = replicas_of(
                name, shard, pool_timeout_s=timeout_s, health=health
            )

    def keep_limits(self, server: Server) -> None:
        """Have all servers keep to the limits of *server* from now on."""
        self._replica_health.lag_max_s = server.replica_max_lag_s
        for runtime in self:
            runtime.pool.timeout_s = server.pool_timeout_s

    def __iter__(self) -> Iterator[ShardRuntime]:
        """Yield every server."""
        yield from self.primaries.values()
        yield from chain(*self.replicas.values())


def replicas_of(
    keyspace: str, config: ShardConfig, *, pool_timeout_s: float, health: Probe
) -> tuple[ShardRuntime, ...]:
    """Return the replicas of a shard: like it, but what counts is how far they are behind."""
    return tuple(
        ShardRuntime(
            keyspace, replace(config, primary=dsn), pool_timeout_s=pool_timeout_s, health=health
        )
        for dsn in config.replicas
    )
