"""The keyspaces of this proxy, and the view of them that a session's target gives.

A target (`commerce`, `` `commerce:-80` ``, `` `commerce@primary` ``) becomes a `View`: the
shards in reach, the planner that routes over them, and the real database behind them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.keyspace import Keyspace, Shard, parse_target
from streamfrom.engine.sharding.sequence_tables import resolve
from streamfrom.proxy.errors import NoHealthyReplica, UnknownDatabase
from streamfrom.proxy.local_statements.show_keyspaces import Tablet
from streamfrom.proxy.routing.planner import Planner
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.pooling.multiplexing import LatencyClass
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.routing.routes import Plan
    from streamfrom.sqlparse_ext.statements import Shape
    from streamfrom.sqlparse_ext.writes.plain_writes import PlainAck, PlainInsert


_SERVED: Final = frozenset({"primary", "replica"})
_NO_REPLICAS: Final[Mapping[tuple[str, str], Sequence[ShardRuntime]]] = MappingProxyType({})


@dataclass(slots=True)
class FastRoute:
    """The route of a shape on the hot path."""

    plan: Plan  # finds the shard of a statement by its values
    _: KW_ONLY
    touches_messages: bool  # the shape names a message table, so its effect must be worked out
    # The effect of acks or INSERTs of the shape, if it is known without completing them; else None.
    ack: PlainAck | None = None
    insert: PlainInsert | None = None
    # The shard of all statements of the shape; None if the values decide.
    shard: ShardRuntime | None = None
    any_of: tuple[ShardRuntime, ...] = ()  # all shards that give the same answer, `shard` too
    # The latency class of a plain read; None if the shape may not share a connection.
    latency: LatencyClass | None = None


class View:
    """One keyspace, or some of its shards, as a session sees it.

    With *schema*, the view is of another database of a server instead: a system schema, or a database next to an
    unsharded keyspace. This view has no message tables and no vschema.

    Attributes:
        generation: the engine's generation for which `direct` is valid.
    """

    def __init__(
        self,
        name: str,
        keyspace: Keyspace,
        shards: tuple[Shard, ...],
        runtimes: Mapping[str, ShardRuntime],
        registry: Registry,
        *,
        is_replica: bool = False,
        schema: str | None = None,
    ) -> None:
        self.name = name  # the target as the client writes it (`commerce:-80`)
        # The name of a database that is no keyspace; None for the shards' own databases.
        self.schema = schema
        self.is_replica = is_replica  # statements go to a replica of each shard
        self._registry = registry
        # The shards in reach, in key-range order, over which `planner` routes.
        self.shards = shards
        # The target names shards.
        self.is_narrowed = schema is not None or len(shards) < len(keyspace.shards)
        self._runtimes = {shard: runtimes[shard.name] for shard in shards}
        # The real database's name on the first shard.
        self.database = schema or self._runtimes[shards[0]].database

        def columns_of(table: str) -> tuple[str, ...] | None:
            found = registry.table(keyspace.name, table)
            if not isinstance(found, MessageTable):
                return None
            return found.facts.in_order

        # Returns the columns that an INSERT without a column list fills, in lower case; None if they are unknown.
        self.columns_of = columns_of
        # The hot path's route of each shape; None for a shape that takes the long way.
        self.direct: dict[Shape, FastRoute | None] = {}
        self.replan(keyspace)

    def replan(self, keyspace: Keyspace) -> None:
        """Route by the vschema of *keyspace* from the next statement on.

        The keyspace has the same shards as before. A running statement keeps its route.
        """
        self.keyspace = keyspace
        self.planner = Planner(keyspace, self.shards, self.columns_of)
        self.direct.clear()
        # -1 is no generation of the engine, so the next statement rebuilds the hot path's routes.
        self.generation = -1

    @property
    def is_sharded(self) -> bool:
        """True when a statement may concern several shards."""
        return len(self.shards) > 1

    @property
    def is_part(self) -> bool:
        """True for some of a keyspace's shards, or for replicas; False for the plain keyspace."""
        return self.schema is None and (self.is_narrowed or self.is_replica)

    @property
    def is_ailing(self) -> bool:
        """True if a replica that the view reads from is not healthy."""
        return self.is_replica and any(
            runtime.trouble is not None for runtime in self._runtimes.values()
        )

    @property
    def has_neighbours(self) -> bool:
        """True if the view has one server, whose other databases a session may use and write."""
        return len(self.keyspace.shards) == 1 and not (self.keyspace.sharded or self.is_replica)

    def neighbour(self, database: str) -> View:
        """Return a view of another database on this view's server. Needs `has_neighbours`."""
        # No vschema: all tables of this database are on its one server.
        keyspace = Keyspace(database, self.keyspace.shards)
        runtimes = {shard.name: runtime for shard, runtime in self._runtimes.items()}
        return View(database, keyspace, self.shards, runtimes, self._registry, schema=database)

    def is_on(self, servers: Collection[ShardRuntime]) -> bool:
        """Return whether statements go to one of *servers*."""
        return any(runtime in servers for runtime in self.runtimes)

    def outdate(self) -> None:
        """Make new sessions log in again, after a change to data that a login reads from the servers."""
        for runtime in self.runtimes:
            runtime.pool.outdate(time.monotonic())

    @property
    def databases(self) -> set[str]:
        """The real databases' names: one, unless the shards' names differ."""
        if self.schema is not None:
            return {self.schema}
        return {runtime.database for runtime in self._runtimes.values()}

    @property
    def server(self) -> tuple[str, int, str | None]:
        """The address of the first shard. One server can describe all views with the same address."""
        dsn = self._runtimes[self.shards[0]].dsn
        return dsn.host, dsn.port, dsn.unix_socket

    def runtime(self, shard: Shard) -> ShardRuntime:
        """Return the live side of a shard in reach."""
        return self._runtimes[shard]

    @property
    def is_mariadb(self) -> bool:
        """True if the servers are MariaDB, False until one was reached."""
        return any(runtime.is_mariadb for runtime in self._runtimes.values())

    @property
    def runtimes(self) -> tuple[ShardRuntime, ...]:
        """The live sides of all shards in reach."""
        return tuple(self._runtimes.values())


class Catalog:
    """All keyspaces, and the views that sessions share."""

    def __init__(
        self,
        keyspaces: Sequence[Keyspace],
        runtimes: Mapping[tuple[str, str], ShardRuntime],
        registry: Registry,
        replicas: Mapping[tuple[str, str], Sequence[ShardRuntime]] = _NO_REPLICAS,
    ) -> None:
        self._replicas = replicas
        self._turn = 0
        self._keyspaces = {keyspace.name: keyspace for keyspace in keyspaces}
        self._runtimes = runtimes
        self._registry = registry
        # By keyspace, shards, and the replica of each shard; () for primaries.
        self._views: dict[tuple[str, tuple[Shard, ...], tuple[ShardRuntime, ...]], View] = {}
        # By keyspace, shard and schema.
        self._system_views: dict[tuple[str, Shard, str], View] = {}

    @property
    def keyspaces(self) -> Sequence[Keyspace]:
        """All keyspaces, by name."""
        return [self._keyspaces[name] for name in sorted(self._keyspaces)]

    def tablets(self) -> Iterator[Tablet]:
        """Yield the servers of all keyspaces, each shard's primary first."""
        for keyspace in self.keyspaces:
            for shard in keyspace.shards:
                key = keyspace.name, shard.name
                primary = self._runtimes[key]
                for one in (primary, *self._replicas.get(key, ())):
                    server, is_serving = one.dsn.server, one.trouble is None
                    yield Tablet(*key, one is primary, server, one.dsn.host, is_serving)

    def every_shard(self, near: View) -> tuple[ShardRuntime, ...]:
        """Return all shards' primaries, those of *near* first."""
        every = (self._runtimes[k.name, s.name] for k in self.keyspaces for s in k.shards)
        return tuple(dict.fromkeys((*near.runtimes, *every)))

    def names_on(self, server: tuple[str, int, str | None]) -> dict[str, list[str]]:
        """Return the clients' names for each database on a server of a keyspace, the usual name first."""
        found: dict[str, list[str]] = {}
        for keyspace in self.keyspaces:
            usual = keyspace.name
            for shard in keyspace.shards:
                key = keyspace.name, shard.name
                for runtime in (self._runtimes[key], *self._replicas.get(key, ())):
                    dsn = runtime.dsn
                    if (dsn.host, dsn.port, dsn.unix_socket) != server:
                        continue
                    target = f"{keyspace.name}:{shard.name}"
                    names = found.setdefault(runtime.database, [])
                    # If several shards are on one server, the first stands for the keyspace.
                    names += [usual, target] if usual else [target]
                    usual = ""
        return found

    def sequence(self, name: str, home: Keyspace) -> tuple[ShardRuntime, str]:
        """Return the shard and the table of the sequence *name* in the vschema of *home*. Raises VschemaError."""
        place = resolve(name, home, self._keyspaces)
        return self._runtimes[place.keyspace.name, place.shard.name], place.table

    def replace(self, keyspace: Keyspace) -> None:
        """Put *keyspace*, a new one or one with a changed vschema, into force for all sessions at once."""
        self._keyspaces[keyspace.name] = keyspace
        for view in (*self._views.values(), *self._system_views.values()):
            if view.keyspace.name == keyspace.name:
                view.replan(keyspace)

    def forget(self, keyspaces: Iterable[str], servers: Collection[ShardRuntime]) -> None:
        """Stop sessions from starting to use *keyspaces* or *servers*, which are gone."""
        for name in keyspaces:
            del self._keyspaces[name]
        self._views = {k: v for k, v in self._views.items() if not v.is_on(servers)}
        self._system_views = {
            k: v for k, v in self._system_views.items() if not v.is_on(servers)
        }

    def view(self, text: str) -> View:
        """Return the view of a target text.

        Raises UnknownDatabase, Unsupported for a form that is not served, NoHealthyReplica, or EngineError for a malformed
        target and for shards that do not exist.
        """
        target = parse_target(text)
        keyspace = self._keyspaces.get(target.keyspace)
        if keyspace is None:
            raise UnknownDatabase(text)
        if target.tablet_type not in _SERVED or target.alias is not None:
            raise Unsupported(f"target '{text}': only primaries and replicas are served")
        if target.shard is not None:
            shards: tuple[Shard, ...] = (keyspace.shard(target.shard),)
        elif target.key_range is not None:
            shards = keyspace.shards_matching(str(target.key_range))
        elif target.keyspace_id is not None:
            shards = (keyspace.shard_of(target.keyspace_id),)
        else:
            shards = keyspace.shards
        is_replica = target.tablet_type == "replica"
        # Part of the key below: sessions that read from the same replicas share a view and its
        # plans.
        picked = self._pick(keyspace, shards) if is_replica else ()
        key = (keyspace.name, shards, picked)
        view = self._views.get(key)
        if view is None:
            runtimes = {s.name: self._runtimes[keyspace.name, s.name] for s in shards}
            runtimes |= {s.name: replica for s, replica in zip(shards, picked, strict=False)}
            view = View(text, keyspace, shards, runtimes, self._registry, is_replica=is_replica)
            self._views[key] = view
        return view

    def system_view(self, schema: str, home: View) -> View:
        """Return a system schema, such as `information_schema`, of the first shard of *home* that answers."""
        keyspace = home.keyspace
        shard = min(home.shards, key=lambda each: not home.runtime(each).is_answering)
        key = (keyspace.name, shard, schema)
        view = self._system_views.get(key)
        if view is None:
            runtimes = {shard.name: self._runtimes[keyspace.name, shard.name]}
            view = View(schema, keyspace, (shard,), runtimes, self._registry, schema=schema)
            self._system_views[key] = view
        return view

    def _pick(self, keyspace: Keyspace, shards: Sequence[Shard]) -> tuple[ShardRuntime, ...]:
        """Return the replica of each shard to read from; healthy ones take turns."""
        self._turn += 1
        picked = []
        for shard in shards:
            replicas = self._replicas.get((keyspace.name, shard.name), ())
            healthy = [each for each in replicas if each.trouble is None]
            if not healthy:
                reasons = "; ".join(f"{each.dsn}: {each.trouble}" for each in replicas)
                raise NoHealthyReplica(keyspace.name, shard.name, reasons or "there is none")
            picked.append(healthy[self._turn % len(healthy)])
        return tuple(picked)

    def anywhere(self) -> View:
        """Return a view for statements without a database: the first keyspace."""
        return self.view(min(self._keyspaces))

    def beside(self) -> View:
        """Return a view for databases that are no keyspaces: the first unsharded keyspace, else the first."""
        views = [self.view(name) for name in sorted(self._keyspaces)]
        return next((view for view in views if view.has_neighbours), views[0])
