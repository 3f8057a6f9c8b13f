"""COM_STMT_BULK_EXECUTE: one prepared write for many rows of parameters, as MariaDB's drivers batch.

Where one shard takes all rows, the client's packet goes to it whole. Otherwise each row goes to the shard that its
values name, and every shard gets a packet with its own rows. All packets are one transaction, so the batch takes effect
as a whole or not at all. Rows that need values of a sequence are written as one INSERT of text.

On a message table the effect of each row on messages is worked out, as for a single statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BadArguments, NotPreparable, WireError
from streamfrom.proxy.execution.diagnostics_queries import ASKS_BACK
from streamfrom.proxy.execution.prepared_execution import BulkExecution
from streamfrom.proxy.fairness import Slices
from streamfrom.proxy.routing.routes import OneShard, Plan, WriteParts
from streamfrom.proxy.sql.compile.statement_compiler import CompiledStatement
from streamfrom.proxy.sql.routed_statements import WrittenPart
from streamfrom.proxy.wire.binary_parameters import (
    TYPES_FOLLOW,
    Row,
    bulk_rows,
    bulk_types,
    known_value,
    literal_of,
)
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Statement
from streamfrom.sqlparse_ext.text.insert_rows import as_text, insert_rows, parameter_places
from streamfrom.sqlparse_ext.writes.message_effects import Effect, together


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.prepared_commands import PreparedCommands
    from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.sql.statement_runner import StatementRunner
    from streamfrom.proxy.wire.commands import StmtExecute


_WRITES: Final = frozenset({Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE})
# The names of the commands in MariaDB's errors.
_EXECUTE: Final = "mysqld_stmt_execute"
_BULK_EXECUTE: Final = "mysqld_stmt_bulk_execute"
# The engine learns of a longer batch only that it changed the table, and polls the table.
_EFFECTS_MAX: Final = 10_000


@dataclass(slots=True)
class ShardBatch:
    """One shard's rows of a batch."""

    rows: bytearray = field(default_factory=bytearray)  # the rows as the client sent them
    # The number of each row in the batch, from 0.
    places: list[int] = field(default_factory=list)
    # A message table and what the rows do to it; "" and empty for another table.
    table: str = ""
    effects: list[Effect] = field(default_factory=list)

    def add(self, row: bytes, place: int, step: CompiledStatement) -> None:
        """Add a row, whose effect *step* describes."""
        self.rows += row
        self.places.append(place)
        if step.effect is not None and len(self.effects) <= _EFFECTS_MAX:
            self.table = step.table
            self.effects.append(step.effect)

    @property
    def effect(self) -> Effect | None:
        """The effect of all rows together."""
        return together(self.effects)


class BulkCommands:
    """The batches of one session."""

    def __init__(
        self,
        context: SessionContext,
        statements: StatementRunner,
        prepared: PreparedCommands,
        table: PreparedStatements,
    ) -> None:
        self._state = context.state
        self._compiler = context.compiler
        self._target = context.compiler.target
        self._registry = context.registry
        self._statements = statements
        self._routed = statements.routed
        self._table = table
        self._prepared = prepared

    async def execute(self, command: StmtExecute, reply: Reply) -> None:
        """Execute a batch, and answer the client. Raises whatever stops it."""
        prepared = self._table.find(command.statement_id, _EXECUTE)
        self._prepared.close_cursor(prepared)
        prepared.drop_long_data()
        shape = prepared.original.shape
        if prepared.place is None or shape.kind not in _WRITES or not prepared.count:
            raise NotPreparable(f"{shape.verb} in a batch")
        if shape.uses & ASKS_BACK:
            raise Unsupported("FOUND_ROWS() or ROW_COUNT() in a batch")
        reply.binary = True
        try:
            await self._run(prepared, command, reply)
        except WireError:
            raise BadArguments(_BULK_EXECUTE) from None

    async def _run(
        self, prepared: PreparedStatement, command: StmtExecute, reply: Reply
    ) -> None:
        assert prepared.place is not None
        types, at = bulk_types(command.flags, command.body, prepared.count, prepared.types)
        prepared.types = types
        prepared.settle(self._compiler, self._registry)
        view, database, _ = prepared.place
        if self._compiler.sequence_of(view, prepared.original.shape) is not None:
            text = await self._as_text(prepared, bulk_rows(command.body, at, types))
            await self._statements.run_one(self._target.parse(text), reply)
            return
        statement = self._completed(prepared)
        plan = view.planner.plan(statement.shape)
        shares: dict[Shard, ShardBatch] = {}
        if isinstance(plan.always, OneShard) and not prepared.touches_messages:
            share = shares[plan.always.shard] = ShardBatch()
            share.rows += command.body[at:]
        else:
            if not prepared.is_countable:
                raise Unsupported("parameters inside a comment in a batch")
            shares = await self._deal(prepared, statement, plan, command.body, at)
        key = prepared.key_of(statement, self._state.settings)
        packets = {
            shard: BulkExecution(
                key,
                types + share.rows,
                flags=command.flags | TYPES_FOLLOW,
                is_kept=statement is prepared.statement,
            )
            for shard, share in shares.items()
        }
        if len(shares) == 1:
            ((shard, share),) = shares.items()
            step = CompiledStatement(statement, share.table, share.effect)
            await self._routed.run(view, database, step, OneShard(shard), reply, packets[shard])
            return
        written = [shard for shard in view.shards if shard in shares]
        parts = [
            WrittenPart(
                view.runtime(shard), packets[shard], shares[shard].table, shares[shard].effect
            )
            for shard in written
        ]
        result = await self._routed.write(database, parts, statement.shape)
        await result.tell(reply, [shares[shard].places for shard in written])

    def _completed(self, prepared: PreparedStatement) -> Statement:
        """Return the statement to execute; on a message table it is completed, at the current time."""
        assert prepared.place is not None
        if prepared.statement is not None:
            return prepared.statement
        statement = self._compiler.compile(prepared.place.view, prepared.original).statement
        if len(parameter_places(statement.sql, statement.mode)) != prepared.count:
            raise Unsupported("this statement in a batch")
        return statement

    async def _deal(
        self,
        prepared: PreparedStatement,
        statement: Statement,
        plan: Plan,
        body: bytes,
        at: int,
    ) -> dict[Shard, ShardBatch]:
        """Return the batch of each shard."""
        assert prepared.place is not None
        view = prepared.place.view
        shares: dict[Shard, ShardBatch] = {}
        is_utf8 = self._state.settings.is_utf8
        slices = Slices()
        for place, row in enumerate(bulk_rows(body, at, prepared.types)):
            # Each row takes 10 to 120 µs.
            await slices.breathe()
            bound = statement.bind(
                tuple(
                    OPAQUE if each is None else known_value(each, is_utf8=is_utf8)
                    for each in row.parameters
                )
            )
            if prepared.takes_back(bound):
                raise Unsupported(
                    "NULL for time_acked in a batch that acknowledges; execute it row by row"
                )
            step = self._compiler.compile_bound(view, bound)
            for shard in _shards_of(plan, bound):
                shares.setdefault(shard, ShardBatch()).add(row.data, place, step)
        return shares

    async def _as_text(self, prepared: PreparedStatement, rows: Iterator[Row]) -> bytes:
        """Return the INSERT of all rows as text. Raises Unsupported where they cannot be one INSERT."""
        statement = prepared.original
        escapes = SqlMode.NO_BACKSLASH_ESCAPES not in statement.mode
        heads, tails, values = set(), set(), []
        slices = Slices()
        for row in rows:
            await slices.breathe()
            texts = [
                b"DEFAULT" if each is None else literal_of(each, backslash_escapes=escapes)
                for each in row.parameters
            ]
            text = as_text(statement.bind((None,) * len(texts), texts.__getitem__))
            found = insert_rows(self._target.parse(text))
            if found is None:
                raise Unsupported(f"this form of {statement.shape.verb} in a batch")
            first, last = found.spans[0][0], found.spans[-1][1]
            heads.add(text[:first])
            tails.add(text[last:])
            values.append(text[first:last])
        if len(heads) > 1 or len(tails) > 1:
            # ON DUPLICATE KEY UPDATE v = ?: each row has a value of its own.
            raise Unsupported("parameters behind the rows of an INSERT in a batch")
        return b"".join((heads.pop(), b",".join(values), tails.pop()))


def _shards_of(plan: Plan, bound: Statement) -> tuple[Shard, ...]:
    """Return the shards of one row. Raises Unsupported where its statement would be split."""
    route = plan.route(bound)
    if isinstance(route, OneShard) or (
        isinstance(route, WriteParts)
        and route.rows_max is None
        and all(text is None for _, text in route.parts)
    ):
        return route.shards
    raise Unsupported(
        f"{bound.shape.verb} of several rows over several shards in a batch; give one row"
    )
