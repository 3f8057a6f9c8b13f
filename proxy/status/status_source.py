"""Gathers what the tables of the schema `streamfrom` are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.engine.errors import TableLoadError
from streamfrom.proxy.status.status_rows import (
    MemberStatus,
    ShardStatus,
    StatusRow,
    member_rows,
    queue_rows,
    shard_rows,
    stream_rows,
)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamfrom.engine.messaging.clock import Clock
    from streamfrom.engine.messaging.figures import QueueFigures, StreamFigures
    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.engine.messaging.watch import Watch
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.local_statements.show_processlist import Process


@dataclass(frozen=True, slots=True)
class StatusSource:
    """What one process knows.

    shards: the primaries, by the names of keyspace and shard.
    member: returns what this process says of itself.
    dispatches: whether this process sends the messages of a shard of a keyspace.
    """

    watch: Watch
    registry: Registry
    clock: Clock
    shards: Mapping[tuple[str, str], ShardRuntime]
    member: Callable[[], MemberStatus]
    dispatches: Callable[[str, ShardName], bool] = lambda *_: True

    async def rows(
        self, names: Iterable[str], user: User, processes: Iterable[Process]
    ) -> dict[str, list[StatusRow]]:
        """Return the rows of the tables *names* that *user* may see.

        A user sees the queues and the shards of its keyspaces, of the queues those among its tables, and
        the streams of the connections that SHOW PROCESSLIST shows it.
        """
        rows: dict[str, list[StatusRow]] = {}
        for name in names:
            if name == "queues":
                queues = await self.queues_of(user)
                rows[name] = queue_rows(queues, self.errors_of(user), self.clock.time_ns())
            elif name == "streams":
                streams = self.watch.streams()
                rows[name] = stream_rows(streams, processes, self.clock.time_ns())
            elif name == "shards":
                rows[name] = shard_rows(
                    shard for shard in self.shard_status() if sees(user, shard.keyspace)
                )
            else:
                rows[name] = member_rows([self.member()])
        return rows

    async def queues_of(self, user: User) -> list[QueueFigures]:
        """Return the figures of the queues that *user* may see."""
        found = await self.watch.queues()
        return [one for one in found if sees(user, one.table.keyspace, one.table.name)]

    def errors_of(self, user: User) -> list[tuple[str, TableLoadError]]:
        """Return the message tables that cannot be used, with their keyspaces, of those that *user* may see."""
        return [
            (keyspace, table)
            for keyspace in dict.fromkeys(keyspace for keyspace, _ in self.shards)
            for table in self.registry.tables(keyspace).values()
            if isinstance(table, TableLoadError) and sees(user, keyspace, table.table)
        ]

    def shard_status(self) -> list[ShardStatus]:
        """Return every shard's primary."""
        return [
            ShardStatus(
                keyspace=shard.keyspace,
                shard=shard.name,
                server=shard.dsn.server,
                version=shard.version,
                trouble=shard.trouble,
                pool_size=shard.pool.size,
                pool_open=shard.pool.connections,
                pool_lent=shard.pool.lent,
                pool_waiting=shard.pool.waiting,
                is_dispatched=self.dispatches(shard.keyspace, shard.name),
            )
            for shard in self.shards.values()
        ]

    async def queues(self) -> list[QueueFigures]:
        """Return the figures of all queues that can be used."""
        return await self.watch.queues()

    def streams(self) -> list[StreamFigures]:
        """Return all open streams of this process."""
        return self.watch.streams()


def sees(user: User, keyspace: str, table: str | None = None) -> bool:
    """Return whether *user* may see what a keyspace has, or one of its tables."""
    if user.keyspaces is not None and keyspace not in user.keyspaces:
        return False
    if table is None or user.tables is None:
        return True
    return (None, table) in user.tables or (keyspace, table) in user.tables
