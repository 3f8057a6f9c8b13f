"""Gathers the data for the tables of the schema `streamfrom`, from this process and the other members of its fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from streamfrom.engine.errors import TableLoadError
from streamfrom.proxy.fairness import in_turns
from streamfrom.proxy.status import status_rows
from streamfrom.proxy.status.fleet_figures import MembersFigures, merged_queue, merged_streams


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.figures.figures import (
        QueueFigures,
    )
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.messaging.shell.watch import Watch
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.local_statements.show_processlist import Process


@dataclass(frozen=True, slots=True)
class Sight:
    """The keyspaces and tables that an account sees."""

    # The names of its visible tables, by visible keyspace; None for everything.
    tables: Mapping[str, frozenset[str]] | None = None

    def sees(self, keyspace: str, table: str | None = None) -> bool:
        """Return whether the account sees a keyspace, or one of its tables."""
        if self.tables is None:
            return True
        found = self.tables.get(keyspace)
        return found is not None and (table is None or table in found)


@dataclass(frozen=True, slots=True)
class Viewer:
    """A reader of the tables.

    A user sees the queues and the shards that its account sees, and the streams of the connections that SHOW PROCESSLIST
    shows it.
    """

    user: User
    is_admin: bool  # whether it may see every connection
    processes: Sequence[Process]  # the connections of this process that it may see
    sight: Sight = Sight()


class OtherFigures(Protocol):
    """The figures of the other members: `fleet.member_calls.FleetCalls`."""

    async def ask(self, tables: Iterable[str], viewer: Viewer | None = None) -> MembersFigures:
        """Return the other members' figures for *tables*; a member that does not answer within a second is listed as unanswered.

        viewer: the reader whose streams are shown; none without one.
        """


@dataclass(slots=True)
class StatusSource:
    """The status that one process knows, and access to the other members' figures."""

    watch: Watch
    registry: Registry
    clock: Clock
    # The primaries, by the names of keyspace and shard.
    shards: Mapping[tuple[str, str], ShardRuntime]
    member: Callable[[], status_rows.MemberStatus]  # returns this process's status
    # Whether this process delivers the messages of a shard of a keyspace.
    dispatches: Callable[[str, ShardName], bool] = lambda *_: True
    others: OtherFigures = field(init=False)  # the membership sets it, in `serve`

    async def rows(
        self, names: Iterable[str], viewer: Viewer, others: MembersFigures | None = None
    ) -> dict[str, list[status_rows.StatusRow]]:
        """Return the rows of the tables *names* that *viewer* may see, of the whole fleet.

        others: the other members' reports for these tables; None fetches them.
        """
        names = set(names)
        if others is None:
            others = await self.others.ask(names, viewer) if names else MembersFigures()
        rows: dict[str, list[status_rows.StatusRow]] = {}
        for name in names:
            if name == "queues":
                queues = await self.fleet_queues(others, viewer)
                rows[name] = await self.queue_rows(queues, viewer)
            else:
                records = self._records(name, others, viewer)
                rows[name] = status_rows.rows_of(name, records, self.clock.time_ns())
        return rows

    def _records(self, name: str, others: MembersFigures, viewer: Viewer) -> list[Any]:
        """Return the records behind the rows of a table, in their order."""
        if name == "streams":
            told = [stream for answer in others.answers for stream in answer.streams]
            streams = merged_streams([*self.stream_status(viewer.processes), *told])
            return sorted(streams, key=attrgetter("connection_id", "keyspace", "queue"))
        if name == "set_aside":
            aside = [*self.watch.set_aside(), *(s for a in others.answers for s in a.set_aside)]
            seen = [one for one in aside if viewer.sight.sees(one.keyspace, one.queue)]
            return sorted(seen, key=attrgetter("keyspace", "queue", "shard", "id"))
        if name == "shards":
            shards = [*self.shard_status(), *(s for a in others.answers for s in a.shards)]
            return sorted(
                (shard for shard in shards if viewer.sight.sees(shard.keyspace)),
                key=lambda shard: (shard.keyspace, shard.shard, shard.member or ""),
            )
        if name == "members":
            members = [self.member(), *(answer.member for answer in others.answers)]
            return [*(_as_seen(member, viewer) for member in members), *others.unanswered]
        raise LookupError(name)

    async def queue_rows(
        self, queues: Sequence[QueueFigures], viewer: Viewer
    ) -> list[status_rows.StatusRow]:
        """Return the rows of *queues*, and of the tables that cannot be used and that *viewer* may see."""
        now_ns = self.clock.time_ns()
        rows = status_rows.queue_rows([], self._errors_of(viewer), now_ns)
        async for some in in_turns(queues):
            rows += status_rows.queue_rows(some, [], now_ns)
        return sorted(rows, key=lambda row: (str(row[0]), str(row[1])))

    async def fleet_queues(
        self, others: MembersFigures, viewer: Viewer | None = None
    ) -> list[QueueFigures]:
        """Return the figures of the queues that can be used and that *viewer* may see, of the whole fleet.

        others: the other members' reports for `queues`.
        """
        parts, merged = others.parts(), []
        async for some in in_turns(await self.watch.queues()):
            merged += [
                merged_queue(
                    own, parts.get((own.table.keyspace, own.table.name), []), others.unanswered
                )
                for own in some
                if viewer is None or viewer.sight.sees(own.table.keyspace, own.table.name)
            ]
        return merged

    def _errors_of(self, viewer: Viewer) -> list[tuple[str, TableLoadError]]:
        return [
            (keyspace, table)
            for keyspace in dict.fromkeys(keyspace for keyspace, _ in self.shards)
            for table in self.registry.tables(keyspace).values()
            if isinstance(table, TableLoadError) and viewer.sight.sees(keyspace, table.table)
        ]

    def shard_status(self) -> list[status_rows.ShardStatus]:
        """Return every shard's primary, as this process sees it."""
        member = self.member().member
        return [
            status_rows.ShardStatus(
                keyspace=shard.keyspace,
                shard=shard.name,
                server=shard.dsn.server,
                version=shard.version,
                last_error=shard.trouble,
                pool_size=shard.pool.size,
                pool_open=shard.pool.connections,
                pool_in_use=shard.pool.lent,
                pool_waiters=shard.pool.waiting,
                is_dispatched=self.dispatches(shard.keyspace, shard.name),
                member=member,
            )
            for shard in self.shards.values()
        ]

    def stream_status(self, processes: Iterable[Process]) -> list[status_rows.StreamStatus]:
        """Return the streams of *processes* and of other members' clients, as far as this process knows them."""
        return status_rows.stream_status(self.watch.streams(), processes, self.member().member)


def _as_seen(member: status_rows.MemberStatus, viewer: Viewer) -> status_rows.MemberStatus:
    """Return the part of a member's status that *viewer* may know, without the names of other keyspaces."""
    dispatches = (one for one in member.dispatches if viewer.sight.sees(one.rpartition("/")[0]))
    return replace(member, dispatches=tuple(dispatches))
