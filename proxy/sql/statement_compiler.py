"""From the text of a statement to what will be sent: where it goes and what it will do.

Two questions are answered here, for the hot path and the long one alike. *Where*: the session's
target, or the keyspace that its table names are qualified with. *What*: on a message table the
statement is completed (see `sqlparse_ext.writes.completion`) and its effect on messages is known
before it runs.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.errors import TableLoadError, TableNotFound
from streamfrom.engine.messaging.message_table import MessageTable
from streamfrom.proxy.errors import (
    NoDatabaseSelected,
    ReplicaTarget,
    StreamOfReplica,
    UnknownDatabase,
)
from streamfrom.proxy.routing.planner import qualifiers
from streamfrom.proxy.sql.confinement import confine
from streamfrom.sqlparse_ext.errors import SqlError, StreamfromError, Unsupported
from streamfrom.sqlparse_ext.reading.parser import explained_text
from streamfrom.sqlparse_ext.reading.session_settings import split_set_statement
from streamfrom.sqlparse_ext.reading.split import several
from streamfrom.sqlparse_ext.session.dynamic_sql import takes_text
from streamfrom.sqlparse_ext.session.schemas import (
    SYSTEM_SCHEMAS,
    rename_schemas,
    schemas_asked,
)
from streamfrom.sqlparse_ext.statements import Kind, SqlMode, Uses
from streamfrom.sqlparse_ext.text.identifiers import redirect_show, requalify
from streamfrom.sqlparse_ext.text.parameters import as_text, parameter_places
from streamfrom.sqlparse_ext.text.readable import is_whole, original
from streamfrom.sqlparse_ext.writes.completion import check_bound, complete
from streamfrom.sqlparse_ext.writes.generated import gaps
from streamfrom.sqlparse_ext.writes.messages import effect
from streamfrom.sqlparse_ext.writes.moments import TimeColumns


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.engine.messaging.clock import Clock
    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.engine.sharding.vschema import AutoIncrement
    from streamfrom.proxy.backends.settings import Settings
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.routing.routes import Route
    from streamfrom.proxy.sql.catalog import Catalog, View
    from streamfrom.proxy.sql.large_texts import LargeTexts
    from streamfrom.proxy.sql.privileges import Privileges
    from streamfrom.sqlparse_ext.cache import StatementCache
    from streamfrom.sqlparse_ext.statements import Shape, Statement, TableRef
    from streamfrom.sqlparse_ext.writes.completion import TableFacts
    from streamfrom.sqlparse_ext.writes.generated import Gaps
    from streamfrom.sqlparse_ext.writes.messages import Effect


_READS: Final = frozenset(
    {Kind.SELECT, Kind.SHOW, Kind.EXPLAIN, Kind.SET, Kind.SAVEPOINT, Kind.OTHER}
)
# ANALYZE runs what it explains.
_READS_THAT_WRITE: Final = frozenset(
    {"ALTER", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "FLUSH", "GRANT", "REVOKE", "RESET"}
    | {"STOP"}
)
_SHAPES_MAX: Final = 8192
_INSERTS: Final = frozenset({Kind.INSERT, Kind.REPLACE})
_ON_ROWS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.LOAD}
)


class StatementTarget(NamedTuple):
    """Where a statement runs.

    database: the default database of the backend connection, None for no default.
    statement: the client's statement, without qualifiers that a backend would not understand.
    """

    view: View
    database: str | None
    statement: Statement


@dataclass(slots=True)
class CompiledStatement:
    """A statement that is ready to run.

    Attributes:
        table, effect: a message table and what the statement will do to it; else "" and None.
        insert_id: the first value that a sequence gave the statement; 0 for none.
    """

    statement: Statement
    table: str = ""
    effect: Effect | None = None
    insert_id: int = 0


class StatementCompiler:
    """Compiles the statements of one session.

    Attributes:
        view: the session's current target, None before any `USE`.
        large_texts: reads texts that are too large for a turn of the loop.
    """

    def __init__(
        self,
        state: SessionState,
        guard: Privileges,
        catalog: Catalog,
        registry: Registry,
        cache: StatementCache,
        clock: Clock,
        large_texts: LargeTexts,
    ) -> None:
        self.view: View | None = None
        self.large_texts = large_texts
        # Where the database was that the session had until it dropped it.
        self._left: View | None = None
        # By target: a session stays with the replicas that it read from first.
        self._replicas: dict[str, View] = {}
        self._state = state
        self._privileges = guard
        self._catalog = catalog
        self._registry = registry
        self._cache = cache
        self._clock = clock
        # Shapes that a restricted user may send, whatever their literals, and where.
        self._admitted: set[Shape] = set()
        self._admitted_in: tuple[int, View | None] | None = None

    def parse(self, sql: bytes) -> Statement:
        """Return the facts of one statement.

        Raises:
            SqlError: it makes no sense.
            Unsupported: it is in a character set in which a quote or a backslash may be the
                second half of a character, has such characters, and is for several shards or
                of a user who may not do everything.
        """
        state = self._state
        statement = self._cache.get(sql, state.mode)
        # In this order: to ask a flag of an enumeration costs as much as three steps of C.
        if sql.isascii() or SqlMode.OTHER_CHARSET not in state.mode:
            return statement
        if state.unread is not None:
            self._check_unread(statement)
        if statement.shape.template.isascii():
            return statement
        shape = _named(statement.shape, state.mode, state.settings)
        return replace(statement, shape=shape)

    def _check_unread(self, statement: Statement) -> None:
        if self.here().is_sharded or (
            self._privileges.user.is_restricted
            and not (
                statement.shape.template.isascii() and is_whole(statement.sql, statement.mode)
            )
        ):
            raise self._unread()

    def _unread(self) -> Unsupported:
        return Unsupported(
            f"characters other than ASCII in a statement in {self._state.unread}; bind them to a"
            " prepared statement, or SET NAMES utf8mb4"
        )

    # --- who ------------------------------------------------------------------------------

    def check(self, statement: Statement) -> None:
        """Raise for what the session's user may not send, in EXPLAIN and SET STATEMENT too.

        Raises:
            CommandDenied, StatementRefused, DatabaseAccessDenied, Unsupported.
        """
        self._check(statement)

    def _check(self, statement: Statement, *, is_explained: bool = False) -> bool:
        view = self.view
        self._privileges.check_statement(
            statement,
            None if view is None else view.schema or view.database,
            is_explained=is_explained,
        )
        is_certain = not self._privileges.user.is_restricted or confine(
            self._privileges, statement, self, is_explained=is_explained
        )
        shape = statement.shape
        if shape.kind is Kind.EXPLAIN:
            text = explained_text(statement)
            runs = "ANALYZE" in (shape.verb, *shape.words[:3])
        else:
            _, text = split_set_statement(statement) or (b"", None)
            runs = True
        if text is None:
            return is_certain
        inner = self.parse(text)
        if takes_text(inner.shape):
            # Its text would have to be read first, which is done for what stands alone.
            raise Unsupported(f"{inner.shape.verb} in another statement")
        return self._check(inner, is_explained=not runs) and is_certain

    def admits(self, statement: Statement) -> bool:
        """Tell whether the user may send every statement of this shape, in the session's target."""
        if not self._privileges.user.is_restricted:
            return True
        generation = self._registry.generation, self.view
        if self._admitted_in != generation or len(self._admitted) > _SHAPES_MAX:
            self._admitted_in = generation
            self._admitted.clear()
        shape = statement.shape
        if shape not in self._admitted and self._check(statement):
            self._admitted.add(shape)
        return shape in self._admitted

    @property
    def schema(self) -> str | None:
        """The session's target where that is no keyspace."""
        return None if self.view is None else self.view.schema

    def home(self, schema: str | None) -> str | None:
        """Return which keyspace *schema* means, None for none that the user may use."""
        view = self.view
        if schema is None or (
            view is not None and view.schema is None and schema in view.databases
        ):
            return None if view is None or view.schema is not None else view.keyspace.name
        try:
            return self.lookup(schema).keyspace.name
        except StreamfromError:
            return None

    def is_message_table(self, keyspace: str, table: str) -> bool:
        """Tell whether a table is one of messages, usable or not."""
        return self._registry.table(keyspace, table) is not None

    def one_at_a_time(self, statement: Statement) -> SqlError:
        """Return what a server here says of several statements, where it takes one."""
        on_mariadb = self.here().runtimes[0].is_mariadb
        return SqlError(several(statement.sql, statement.mode, on_mariadb=on_mariadb))

    def routed(
        self, view: View, statement: Statement, *, has_own_clock: bool = False
    ) -> tuple[CompiledStatement, Route]:
        """Return what is sent of a statement in its place, as `compile`, and where.

        Raises what either raises.
        """
        step = self.compile(view, statement, has_own_clock=has_own_clock)
        return step, view.planner.plan(step.statement.shape).route(step.statement)

    # --- where ----------------------------------------------------------------------------

    def use(self, target: str) -> None:
        """Make *target*, or a system schema, the session's current one. Raises as `lookup`."""
        schema = target.lower()
        if schema in SYSTEM_SCHEMAS:
            self._privileges.check_system_schema(schema)
            home = self.here()
            self.view = (
                home.neighbour(schema)
                if home.has_neighbours
                else self._catalog.system_view(schema, home)
            )
        else:
            self.view = self.lookup(target)

    def lookup(self, target: str) -> View:
        """Return what *target* names.

        Raises:
            UnknownDatabase, DatabaseAccessDenied, Unsupported, EngineError.
        """
        self._privileges.check_target(target)
        view = self._replicas.get(target) or self._catalog.view(target)
        if view.is_replica:
            self._replicas[target] = view
        return view

    def leave_ailing_replicas(self) -> None:
        """Read from other replicas from now on where one is away or behind. Raises as `lookup`."""
        if not self._replicas:
            return
        self._replicas = {name: v for name, v in self._replicas.items() if not v.is_ailing}
        if self.view is not None and self.view.is_ailing:
            self.view = self.lookup(self.view.name)

    def current(self, view: View) -> View:
        """Return *view*, or what the session reads from in its place."""
        return self._replicas.get(view.name, view) if view.is_replica else view

    def here(self) -> View:
        """Return the current target; without one, a keyspace that answers table-less queries."""
        return (
            self.view or self._left or self._catalog.anywhere(self._privileges.user.keyspaces)
        )

    def drops_own_database(self, place: StatementTarget) -> bool:
        """True when *place* is that of a DROP DATABASE of what the session uses."""
        shape = place.statement.shape
        return (
            makes_or_drops_database(shape)
            and shape.verb == "DROP"
            and self.view is not None
            and shape.target == self.view.database
            and self.view.runtimes[0] is place.view.runtimes[0]
        )

    def leave(self) -> None:
        """Leave the target, whose database was dropped. The server stays the same."""
        self._left, self.view = self.view, None

    def neighbourhood(self) -> View | None:
        """Return whose server may have databases that are no keyspaces, None if none may be used.

        A user who was given keyspaces sees nothing else.
        """
        if (
            self._privileges.user.keyspaces is not None
            or self._privileges.user.tables is not None
        ):
            return None
        view = self.here()
        return view if view.has_neighbours else None

    @property
    def database(self) -> str | None:
        """What unqualified names mean on a backend connection of the current target."""
        return None if self.view is None else self.view.database

    def resolve(self, statement: Statement) -> StatementTarget:
        """Return where a statement runs. Raises as `lookup`, and ReplicaTarget."""
        place = self._resolve(statement)
        check_target(place.view, statement.shape)
        if self._state.unread and place.view.is_sharded and not statement.sql.isascii():
            raise self._unread()
        return place

    def _resolve(self, statement: Statement) -> StatementTarget:
        if makes_or_drops_database(statement.shape):
            return self._place_database(statement)
        names = _names(statement.shape)
        if not names:
            return self._described(statement) or StatementTarget(
                self.here(), self.database, statement
            )
        views: dict[str, View] = {}
        for name in names:
            try:
                views[name] = self.lookup(name)
            except StreamfromError:
                if self.view is not None and name in self.view.databases:
                    # What SELECT DATABASE() told, and drivers then ask about.
                    views[name] = self.view
                    continue
                if self._privileges.user.keyspaces is not None:
                    raise
                # A database of the server that is no keyspace; the server says what it is.
                here = self.here()
                if here.is_sharded:
                    raise
                return StatementTarget(here, self.database, statement)
        first = next(iter(views.values()))
        # An unqualified name means the session's own target, wherever the others lead; in SHOW
        # COLUMNS FROM t FROM database it means that database's.
        is_mixed = (
            self.view not in (None, first)
            and statement.shape.kind is not Kind.SHOW
            and (
                "UNQUALIFIED" in statement.shape.options
                or any(table.schema is None for table in statement.shape.tables)
            )
        )
        if self.view is not None and self._are_beside(views, statement.shape):
            # What else is unqualified, a function say, means the session's own as well.
            return StatementTarget(self.view, self.database, statement)
        if is_mixed or any(view is not first for view in views.values()):
            raise Unsupported("tables of several keyspaces or targets in one statement")
        # Without a qualifier the connection's own database is meant, whatever its name is on
        # that shard; so one text serves all shards.
        mapping: dict[str, str | None] = {
            name: None for name, view in views.items() if view.databases != {name}
        }
        if mapping:
            sql, mode = statement.sql, statement.mode
            target = statement.shape.target
            if statement.shape.kind is Kind.SHOW and target in mapping:
                sql = redirect_show(sql, target, first.database, mode)
            statement = self.parse(requalify(sql, mapping, mode))
        return StatementTarget(first, first.database, statement)

    def _described(self, statement: Statement) -> StatementTarget | None:
        """Return where keyspaces are described that a query names; None where it names none.

        On the server there is a database, which may have another name.
        """
        here, database = self.view, self.database
        views: dict[str, View] = {}
        for name in schemas_asked(statement, database):
            with contextlib.suppress(StreamfromError):  # no keyspace: the server may know it
                view = self.lookup(name)
                # Of its own keyspace a session may have chosen a shard, or a replica.
                if here and here.schema is None and here.keyspace is view.keyspace:
                    view = here
                views[name] = view
        if not views:
            return None
        first = next(iter(views.values()))
        if any(view.server != first.server for view in views.values()):
            raise Unsupported("the schemas of several servers in one statement")
        names = {name: v.database for name, v in views.items() if v.database != name}
        if names:
            statement = self.parse(rename_schemas(statement, names, database))
        if here is not None and here.server == first.server:
            return StatementTarget(here, database, statement)
        if here is not None and here.schema is not None:
            return StatementTarget(first, here.schema, statement)
        if any(table.schema is None for table in statement.shape.tables):
            raise Unsupported("tables of several keyspaces or targets in one statement")
        return StatementTarget(first, first.database, statement)

    def _are_beside(self, views: Mapping[str, View], shape: Shape) -> bool:
        """True where the session's connection has all that *views* name, by these very names.

        Only the databases beside a keyspace share its connections. Two keyspaces on one server
        do not: what a transaction has written in one of them the other's would not see.
        """
        return all(
            view.has_neighbours
            and view.runtimes[0] is self.here().runtimes[0]
            and view.databases == {name}
            and not self.touches_messages(view, shape)
            for name, view in views.items()
        )

    def _place_database(self, statement: Statement) -> StatementTarget:
        """Return where a database is made or dropped: a keyspace's where that is.

        No database is selected for it: that of the keyspace may be the one that is missing.
        """
        name = statement.shape.target or ""
        try:
            view = self.lookup(name)
        except UnknownDatabase:
            return StatementTarget(self.here(), None, statement)
        if view.databases != {name}:
            view = self.here()
        return StatementTarget(view, None, statement)

    def stream_source(self, table: TableRef) -> tuple[View, MessageTable]:
        """Return what `STREAM … FROM table` reads.

        Raises:
            NoDatabaseSelected: the name is unqualified and no keyspace alone has it.
            TableNotFound, TableLoadError: it is no message table, or not a usable one.
        """
        if table.schema is not None:
            view = self.lookup(table.schema)
        elif self.view is not None:
            view = self.view
        else:
            view = self._only_view(table.name)
        if view.is_replica:
            raise StreamOfReplica
        if view.schema is not None:
            raise TableNotFound(view.schema, table.name)
        found = self._registry.table(view.keyspace.name, table.name)
        if found is None:
            raise TableNotFound(view.keyspace.name, table.name)
        return view, _usable(found)

    def _only_view(self, table: str) -> View:
        found = [
            keyspace.name
            for keyspace in self._catalog.visible(self._privileges.user.keyspaces)
            if self._registry.table(keyspace.name, table) is not None
        ]
        if len(found) != 1:
            raise NoDatabaseSelected
        return self._catalog.view(found[0])

    # --- what -----------------------------------------------------------------------------

    def touches_messages(self, view: View, shape: Shape) -> bool:
        """True when a statement of this shape names a message table, usable or not."""
        keyspace = view.keyspace.name if view.schema is None else view.schema
        return any(self._registry.table(keyspace, table.name) for table in shape.tables)

    @staticmethod
    def sequence_of(view: View, shape: Shape) -> AutoIncrement | None:
        """Return which column of an INSERT takes values of a sequence, None where none does.

        In a target of some shards nothing is filled: what is said goes there.
        """
        vschema = view.keyspace.vschema
        if shape.kind not in _INSERTS or not shape.tables or vschema is None:
            return None
        table = vschema.tables.get(shape.tables[0].name)
        return None if table is None or view.is_narrowed else table.auto_increment

    def gaps(self, view: View, statement: Statement, column: str) -> Gaps:
        """Return where an INSERT of the session lacks values of *column*. Raises Unsupported."""
        return gaps(
            statement,
            column,
            view.columns_of(statement.shape.tables[0].name),
            zero_is_value="NO_AUTO_VALUE_ON_ZERO" in self._state.settings.sql_mode.upper(),
        )

    def sample(self, view: View, statement: Statement) -> Statement:
        """Return an INSERT as it would be with values of its sequence. Raises Unsupported."""
        auto = self.sequence_of(view, statement.shape)
        if auto is None:
            return statement
        return self.parse(self.gaps(view, statement, auto.column).filled(statement.sql, 1))

    def compile(
        self, view: View, statement: Statement, *, has_own_clock: bool = False
    ) -> CompiledStatement:
        """Complete a statement on a message table and find out what it will do to it.

        has_own_clock: it runs with a @@timestamp of its own.

        Raises:
            TableLoadError: it names a message table that failed to load.
            Unsupported: a time column stands beside a moment that cannot be nanoseconds.
        """
        touched = self._touched(view, statement.shape)
        if touched is None:
            return CompiledStatement(statement)
        facts, times = touched
        completed = complete(statement, facts, self._clock.time_ns(), times)
        if completed is not None:
            if (has_own_clock or self._state.has_own_clock) and (
                complete(statement, facts, 1, times) != complete(statement, facts, 2, times)
            ):
                raise Unsupported(
                    "NOW() for a time column of a message table while @@timestamp is set: the"
                    " proxy's clock is meant; SET timestamp = DEFAULT, or write nanoseconds"
                )
            statement = self.parse(completed)
        if facts is None:
            return CompiledStatement(statement)
        return CompiledStatement(statement, facts.name, effect(statement, facts))

    def standing(self, view: View, statement: Statement, count: int) -> Statement | None:
        """Return what completes a statement with *count* `?`s for every execution.

        None when there is no such text: it would hold the time of the execution, or other
        parameters than the client knows of.

        Raises as `compile`.
        """
        touched = self._touched(view, statement.shape)
        if touched is None:
            return statement
        facts, times = touched
        sample = self.parse(as_text(statement.bind((1,) * count, lambda _: b"1")))
        if complete(sample, facts, 1, times) != complete(sample, facts, 2, times):
            return None
        completed = complete(statement, facts, 1, times)
        if completed is None:
            return statement
        if len(parameter_places(completed, statement.mode)) != count:
            return None
        return self.parse(completed)

    def compile_bound(self, view: View, statement: Statement) -> CompiledStatement:
        """Find out what a completed statement will do with the values it is bound to.

        Raises as `compile`.
        """
        touched = self._touched(view, statement.shape)
        if touched is None:
            return CompiledStatement(statement)
        facts, times = touched
        check_bound(statement, facts, times)
        if facts is None:
            return CompiledStatement(statement)
        return CompiledStatement(statement, facts.name, effect(statement, facts))

    def _touched(
        self, view: View, shape: Shape
    ) -> tuple[TableFacts | None, TimeColumns] | None:
        """Return what a statement must know of the message tables that it names.

        None where it names none; else the facts of the one that it writes, if it is one, and the
        time columns of all. Raises TableLoadError.
        """
        if shape.kind not in _ON_ROWS or view.schema is not None:
            return None
        keyspace = view.keyspace.name
        tables = [self._registry.table(keyspace, table.name) for table in shape.tables]
        usable = [None if table is None else _usable(table) for table in tables]
        first = usable[0] if usable else None
        target = None if first is None or shape.kind is Kind.SELECT else first.facts
        if first is not None and len(usable) == 1:
            return target, first.facts.times
        known = [table.facts.times.names for table in usable if table is not None]
        if not known:
            return None
        foreign = {
            (table.alias or table.name).lower()
            for table, found in zip(shape.tables, usable, strict=True)
            if found is None
        }
        in_order = () if target is None else target.in_order
        return target, TimeColumns(frozenset().union(*known), frozenset(foreign), in_order)


@lru_cache(maxsize=1024)
def _named(shape: Shape, mode: SqlMode, settings: Settings) -> Shape:
    """Return *shape* with the names of tables and its target as they are, whatever wrote them."""

    def known(name: str) -> str:
        raw = name.encode("utf-8", "surrogateescape")
        return name if name.isascii() else settings.decoded(original(raw, mode))

    tables = tuple(
        replace(
            each,
            schema=None if each.schema is None else known(each.schema),
            name=known(each.name),
        )
        for each in shape.tables
    )
    target = None if shape.target is None else known(shape.target)
    return replace(shape, tables=tables, target=target)


def check_target(view: View, shape: Shape) -> None:
    """Raise ReplicaTarget for what may write, where only a replica is meant."""
    if view.is_replica and (
        shape.kind not in _READS
        or shape.verb in _READS_THAT_WRITE
        or shape.uses & Uses.GLOBAL_SCOPE
    ):
        raise ReplicaTarget(shape.verb)


def makes_or_drops_database(shape: Shape) -> bool:
    """True for CREATE DATABASE and DROP DATABASE: the only DDL with a target but ALTER's."""
    return (
        shape.kind is Kind.DDL and shape.target is not None and shape.verb in {"CREATE", "DROP"}
    )


def _usable(table: MessageTable | TableLoadError) -> MessageTable:
    if isinstance(table, MessageTable):
        return table
    # A new exception: the registry's own would gather the tracebacks of all sessions.
    raise TableLoadError(table.table, table.reason)


def _names(shape: Shape) -> set[str]:
    """Return the keyspaces and targets that a statement names."""
    names = qualifiers(shape)
    if shape.kind is Kind.SHOW and shape.target and shape.target.lower() not in SYSTEM_SCHEMAS:
        names.add(shape.target)
    return names
