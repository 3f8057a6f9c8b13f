"""Values of sequences, for SELECT NEXT … VALUES and for INSERTs that use a sequence.

One request reserves all values of a statement, outside the session's transaction: a rollback
leaves a gap, as in Vitess. LAST_INSERT_ID() then returns the first value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.errors import SequenceError
from streamfrom.engine.messaging.table.message_ids import COUNTS
from streamfrom.proxy.errors import NoDatabaseSelected, ReplicaTarget
from streamfrom.proxy.rights.questions import draw
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.compile.statement_compiler import MESSAGE_IDS, GivenIds
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, Table
from streamfrom.sqlparse_ext.statements import Statement, Uses
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.writes.insert_gaps import count_of, naming_updated, next_values


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.session_context import SessionContext

COLUMNS: Final = (ColumnDefinition("nextval", type=FieldType.LONGLONG, length=21),)


class Filled(NamedTuple):
    """A statement whose rows have all their ids."""

    statement: Statement
    # The first id that the proxy gave, if all rows are inserted; 0 for none.
    insert_id: int = 0
    given: GivenIds | None = None  # the ids that it gave, if rows may not be inserted
    # The last id, if the client gave all; 0 if it is not known, or a row may not be inserted.
    own_id: int = 0


class SequenceStatements:
    """The sequence statements of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._connections = context.connections
        self._compiler = context.compiler
        self._large_texts = context.large_texts
        self._target = context.compiler.target
        self._catalog = context.catalog
        self._registry = context.registry
        self._rights = context.rights

    async def filled(self, view: View, statement: Statement) -> Filled:
        """Return an INSERT with values of its table's sequence or ids for its messages; return any other statement unchanged.

        Raises Unsupported, VschemaError or SequenceError if it cannot be given values, BackendUnavailable or BackendError.
        """
        auto = self._compiler.sequence_of(view, statement.shape)
        if auto is None:
            return Filled(statement)
        read, size = self._large_texts.read, size_of(statement)
        gaps = await read(size, self._compiler.gaps, view, statement, auto.column)
        insert = statement.shape.insert
        may_differ = insert is None or insert.ignore or insert.on_duplicate
        if not len(gaps):
            return Filled(statement, own_id=0 if may_differ else gaps.last or 0)
        values = await self._values(view, auto.sequence, len(gaps))
        filled = await read(
            size, lambda: self._target.parse(gaps.filled(statement.sql, values))
        )
        if insert is None or not may_differ:
            return Filled(filled, values[0])
        naming = None
        if insert.on_duplicate and not statement.shape.uses & Uses.SETS_LAST_INSERT_ID:
            naming = await read(size, naming_updated, filled, auto.column)
        rows = await read(size, insert_rows, filled)
        count = 1 if rows is None else len(rows)
        given = GivenIds(
            statement.shape.tables[0].name,
            auto.column,
            values,
            count,
            insert.on_duplicate,
            naming is not None,
        )
        if naming is not None:
            filled = await read(size, self._target.parse, naming)
        return Filled(filled, given=given)

    async def _values(self, view: View, sequence: str, count: int) -> Sequence[int]:
        if sequence == MESSAGE_IDS:
            return await self._message_ids(count)
        shard, table = self._catalog.sequence(sequence, view.keyspace)
        first = await self._take(shard, table, count)
        return range(first, first + count)

    async def _message_ids(self, count: int) -> Sequence[int]:
        found: list[int] = []
        ids = self._registry.message_ids
        while missing := count - len(found):
            taken = ids.take(min(missing, COUNTS))
            if not taken:
                await self._large_texts.pause(ids.wait_ns() / 10**9)
            found += taken
        return found

    async def asked(self, statement: Statement) -> tuple[ShardRuntime, str] | None:
        """Return the sequence of a SELECT NEXT … VALUES; None for every other statement.

        Raises as for any table, and SequenceError if the table is no sequence.
        """
        asked = next_values(statement.shape)
        if asked is None:
            return None
        schema, name = asked.table.schema, asked.table.name
        view = self._target.view if schema is None else self._target.named(schema)
        if view is None:
            raise NoDatabaseSelected
        if view.is_replica and asked.is_certain:
            raise ReplicaTarget("SELECT NEXT")
        shard = self._place(view, name)
        if shard is not None and await self._is_sequence(shard, name):
            return shard, name
        if asked.is_certain:
            raise SequenceError(f"{name} is not a sequence")
        # `SELECT next value FROM t` can also read a column.
        return None

    async def next(self, statement: Statement) -> Table:
        """Return the first of the sequence's values, for a statement for which `asked` found one. Raises as `asked`."""
        found, asked = await self.asked(statement), next_values(statement.shape)
        assert found is not None
        assert asked is not None
        shard, name = found
        count = count_of(asked, statement)
        if count is None:
            raise SequenceError(f"invalid increment for sequence {name}: not an integer")
        return COLUMNS, [(b"%d" % await self._take(shard, name, count),)]

    @staticmethod
    def _place(view: View, table: str) -> ShardRuntime | None:
        if view.is_replica:
            return None
        if not view.is_sharded:
            return view.runtimes[0]
        vschema = view.keyspace.vschema
        routing = None if vschema is None else vschema.tables.get(table)
        if routing is None or routing.pinned is None:
            return None
        return view.runtime(view.keyspace.shard_of(routing.pinned))

    async def _is_sequence(self, shard: ShardRuntime, table: str) -> bool:
        return await self._connections.patiently(
            shard, lambda: shard.sequences.is_sequence(table)
        )

    async def _take(self, shard: ShardRuntime, table: str, count: int) -> int:
        if not await self._is_sequence(shard, table):
            raise SequenceError(f"{table} is not a sequence")
        await self._rights.check([shard], draw(table))
        # Reserved values whose answer was lost leave a gap; no value is given twice.
        return await self._connections.patiently(
            shard, lambda: shard.sequences.reserve(table, count)
        )
