"""Find where a session's statements run: in its target, or in the keyspaces that qualify their names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.errors import TableLoadError, TableNotFound
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.proxy.errors import (
    NoDatabaseSelected,
    ReplicaTarget,
    StreamOfReplica,
    UnknownDatabase,
)
from streamfrom.proxy.routing.routes import OneShard
from streamfrom.proxy.sql.compile.answerers import (
    Answerer,
    answerer,
    lists_tables,
    tables_column_edits,
)
from streamfrom.proxy.status.status_rows import SCHEMA as STATUS_SCHEMA
from streamfrom.sqlparse_ext.errors import StreamfromError, Unsupported
from streamfrom.sqlparse_ext.reading.database_names import Qualified, database_names, renamed
from streamfrom.sqlparse_ext.reading.statement_features import (
    asks_sequence,
    makes_or_drops_database,
)
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS, schemas_asked
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, TableRef, Uses
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.multibyte_text import original


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.compile.catalog import Catalog, View
    from streamfrom.sqlparse_ext.cache import StatementCache


# The first characters of a target without a keyspace.
_PARTS: Final = frozenset({":", "/", "[", "@"})
_READS: Final = frozenset({Kind.SELECT, Kind.SHOW, Kind.EXPLAIN, Kind.SET, Kind.SAVEPOINT})
_QUERIES: Final = frozenset({Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE})
# Kind.OTHER also covers statements that were not understood, such as BEGIN NOT ATOMIC.
# The names in the kinds below are read by the proxy itself.
_NAME_NO_PLACE: Final = frozenset({Kind.USE, Kind.STREAM, Kind.QUEUE, Kind.EMPTY, Kind.KILL})
_OTHER_READS: Final = frozenset({"DO", "HANDLER", "CHECKSUM", "HELP", "GET", "SIGNAL"})


class StatementTarget(NamedTuple):
    """The place where a statement runs."""

    view: View
    database: str | None  # the default database of the backend connection, None for no default
    # The client's statement, without qualifiers that a backend would not understand.
    statement: Statement


class SessionTarget:
    """The target of one session, and the meaning of names in its statements."""

    def __init__(
        self, state: SessionState, catalog: Catalog, registry: Registry, cache: StatementCache
    ) -> None:
        self.view: View | None = None  # the session's current target, None before any `USE`
        self.name = ""  # the target as the client wrote it, "" before any `USE`
        # The view of a database that the session used and then dropped.
        self._left: View | None = None
        # Views by target: a session stays with the replicas that it read from first.
        self._replicas: dict[str, View] = {}
        self._state = state
        self._catalog = catalog
        self._registry = registry
        self._cache = cache

    def parse(self, sql: bytes, template_max: int | None = None) -> Statement:
        """Parse one statement.

        Raises SqlError if it is malformed, Unsupported if it is for several shards and uses a character set in which a quote or
        a backslash can be the second half of a character, LongTemplate as `StatementCache.get`.
        """
        state = self._state
        statement = self._cache.get(sql, state.mode, template_max)
        # In this order, since testing a flag of an enumeration costs more than the others.
        if sql.isascii() or SqlMode.OTHER_CHARSET not in state.mode:
            return statement
        if state.unread is not None and self.here().is_sharded:
            raise self._unread()
        if statement.shape.template.isascii():
            return statement
        shape = _named(statement.shape, state.mode, state.settings)
        return replace(statement, shape=shape)

    def _unread(self) -> Unsupported:
        return Unsupported(
            f"characters other than ASCII in a statement in {self._state.unread}; bind them to a"
            " prepared statement, or SET NAMES utf8mb4"
        )

    @property
    def schema(self) -> str | None:
        """The session's target if that is no keyspace; else None."""
        return None if self.view is None else self.view.schema

    def use(self, target: str) -> None:
        """Make *target*, or a system schema, the session's current one. Raises as `lookup`.

        A target without a keyspace, such as `:-80` or `@replica`, means the current one; NoDatabaseSelected if there is none.
        """
        if target[:1] in _PARTS:
            if self.view is None or self.view.schema is not None:
                raise NoDatabaseSelected
            target = self.view.keyspace.name + target
        schema = target.lower()
        if schema in SYSTEM_SCHEMAS:
            home = self.here()
            self.view = (
                home.neighbour(schema)
                if home.has_neighbours
                else self._catalog.system_view(schema, home)
            )
        elif schema == STATUS_SCHEMA:
            home = self.here()
            if home.schema is not None:  # a database next to a keyspace, which is none itself
                home = self._catalog.anywhere()
            self.view = self._catalog.system_view(STATUS_SCHEMA, home)
        else:
            try:
                self.view = self.named(target)
                if target in self.view.databases:
                    target = self.view.name
            except UnknownDatabase:
                known = self._catalog.names_on(self.here().server).get(target)
                if known is None:
                    raise
                target = known[0]
                self.view = self.lookup(target)
        self.name = target

    def lookup(self, target: str) -> View:
        """Return the view that *target* names. Raises UnknownDatabase, Unsupported or EngineError."""
        # If each statement used another replica, a session could see a row and then no longer see it.
        view = self._replicas.get(target) or self._catalog.view(target)
        if view.is_replica:
            self._replicas[target] = view
        return view

    def named(self, name: str) -> View:
        """Return the view that a database name means: a target, or the session's own target under the server's name for it.

        DATABASE() returns that name, and the text of a view contains it. Raises as `lookup`.
        """
        try:
            return self.lookup(name)
        except UnknownDatabase:
            if self.view is None or name not in self.view.databases:
                raise
            return self.view

    def leave_ailing_replicas(self) -> None:
        """Read from other replicas from now on if one is not healthy. Raises as `lookup`."""
        if not self._replicas:
            return
        self._replicas = {name: v for name, v in self._replicas.items() if not v.is_ailing}
        if self.view is not None and self.view.is_ailing:
            self.view = self.lookup(self.view.name)

    def current(self, view: View) -> View:
        """Return *view*, or the view of other replicas that the session reads from instead."""
        return self._replicas.get(view.name, view) if view.is_replica else view

    def here(self) -> View:
        """Return the view of the current target; without a target, of a keyspace for queries without tables."""
        return self.view or self._left or self._catalog.anywhere()

    def beside(self) -> View:
        """Return the view next to which databases outside keyspaces are: `here`, or without a target an unsharded keyspace."""
        return self.view or self._left or self._catalog.beside()

    def any_of(
        self, view: View, database: str | None, shape: Shape
    ) -> tuple[ShardRuntime, ...]:
        """Return the shards that give the same answer to a statement whose route is AnyShard; *database* is that of its place.

        They are those of *view*. Without a database they are those of every keyspace, if the session's account is theirs.
        """
        if lists_tables(shape) or shape.target is not None or database_names(shape).places:
            # Its text contains the name of the first shard's database.
            name = view.runtimes[0].database
            return tuple(each for each in view.runtimes if each.database == name)
        if database is not None or shape.tables or self._state.account.is_own:
            return view.runtimes
        return self._catalog.every_shard(view)

    @staticmethod
    def shards_to_prepare(view: View, shape: Shape) -> tuple[ShardRuntime, ...]:
        """Return the shards that know the columns of a statement's answer: the one that all these statements go to, else any."""
        # Any shard can prepare statements that none could run yet, such as an INSERT whose ids the proxy will give.
        with contextlib.suppress(StreamfromError):
            always = view.planner.plan(shape).always
            if type(always) is OneShard:
                return (view.runtime(always.shard),)
        return view.runtimes

    def drops_own_database(self, place: StatementTarget) -> bool:
        """True if *place* is that of a DROP DATABASE of the session's own database."""
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
        self._left, self.view, self.name = self.view, None, ""

    @property
    def database(self) -> str | None:
        """The default database of a backend connection of the current target; None for no default."""
        # No server has a database of that name, so unqualified names have no meaning.
        if self.view is None or self.view.schema == STATUS_SCHEMA:
            return None
        return self.view.database

    def resolve(self, statement: Statement) -> StatementTarget:
        """Return the place where a statement runs. Raises as `lookup`, and ReplicaTarget."""
        place = self._resolve(statement)
        check_target(place.view, statement.shape)
        if lists_tables(statement.shape):
            shown = statement.shape.target or self.name
            edits = tables_column_edits(place.statement.shape, shown, place.database)
            if edits:
                place = place._replace(statement=self.edited(place.statement, edits))
        if self._state.unread and place.view.is_sharded and not statement.sql.isascii():
            raise self._unread()
        return place

    def _resolve(self, statement: Statement) -> StatementTarget:
        if makes_or_drops_database(statement.shape):
            return self._place_database(statement)
        shape = statement.shape
        names = databases_named(shape)
        if (
            self.schema == STATUS_SCHEMA
            and shape.target is None
            and any(table.schema is None for table in shape.tables)
        ):
            # A connection kept by the session still has its former default database.
            raise NoDatabaseSelected
        here = self.here()
        if not names:
            return self._described(statement) or StatementTarget(here, self.database, statement)
        views, unknown = self._views_named(names)
        if not views:
            return StatementTarget(self.beside(), self.database, statement)
        if self.view is not None and self._are_beside(views, shape):
            # Other unqualified names, such as those of functions, also belong to the session's own target.
            return StatementTarget(
                self.view, self.database, self._renamed(statement, views, self.view)
            )
        if self.database is None and _names_a_table_without_database(shape):
            raise NoDatabaseSelected
        leading = self._leading(views, shape)
        first = leading[0]
        # An unqualified name belongs to the session's own target, whatever the other names are.
        is_mixed = self.view not in (None, first) and self._has_unqualified(statement)
        if is_mixed and self._may_stay(views, shape):
            return StatementTarget(here, self.database, self._renamed(statement, views, here))
        if is_mixed or unknown or any(view is not first for view in leading):
            raise Unsupported(
                "tables of several keyspaces or targets in one statement; send one statement for each"
            )
        return StatementTarget(first, first.database, self._renamed(statement, views, first))

    def _views_named(self, names: Iterable[str]) -> tuple[dict[str, View], bool]:
        """Return the views of *names*, and whether one is a database that is no keyspace. Raises as `lookup`."""
        views: dict[str, View] = {}
        unknown = False
        for name in names:
            try:
                views[name] = self.named(name)
            except StreamfromError:
                # A database of the server that is no keyspace; the server reports an error if there is none.
                if self.beside().is_sharded:
                    raise
                unknown = True
        return views, unknown

    def _has_unqualified(self, statement: Statement) -> bool:
        """True if a statement names a table or program of the session's own database."""
        shape = statement.shape
        if shape.kind is Kind.SHOW or any(
            each.role is Qualified.ALONE for each in database_names(shape).places
        ):
            return False  # SHOW COLUMNS FROM t FROM database, EXPLAIN FOR SCHEMA database …
        if "UNQUALIFIED" in shape.options or any(
            table.schema is None for table in shape.tables
        ):
            return True
        is_program = shape.kind is Kind.DDL and not shape.tables
        return (
            shape.kind in (Kind.EXPLAIN, Kind.DDL)
            and not is_program
            and database_names(shape).has_unqualified_tables
        )

    def _leading(self, views: Mapping[str, View], shape: Shape) -> list[View]:
        """Return the places that decide where a statement runs. Tables of its foreign keys do not decide if its server has them."""
        names = {
            each.name
            for each in database_names(shape).places
            if each.role is not Qualified.REFERENCE
        }
        leading = [view for name, view in views.items() if name in names]
        if not leading and self.view is not None:
            leading = [self.view]
        if leading and all(
            _is_next_to(view, leading[0]) for name, view in views.items() if name not in names
        ):
            return leading
        return list(views.values())

    def _may_stay(self, views: Mapping[str, View], shape: Shape) -> bool:
        """True if the session's own connection may run a statement that names databases of other keyspaces.

        Their databases are on its server, and are only named in a definition or as qualifiers of programs.
        """
        here = self.here()
        return all(_is_next_to(view, here) for view in views.values()) and (
            (shape.kind is Kind.DDL and "UNQUALIFIED" in shape.options)
            or all(each.role is Qualified.PROGRAM for each in database_names(shape).places)
        )

    def _renamed(
        self, statement: Statement, views: Mapping[str, View], place: View
    ) -> Statement:
        """Return *statement* for *place*, with the real databases' names in it.

        If the shards' databases have several names, there is no qualifier, which means the connection's own.
        """
        shape = statement.shape
        mapping: dict[str, str | None] = {}
        for name, view in views.items():
            databases = view.databases
            if databases != {name}:
                mapping[name] = next(iter(databases)) if len(databases) == 1 else None
        if not mapping:
            return statement
        if None in mapping.values():
            for each in database_names(shape).places:
                if each.role is Qualified.ALONE and mapping.get(each.name, "") is None:
                    if shape.kind is not Kind.SHOW:
                        raise Unsupported(
                            f"{shape.verb} of a database that is not called the same on all shards;"
                            " name each shard's"
                        )
                    mapping[each.name] = place.database  # the first shard answers
        return self.edited(statement, renamed(shape, mapping))

    def edited(self, statement: Statement, edits: Sequence[Edit]) -> Statement:
        """Return *statement* with *edits* of its template, which have no literals."""
        text = splice(statement.sql, statement.mode, edits)
        if not text.isascii() and SqlMode.OTHER_CHARSET in statement.mode:
            return self.parse(text)
        return self._cache.with_words(statement, text, edits)

    def names_only_itself(self, view: View, shape: Shape) -> bool:
        """Return whether a statement names only the database of *view*, by the name that its servers have for it."""
        names = databases_named(shape)
        if not names:
            return True
        own = view.keyspace.name if view.schema is None else view.schema
        return names == {own} == view.databases and not view.is_part

    def _described(self, statement: Statement) -> StatementTarget | None:
        """Return the place that describes the keyspaces a statement queries; None if it names none."""
        here, database = self.view, self.database
        views: dict[str, View] = {}
        for name in schemas_asked(statement, database):
            with contextlib.suppress(StreamfromError):  # no keyspace: the server may know it
                view = self.lookup(name)
                # The session's target may be a shard or a replica of its own keyspace.
                if here and here.schema is None and here.keyspace is view.keyspace:
                    view = here
                views[name] = view
        if not views:
            return None
        first = next(iter(views.values()))
        if any(view.server != first.server for view in views.values()):
            raise Unsupported(
                "the schemas of several servers in one statement; send one statement for each"
            )
        if here is not None and here.server == first.server:
            return StatementTarget(here, database, statement)
        if here is not None and here.schema is not None:
            return StatementTarget(first, here.schema, statement)
        if any(table.schema is None for table in statement.shape.tables):
            raise Unsupported(
                "tables of several keyspaces or targets in one statement; send one statement for each"
            )
        return StatementTarget(first, first.database, statement)

    def shown_names(self, statement: Statement) -> tuple[View, dict[str, str]]:
        """Return where a statement that `describes` runs, and the names that its rows show for the databases there.

        That is a keyspace's name, or the session's own target; else the name that the statement uses. It is empty
        if the server's names are right. Raises as `resolve`.
        """
        view = self.resolve(statement).view
        known = self._catalog.names_on(view.server)
        shown = {database: names[0] for database, names in known.items()}
        own = self.view
        if own is not None and own.schema is None and own.server == view.server:
            usual = self.name if own.is_part else own.keyspace.name
            shown = {name: name if new == usual else new for name, new in shown.items()}
            shown[own.database] = usual
        texts = schemas_asked(statement, self.database)
        for text in texts:
            with contextlib.suppress(StreamfromError):
                target = self.lookup(text)
                if target.server == view.server and text not in known[target.database]:
                    known[target.database].append(text)
        for database, names in known.items():
            shown[database] = _spelled([*names, database], texts) or shown[database]
        if all(name == new for name, new in shown.items()):
            return view, {}
        return view, shown

    def _are_beside(self, views: Mapping[str, View], shape: Shape) -> bool:
        """True if the session's connection reaches the databases of all *views* by the same names.

        Only databases next to a keyspace share its connections. Two keyspaces on one server do not: a connection of one would
        not see rows that a transaction has written in the other.
        """
        return all(
            view.has_neighbours
            and view.runtimes[0] is self.here().runtimes[0]
            and not self.touches_messages(view, shape)
            for view in views.values()
        )

    def _place_database(self, statement: Statement) -> StatementTarget:
        """Return the place where a database is created or dropped; that of a keyspace is on the keyspace's servers.

        The connection has no default database, since that of the keyspace may be missing.
        """
        name = statement.shape.target or ""
        try:
            view = self.lookup(name)
        except UnknownDatabase:
            return StatementTarget(self.beside(), None, statement)
        return StatementTarget(view, None, self._renamed(statement, {name: view}, view))

    def stream_source(self, table: TableRef) -> tuple[View, MessageTable]:
        """Return the view and the message table that `STREAM … FROM table` reads.

        Raises TableNotFound for other tables, TableLoadError for one that cannot be used, NoDatabaseSelected for an unqualified
        name that several keyspaces have, or none.
        """
        if table.schema is not None:
            view = self.named(table.schema)
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
        return view, usable_table(found)

    def _only_view(self, table: str) -> View:
        keyspace = self._registry.keyspace_of(table)
        if keyspace is None:
            raise NoDatabaseSelected
        return self._catalog.view(keyspace)

    def answerer(self, shape: Shape) -> Answerer | None:
        """Return the answerer of a statement of *shape*; None for shards. A SEQUENCE may prove to be a column."""
        return answerer(shape, self.schema)

    def touches_messages(self, view: View, shape: Shape) -> bool:
        """True if a statement of this shape names a message table, usable or not."""
        keyspace = view.keyspace.name if view.schema is None else view.schema
        return any(self._registry.table(keyspace, table.name) for table in shape.tables)


def _names_a_table_without_database(shape: Shape) -> bool:
    if shape.kind is Kind.DDL:
        # A definition's references may be in the database of the object that it defines.
        return bool(shape.tables) and shape.tables[0].schema is None
    return shape.kind in _QUERIES and database_names(shape).has_unqualified_tables


def _is_next_to(view: View, here: View) -> bool:
    """Return whether the databases of two keyspaces are on one server, and neither is sharded."""
    is_whole = not (view.is_sharded or view.is_replica or here.is_sharded)
    return is_whole and view.server == here.server


def _spelled(names: Sequence[str], texts: Sequence[str]) -> str | None:
    """Return the one of a database's *names* that *texts* contain; None if there is none. Raises Unsupported for two."""
    exact = [name for name in dict.fromkeys(names) if name in texts]
    if len(exact) > 1:
        raise Unsupported(
            f"one database by two names, '{exact[0]}' and '{exact[1]}'; write one"
        )
    within = exact or [name for name in names if any(name in text for text in texts)]
    return max(within, key=len, default=None)


@lru_cache(maxsize=1024)
def _named(shape: Shape, mode: SqlMode, settings: Settings) -> Shape:
    """Return *shape* with literal names of tables and target, however the statement wrote them."""

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
    """Raise ReplicaTarget for a statement that may write if the target is a replica."""
    if view.is_replica and (
        not (shape.kind in _READS or (shape.kind is Kind.OTHER and shape.verb in _OTHER_READS))
        or shape.verb == "ANALYZE"  # it runs the statement that it explains
        or shape.uses & Uses.GLOBAL_SCOPE
        or asks_sequence(shape)
    ):
        raise ReplicaTarget(shape.verb)


def usable_table(table: MessageTable | TableLoadError) -> MessageTable:
    """Return *table*. Raises TableLoadError for one that failed to load."""
    if isinstance(table, MessageTable):
        return table
    # A new exception: the registry's own would collect the tracebacks of all sessions.
    raise TableLoadError(table.table, table.reason)


def databases_named(shape: Shape) -> set[str]:
    """Return the keyspaces, targets and other databases that a statement names, system schemas apart."""
    if shape.kind in _NAME_NO_PLACE:
        return set()
    return {
        each.name
        for each in database_names(shape).places
        if each.name.lower() not in SYSTEM_SCHEMAS
    }
