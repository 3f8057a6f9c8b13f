"""All servers of a configuration: the primary and the replicas of each shard, by each of its accounts."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from streamfrom.proxy.backends.health import GuestHealth, ReplicaHealth
from streamfrom.proxy.backends.shard import ShardRuntime


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streamfrom.proxy.backends.health import Probe
    from streamfrom.proxy.config.file import Config, Server, ShardConfig


class ShardServers:
    """The `ShardRuntime` objects of all servers.

    on_change: called with a primary whose trouble has begun or ended. A readonly account's is not
        told: what the engine does goes by the primary's own account.

    Attributes:
        primaries, replicas: by keyspace and shard, by the shards' own accounts.
        readonly_primaries, readonly_replicas: the same servers by the `readonly` accounts, of the
            shards that have one.
    """

    def __init__(self, config: Config, on_change: Callable[[ShardRuntime], None]) -> None:
        self.primaries: dict[tuple[str, str], ShardRuntime] = {}
        self.replicas: dict[tuple[str, str], tuple[ShardRuntime, ...]] = {}
        self.readonly_primaries: dict[tuple[str, str], ShardRuntime] = {}
        self.readonly_replicas: dict[tuple[str, str], tuple[ShardRuntime, ...]] = {}
        self._replica_health = health = ReplicaHealth(config.server.replica_max_lag_s)
        timeout_s = config.server.pool_timeout_s
        for name, shard in ((k.name, shard) for k in config.keyspaces for shard in k.shards):
            key = name, shard.name
            primary = ShardRuntime(name, shard, pool_timeout_s=timeout_s, on_change=on_change)
            replicas = replicas_of(name, shard, pool_timeout_s=timeout_s, health=health)
            self.primaries[key], self.replicas[key] = primary, replicas
            readonly = shard.as_readonly()
            if readonly is not None:
                self.readonly_primaries[key] = ShardRuntime(
                    name, readonly, pool_timeout_s=timeout_s, owner=primary
                )
                self.readonly_replicas[key] = replicas_of(
                    name,
                    readonly,
                    pool_timeout_s=timeout_s,
                    health=health,
                    owners=replicas,
                )

    def keep_limits(self, server: Server) -> None:
        """Have all servers keep to the limits of *server* from now on."""
        self._replica_health.lag_max_s = server.replica_max_lag_s
        for runtime in self:
            runtime.pool.timeout_s = server.pool_timeout_s

    def __iter__(self) -> Iterator[ShardRuntime]:
        """Yield every server, once for each of its accounts."""
        yield from self.primaries.values()
        yield from self.readonly_primaries.values()
        yield from chain(*self.replicas.values(), *self.readonly_replicas.values())


def replicas_of(
    keyspace: str,
    config: ShardConfig,
    *,
    pool_timeout_s: float,
    health: Probe,
    owners: Sequence[ShardRuntime] = (),
) -> tuple[ShardRuntime, ...]:
    """Return the replicas of a shard: like it, but what counts is how far they are behind.

    owners: the same replicas by the primary's account, where *config* is a readonly account's.
    """
    return tuple(
        ShardRuntime(
            keyspace,
            replace(config, primary=dsn),
            pool_timeout_s=pool_timeout_s,
            health=health if owner is None else GuestHealth(health, owner.control),
            owner=owner,
        )
        for dsn, owner in zip_longest(config.replicas, owners)
    )
