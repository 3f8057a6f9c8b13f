"""Compile a statement's text into the text to send: find its place, complete it, and work out its effect on messages.

The hot path and the long way both compile statements here. `session_target` finds the place. On a message table the
statement is completed (see `sqlparse_ext.writes.completion`), and its effect on messages is worked out before it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.vschema import AutoIncrement
from streamfrom.proxy.execution.session_tracking import generated
from streamfrom.proxy.sql.compile.answerers import answerer
from streamfrom.proxy.sql.compile.session_target import SessionTarget, usable_table
from streamfrom.proxy.status.status_rows import SCHEMA as STATUS_SCHEMA, names_schema
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.parser import explained_text
from streamfrom.sqlparse_ext.reading.session_settings import split_set_statement
from streamfrom.sqlparse_ext.session.information_schema import asks_database, describes
from streamfrom.sqlparse_ext.session.session_calls import takes_text
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.insert_rows import as_text, parameter_places
from streamfrom.sqlparse_ext.writes.completion import (
    TableFacts,
    acknowledged,
    check_bound,
    complete,
    is_state_bound,
    preparable,
    sets_state,
)
from streamfrom.sqlparse_ext.writes.delays import check_not_delayed, check_several_tables
from streamfrom.sqlparse_ext.writes.insert_gaps import Gaps, check_load_fills, gaps
from streamfrom.sqlparse_ext.writes.message_effects import Effect, effect
from streamfrom.sqlparse_ext.writes.plain_writes import (
    PlainAck,
    PlainInsert,
    plain_ack,
    plain_insert,
)
from streamfrom.sqlparse_ext.writes.times import TimeColumns


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.routing.routes import Route
    from streamfrom.proxy.sql.compile.catalog import Catalog, View
    from streamfrom.sqlparse_ext.cache import StatementCache


@dataclass(frozen=True, slots=True)
class GivenIds:
    """The ids given to one INSERT."""

    table: str
    column: str
    ids: Sequence[int]  # in the order of the rows, ascending
    count: int  # the number of the statement's rows
    may_update: bool  # an existing row may be updated
    # The statement contains `LAST_INSERT_ID(id)`, so the server's insert id is that of an updated row.
    names_updated: bool

    async def told(
        self,
        state: SessionState,
        shards: Sequence[ShardRuntime],
        affected: int,
        servers: int,
        before: int,
    ) -> int:
        """Return the insert id for the client, and note LAST_INSERT_ID().

        affected: the affected rows of all *shards*.
        servers: the insert id of the servers' answers, 0 for none.
        before: the session's LAST_INSERT_ID() before the statement, if it `names_updated`.

        Raises BackendUnavailable or BackendError if a shard does not report which rows it has.
        """
        first = await self._first(shards, affected)
        if first:
            generated(state, first)
            return first
        if self.names_updated and servers:
            # Only the OK names an updated row.
            generated(state, before)
        return servers if affected or not self.names_updated else 0

    async def _first(self, shards: Sequence[ShardRuntime], affected: int) -> int:
        if not affected:
            return 0
        if not self.may_update and affected == self.count:
            return self.ids[0]
        found = []
        for shard in shards:
            column, ids = quote_identifier(self.column), ", ".join(map(str, self.ids))
            table = f"{quote_identifier(shard.database)}.{quote_identifier(self.table)}"
            sql = f"SELECT MIN({column}) FROM {table} WHERE {column} IN ({ids})"  # noqa: S608
            ((least,),) = await shard.control.rows_uncommitted(sql)
            if least is not None:
                found.append(int(least))
        return min(found, default=0)


# Names the source of ids for messages without one; no sequence has this name.
MESSAGE_IDS: Final = ""
_SHAPES_MAX: Final = 8192
_INSERTS: Final = frozenset({Kind.INSERT, Kind.REPLACE})
_OF_SEVERAL: Final = frozenset({Kind.UPDATE, Kind.DELETE})
_ON_ROWS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.LOAD}
)


@lru_cache(maxsize=1024)
def _not_counting(facts: TableFacts) -> TableFacts:
    return replace(facts, is_lazy=False)


@dataclass(slots=True)
class CompiledStatement:
    """A statement that is ready to run."""

    statement: Statement
    table: str = ""  # the message table that the statement writes; else ""
    effect: Effect | None = None  # the statement's effect on `table`; else None
    # The time that a plain ack (`FastRoute.ack`) writes, if its statement is as the client wrote it; else None.
    acked_ns: int | None = None
    insert_id: int = 0  # the first value that a sequence gave the statement; 0 for none
    # The last id that the client gave its rows, which the OK returns as with AUTO_INCREMENT; 0 for none.
    own_id: int = 0
    # The values that a sequence gave the statement, if they may not become rows; else None.
    given: GivenIds | None = None
    # The rows of the table may not show yet which messages were acknowledged.
    acks_early: bool = False
    # Its rows are those of its SELECT, which have been read.
    has_selected: bool = False


class StatementCompiler:
    """Compiles the statements of one session."""

    def __init__(
        self,
        state: SessionState,
        catalog: Catalog,
        registry: Registry,
        cache: StatementCache,
        clock: Clock,
    ) -> None:
        # Where statements run, and the meaning of names in them.
        self.target = SessionTarget(state, catalog, registry, cache)
        self._state = state
        self._registry = registry
        self._cache = cache
        self.clock = clock  # the time that statements are completed with
        # The keyspaces and names of message tables whose `epoch` the session's account may not change, so that its acks
        # count no delivery.
        self.uncounted: set[tuple[str, str]] = set()

    def check(self, statement: Statement) -> None:
        """Raise Unsupported for a write of the schema `streamfrom`, or a text to prepare in EXPLAIN or SET STATEMENT."""
        shape = statement.shape
        if names_schema(shape):
            raise Unsupported(
                f"{shape.verb} of the schema {STATUS_SCHEMA}, which only SELECT and SHOW TABLES read"
            )
        if shape.kind is Kind.EXPLAIN:
            text = explained_text(statement)
        else:
            _, text = split_set_statement(statement) or (b"", None)
        if text is None:
            return
        inner = self.target.parse(text)
        if takes_text(inner.shape):
            # The text in a PREPARE would have to be read first, which is done only for a PREPARE that stands alone.
            raise Unsupported(f"{inner.shape.verb} in another statement; send it alone")
        self.check(inner)

    def routed(
        self, view: View, statement: Statement, *, has_own_clock: bool = False
    ) -> tuple[CompiledStatement, Route]:
        """Return the compiled statement, as `compile`, and its route. Raises as `compile` and the planner."""
        step = self.compile(view, statement, has_own_clock=has_own_clock)
        return step, view.planner.plan(step.statement.shape).route(step.statement)

    def sequence_of(self, view: View, shape: Shape) -> AutoIncrement | None:
        """Return the column of an INSERT that takes values of a sequence; None if there is none.

        A target of some shards uses no sequence: the rows go to these shards unchanged. The sequence of a message
        table with vt_auto_id is MESSAGE_IDS.
        """
        if shape.kind not in _INSERTS or not shape.tables or view.schema is not None:
            return None
        name, vschema = shape.tables[0].name, view.keyspace.vschema
        table = None if vschema is None or view.is_narrowed else vschema.tables.get(name)
        if table is not None and table.auto_increment is not None:
            return table.auto_increment
        found = self._registry.table(view.keyspace.name, name)
        if isinstance(found, MessageTable) and found.properties.auto_id:
            return AutoIncrement(found.id_column.lower(), MESSAGE_IDS)
        return None

    def gaps(self, view: View, statement: Statement, column: str) -> Gaps:
        """Return the places where an INSERT of the session lacks values of *column*. Raises Unsupported."""
        return gaps(
            statement,
            column,
            view.columns_of(statement.shape.tables[0].name),
            zero_is_value="NO_AUTO_VALUE_ON_ZERO" in self._state.settings.sql_mode.upper(),
        )

    def sample(self, view: View, statement: Statement) -> Statement:
        """Return an INSERT with sample values of its sequence. Raises Unsupported."""
        auto = self.sequence_of(view, statement.shape)
        if auto is None:
            return statement
        gaps = self.gaps(view, statement, auto.column)
        return self.target.parse(gaps.filled(statement.sql, range(1, len(gaps) + 1)))

    def is_sent_as_written(self, view: View, shape: Shape) -> bool:
        """Return whether servers understand a statement of *shape* without other names or values put into it.

        On a message table it may still be completed. Uses of session state do not count.
        """
        return not (
            shape.target is not None
            or view.schema == STATUS_SCHEMA
            or not self.target.names_only_itself(view, shape)
            or describes(shape, view.database)
            or (view.is_part and asks_database(shape))
            or answerer(shape, view.schema) is not None
            or self.sequence_of(view, shape) is not None
        )

    def compile(
        self, view: View, statement: Statement, *, has_own_clock: bool = False
    ) -> CompiledStatement:
        """Complete a statement on a message table, and work out its effect on messages.

        has_own_clock: the statement runs with a @@timestamp that the client has set.

        Raises TableLoadError; Unsupported if a time column is compared with or set to a moment that cannot be nanoseconds;
        DelayRefused if it schedules a message for later, or may do so, although vt_delayed is off.
        """
        touched = self._touched(view, statement.shape)
        if touched is None:
            return CompiledStatement(statement)
        facts, times = touched
        if sets_state(statement.shape) and facts is not None and facts.has_state:
            statement = self.target.parse(acknowledged(statement))
        completed = complete(statement, facts, self.clock.time_ns(), times)
        if completed is not None:
            if (has_own_clock or self._state.has_own_clock) and (
                # The statement is completed at two moments. If the texts differ, the text contains the proxy's time.
                complete(statement, facts, 1, times) != complete(statement, facts, 2, times)
            ):
                raise Unsupported(
                    "NOW() for a time column of a message table while @@timestamp is set: the"
                    " proxy's clock is meant; SET timestamp = DEFAULT, or write nanoseconds"
                )
            text, words = completed
            # Fixed words went in, so the literals are the client's own and are not read again.
            if words:
                statement = self._cache.with_words(statement, text, words)
            else:
                statement = self.target.parse(text)
        return self._with_effect(statement, facts)

    def plain_insert(self, view: View, shape: Shape) -> PlainInsert | None:
        """Return the effect of INSERTs of *shape*, if it is known without completing them. Raises TableLoadError."""
        touched = self._touched(view, shape)
        facts = None if touched is None else touched[0]
        return None if facts is None or len(shape.tables) > 1 else plain_insert(shape, facts)

    def plain_ack(self, view: View, statement: Statement) -> PlainAck | None:
        """Return the effect of acks of a statement's shape, if it is known without completing them. Raises TableLoadError."""
        touched = self._touched(view, statement.shape)
        facts = None if touched is None else touched[0]
        if facts is None or (facts.has_state and sets_state(statement.shape)):
            return None
        return plain_ack(statement, facts, self.target.parse)

    def ack_text(self, view: View, statement: Statement) -> bytes:
        """Return the completed text of a plain ack (`FastRoute.ack`). Raises as `compile`."""
        touched = self._touched(view, statement.shape)
        if touched is None:
            return statement.sql
        completed = complete(statement, touched[0], self.clock.time_ns(), touched[1])
        return statement.sql if completed is None else completed.text

    def standing(self, view: View, statement: Statement, count: int) -> Statement | None:
        """Return the completed statement, with *count* `?`s, for all executions. Raises as `compile`.

        Return None if executions need different texts: the text contains the time of the execution, or other parameters than
        the client's.
        """
        touched = self._touched(view, statement.shape)
        if touched is None:
            return statement
        facts, times = touched
        if sets_state(statement.shape) and facts is not None and facts.has_state:
            if not is_state_bound(statement.shape):
                acknowledged(statement)  # raises for another state
            return None  # an ack has the time of its execution
        # A number, which may be a moment.
        sample = self.target.parse(
            as_text(statement.bind((1,) * count, lambda _: b"%d" % 10**18))
        )
        if complete(sample, facts, 1, times) != complete(sample, facts, 2, times):
            return None
        try:
            completed = complete(statement, facts, 1, times)
        except Unsupported:
            return None  # an interval of ? has a different length in each execution
        if completed is None:
            return statement
        # A `?` was doubled or dropped, and the client would bind the wrong ones.
        if len(parameter_places(completed.text, statement.mode)) != count:
            return None
        return self.target.parse(completed.text)

    def asked(self, view: View, statement: Statement) -> bytes:
        """Return the text from which a server describes a statement's parameters and columns."""
        if sets_state(statement.shape):
            touched = self._touched(view, statement.shape)
            if touched is not None and touched[0] is not None and touched[0].has_state:
                return preparable(statement)
        return statement.sql

    def compile_bound(self, view: View, statement: Statement) -> CompiledStatement:
        """Work out the effect of a completed statement with its bound values. Raises as `compile`."""
        touched = self._touched(view, statement.shape)
        if touched is None:
            return CompiledStatement(statement)
        facts, times = touched
        check_bound(statement, facts, times)
        return self._with_effect(statement, facts)

    def _with_effect(self, statement: Statement, facts: TableFacts | None) -> CompiledStatement:
        if facts is None:
            return CompiledStatement(statement)
        if facts.refuses_delays:
            check_not_delayed(statement, facts, self.clock.time_ns())
        return CompiledStatement(
            statement, facts.name, effect(statement, facts), acks_early=facts.acks_early
        )

    def _touched(
        self, view: View, shape: Shape
    ) -> tuple[TableFacts | None, TimeColumns] | None:
        """Return the facts about message tables that the completion of a statement needs.

        Return None if it names no message table; else the facts of the message table that it writes, if any, and the time
        columns of all. Raises TableLoadError, and Unsupported for a LOAD that leaves out ids.
        """
        if shape.kind not in _ON_ROWS or view.schema is not None:
            return None
        keyspace = view.keyspace.name
        tables = [self._registry.table(keyspace, table.name) for table in shape.tables]
        usable = [None if table is None else usable_table(table) for table in tables]
        # An UPDATE or DELETE of several tables may write any of them.
        is_joined = (
            shape.kind in _OF_SEVERAL and shape.uses & Uses.JOIN and not shape.assignments
        )
        first = next(filter(None, usable if is_joined else usable[:1]), None)
        if shape.kind is Kind.LOAD and first is not None and first.properties.auto_id:
            check_load_fills(shape, first.facts.id_column.lower())
        target = None if first is None or shape.kind is Kind.SELECT else first.facts
        if target is not None and self.uncounted and (keyspace, target.name) in self.uncounted:
            target = _not_counting(target)
        if first is not None and len(usable) == 1:
            return target, first.facts.times
        known = [table.facts.times.names for table in usable if table is not None]
        if not known:
            return None
        if shape.kind is Kind.UPDATE:
            for table in usable:
                if table is not None and table.facts.refuses_delays:
                    check_several_tables(shape, table.facts)
        foreign = {
            (table.alias or table.name).lower()
            for table, found in zip(shape.tables, usable, strict=True)
            if found is None
        }
        in_order = () if target is None else target.in_order
        return target, TimeColumns(frozenset().union(*known), frozenset(foreign), in_order)
