"""What the engine asks of a database, and the interface to whoever carries it out.

The statements stand here as conversations (`engine.messaging.conversation`), those of a poll in
`engine.messaging.poll`, those of a claim in `engine.messaging.claim_writes`. A `Store` only finds a connection and executes. Table names are unqualified:
the connection's default database is the shard's. ``now_ns`` is to be read when the connection
is in hand, so that waiting for one shortens nobody's wait.

A claim and a release are one short READ COMMITTED transaction each, on a connection with
autocommit off; they send their own COMMIT and rely on the Store to roll back (or to close the
connection) when a statement fails. A statement that the server refuses is thrown into the conversation as
`ServerRefused`: the rows to blame are left out (`engine.messaging.row_writes`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.engine.messaging.conversation import StoreQuery
from streamfrom.engine.messaging.in_flight_limit import is_lease
from streamfrom.engine.messaging.message import Purged, Refused, Shortenings, Tried
from streamfrom.engine.messaging.message_table import RawColumn, RawIndex, RawTable
from streamfrom.engine.messaging.partition_store import PartitionStore
from streamfrom.engine.messaging.retry_limit import PARKED_NS
from streamfrom.engine.messaging.row_writes import carefully, commit
from streamfrom.engine.messaging.table_settings import MARK, is_message_table
from streamfrom.sqlparse_ext.records import record
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from streamfrom.engine.messaging.conversation import Conversation, StoreAnswer
    from streamfrom.engine.messaging.depths import Depth
    from streamfrom.engine.messaging.groups import FireRequest, FireResult
    from streamfrom.engine.messaging.hidden_definitions import HiddenDefinitions
    from streamfrom.engine.messaging.leases import Lease
    from streamfrom.engine.messaging.message import (
        AckWrites,
        ClaimedRow,
        ClaimResult,
        LeaseWrite,
        LeaseWrites,
        Refusals,
    )
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.messaging.poll import PollRequest, PollResult
    from streamfrom.engine.sharding.keyspace import ShardName


PURGE_ROWS_MAX: Final = 500  # one short transaction
# An answer with the definitions of more tables would hold the loop up for longer than 5 ms.
TABLES_AT_ONCE: Final = 8


@record
class ClaimRequest:
    """Rows to claim.

    ids: the ids, as literals, of rows believed due, in the order in which they shall be sent.
    columns: the columns that the receivers get.
    uncounted: those of *ids* that were sent, which their rows may not count.
    known_keys: the keys of those of *ids* that follow others of their key: their rows need not be asked for them.
    acks: acknowledgements, ids and ``time_acked``, that are written in the same transaction before anything is asked of keys.
        Each is written if nobody else holds a row of it, and all are unacked. Only where messages wait for others of their key.
    draw: returns `engine.messaging.backoff.DICE_BITS` random bits.
    left_out: rows that are set aside, and for which no others of their key wait.
    held_ns: until when messages are leased whose rows say less, where messages wait for others of their key.
    """

    ids: tuple[bytes, ...]
    columns: tuple[str, ...]
    draw: Callable[[], int]
    uncounted: frozenset[bytes] = frozenset()
    known_keys: Mapping[bytes, bytes] = field(default_factory=dict)
    acks: Sequence[tuple[tuple[bytes, ...], int]] = ()
    left_out: frozenset[bytes] = frozenset()
    held_ns: Mapping[bytes, int] = field(default_factory=dict)


class Store(PartitionStore, Protocol):
    """The way to the databases of all keyspaces.

    Every method raises a StreamfromError for whatever the backend, or the way to it, refused
    or broke, and limits its own time. A cancelled call leaves no transaction behind.
    """

    async def discover(
        self,
        keyspace: str,
        shard: ShardName,
        names: Collection[str] | None = None,
        placed: Collection[str] = (),
    ) -> tuple[RawTable, ...]:
        """Return the tables of *shard* that are marked as message tables, and those of *placed*.

        names: of the tables so named alone; None for all.
        """
        ...

    async def come_or_gone(
        self, keyspace: str, shard: ShardName, known: Collection[str]
    ) -> frozenset[str] | None:
        """Return which tables of *shard* are marked as message tables and not *known*, or the other way round.

        None if a lock hides some of them: then all definitions have to be read.
        """
        ...

    async def read_hidden(
        self, keyspace: str, shard: ShardName, names: Collection[str] | None = None
    ) -> HiddenDefinitions:
        """Return by what statements on *shard* write to tables that they do not name, of the tables *names* alone if they are given."""
        ...

    async def poll(
        self, table: MessageTable, shard: ShardName, request: PollRequest
    ) -> PollResult:
        """Return the soonest keys."""
        ...

    async def claim(
        self, table: MessageTable, shard: ShardName, request: ClaimRequest
    ) -> ClaimResult:
        """Read what was never sent, if the table's leases are lazy, and claim what else is due and nobody holds."""
        ...

    async def write_leases(
        self, table: MessageTable, shard: ShardName, leases: Sequence[LeaseWrite]
    ) -> LeaseWrites:
        """Write leases that are in memory alone, but for rows that somebody holds."""
        ...

    async def write_acks(
        self, table: MessageTable, shard: ShardName, acks: Sequence[tuple[bytes, int]]
    ) -> AckWrites:
        """Write early acks, ids and times, but for rows that somebody holds."""
        ...

    async def look(
        self, table: MessageTable, shard: ShardName, ids: Sequence[bytes]
    ) -> dict[bytes, int]:
        """Return when those rows of *ids* that are unacked are due; NULL is 0."""
        ...

    async def fire(
        self, table: MessageTable, shard: ShardName, request: FireRequest
    ) -> FireResult:
        """Make held messages due whose groups are done; say for what the others wait."""
        ...

    async def leases_left(self, table: MessageTable, shard: ShardName) -> dict[bytes, int]:
        """Return which messages the rows show to be in flight, and until when."""
        ...

    async def release(
        self, table: MessageTable, shard: ShardName, rows: Sequence[ClaimedRow]
    ) -> Refusals:
        """Undo the claim of *rows* that nobody was sent; return those that the server does not write."""
        ...

    async def shorten(
        self, table: MessageTable, shard: ShardName, leases: Sequence[Lease], due_ns: int
    ) -> Shortenings:
        """Make rows due at *due_ns* that are still due when their lease ends."""
        ...

    async def depths(
        self, keyspace: str, shard: ShardName, tables: Sequence[MessageTable]
    ) -> dict[str, Depth]:
        """Return about how many rows each of *tables* has in which state, by name, without a walk over them."""
        ...

    async def purge(
        self,
        table: MessageTable,
        shard: ShardName,
        cutoff_ns: int,
        left_out: Collection[bytes] = (),
    ) -> Purged:
        """Delete rows acked before *cutoff_ns*, PURGE_ROWS_MAX at most, but for those of *left_out*."""
        ...


def discover(
    database: str, names: Collection[str] | None = None, placed: Collection[str] = ()
) -> Conversation[tuple[RawTable, ...]]:
    """Read the definitions of the tables of *database* that carry the mark, of those named *names* alone if they are given.

    MariaDB opens a table to tell of it, and would wait until whoever locks its definition is done,
    be it the client that waits for this. Such tables come as hidden ones.

    placed: the names of other tables, whose columns are asked for as well.
    """
    schema = literal(database.encode())
    asked = names
    has_skipped = False
    if asked is None:
        answer = yield StoreQuery(_marked(schema), 1, skips_locked=True)
        has_skipped = answer.has_skipped
        asked = {*placed, *(_text(name) for (name,), _ in answer.rows)}
    tables: list[RawTable] = []
    ordered = sorted(asked)
    for start in range(0, len(ordered), TABLES_AT_ONCE):
        some = ordered[start : start + TABLES_AT_ONCE]
        answer = yield StoreQuery(_definitions(schema, some), 10, skips_locked=True)
        has_skipped |= answer.has_skipped
        tables += _tables(answer, placed)
    if not has_skipped:
        return tuple(tables)
    # Locked between two parts of the answer: half of a definition is none.
    whole = [raw for raw in tables if raw.columns and raw.indexes]
    return (*whole, *(yield from _hidden(schema, whole, names)))


def come_or_gone(database: str, known: Collection[str]) -> Conversation[frozenset[str] | None]:
    """Read which tables of *database* carry the mark and are not *known*, or the other way round.

    Return None if a lock hides some of them.
    """
    answer = yield StoreQuery(_marked(literal(database.encode())), 1, skips_locked=True)
    marked = frozenset(_text(name) for (name,), _ in answer.rows)
    return None if answer.has_skipped else marked.symmetric_difference(known)


def _marked(schema: bytes) -> bytes:
    return (
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = %b"
        b" AND table_type = 'BASE TABLE' AND table_comment LIKE '%%%b%%'"
        % (schema, MARK.encode())
    )


def _tables(answer: StoreAnswer, placed: Collection[str]) -> Iterator[RawTable]:
    parts: dict[bytes | None, list[tuple[bytes | None, ...]]] = defaultdict(list)
    for (part, _, *values), _ in answer.rows:
        parts[part].append(tuple(values))
    columns: dict[str, list[RawColumn]] = defaultdict(list)
    for table, name, data_type, default, nullable, extra, column_type, collation in parts[
        b"column"
    ]:
        columns[_text(table)].append(
            RawColumn(
                name=_text(name),
                data_type=_text(data_type),
                default=None if default is None else _text(default),
                nullable=nullable == b"YES",
                extra=_text(extra),
                column_type=_text(column_type),
                collation=_text(collation or b""),
            )
        )
    indexes: dict[str, dict[tuple[str, bool], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for table, name, non_unique, column, *_ in parts[b"index"]:
        # A functional index part has no column; its empty name fits none of ours.
        indexes[_text(table)][_text(name), non_unique == b"0"].append(_text(column))
    # LIKE compares by the server's collation, in which case does not count.
    marked = {
        _text(name): (_text(comment), _text(options))
        for name, comment, options, *_ in parts[b"table"]
        if is_message_table(_text(comment))
    }
    for owner in (*marked, *(columns.keys() & set(placed) - marked.keys())):
        comment, options = marked.get(owner, ("", ""))
        yield RawTable(
            name=owner,
            comment=comment,
            columns=tuple(columns[owner]),
            indexes=tuple(
                RawIndex(index, unique, tuple(columns_of))
                for (index, unique), columns_of in indexes[owner].items()
            ),
            is_partitioned="partitioned" in options.lower(),
        )


def _definitions(schema: bytes, names: Collection[str]) -> bytes:
    """Return the question for the definitions of those of the tables *names* that carry the mark.

    A row of its answer: which part it belongs to, its place there, the table's name, and seven values.
    """
    known = b", ".join(literal(name.encode()) for name in names)
    return b" UNION ALL ".join(
        (
            b"SELECT 'table' AS part, 0 AS place, table_name AS owner, table_comment AS a, create_options AS b,"
            b" NULL AS c, NULL AS d, NULL AS e, NULL AS f, NULL AS g FROM information_schema.tables"
            b" WHERE table_schema = %b AND table_name IN (%b) AND table_type = 'BASE TABLE'"
            b" AND table_comment LIKE '%%%b%%'" % (schema, known, MARK.encode()),
            b"SELECT 'column', ordinal_position, table_name, column_name, data_type, column_default,"
            b" is_nullable, extra, column_type, collation_name FROM information_schema.columns"
            b" WHERE table_schema = %b AND table_name IN (%b)" % (schema, known),
            b"SELECT 'index', seq_in_index, table_name, index_name, non_unique, column_name, NULL, NULL, NULL, NULL"
            b" FROM information_schema.statistics WHERE table_schema = %b AND table_name IN (%b)"
            b" ORDER BY part, owner, place, a" % (schema, known),
        )
    )


def _hidden(
    schema: bytes, seen: Sequence[RawTable], asked: Collection[str] | None
) -> Conversation[tuple[RawTable, ...]]:
    """Return the tables of *schema*, or those *asked* for, that are not among *seen*, of which a lock hides some."""
    answer = yield StoreQuery(
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = %b" % schema, 1
    )
    known = {raw.name for raw in seen}
    wanted = None if asked is None else {name.lower() for name in asked}
    names = (_text(name) for (name,), _ in answer.rows)
    return tuple(
        RawTable(name, "", (), (), is_hidden=True)
        for name in names
        if name not in known and (wanted is None or name.lower() in wanted)
    )


def look(table: MessageTable, ids: Sequence[bytes]) -> Conversation[dict[bytes, int]]:
    """Read when rows are due, without a lock; those that are acked or gone are left out."""
    ident = quoted(table.id_column)
    answer = yield StoreQuery(
        b"SELECT %b, IFNULL(time_next, 0) FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        % (ident, by_id(table), ident, b", ".join(ids)),
        2,
    )
    return {
        table.id_literal(raw or b""): int(time_next or 0) for (raw, time_next), _ in answer.rows
    }


def leases_left(table: MessageTable, now_ns: int) -> Conversation[dict[bytes, int]]:
    """Read which messages were sent and are neither acked nor due again, as far as rows show it, and until when.

    It walks over all that wait for later, once for each term of a dispatcher.
    """
    answer = yield StoreQuery(
        b"SELECT %b, epoch, time_next FROM %b WHERE time_acked IS NULL AND epoch > 0"
        b" AND time_next > %d AND time_next < %d"
        % (quoted(table.id_column), quoted(table.name), now_ns, PARKED_NS),
        3,
    )
    return {
        table.id_literal(raw or b""): time_next_ns
        for (raw, epoch, time), _ in answer.rows
        if is_lease(table.properties, int(epoch or 0), time_next_ns := int(time or 0), now_ns)
    }


def release(table: MessageTable, rows: Sequence[ClaimedRow]) -> Conversation[Refusals]:
    """Put unsent rows back as they were, each only if nothing has happened to it since; return the refused ones."""
    written = yield from carefully(
        lambda is_careful: commit(
            rows, lambda part: _put_back(table, part), is_careful=is_careful
        )
    )
    return {row.id: Refused(Tried.RETURN, why) for row, why in written.refused}


def _put_back(table: MessageTable, rows: Sequence[ClaimedRow]) -> bytes:
    ident = quoted(table.id_column)
    return (
        b"UPDATE %b SET time_next = CASE %b%b ELSE time_next END, epoch = epoch - 1"
        b" WHERE time_acked IS NULL AND (%b)"
        % (
            by_id(table),
            ident,
            b"".join(b" WHEN %b THEN %d" % (row.id, row.time_next_ns) for row in rows),
            b" OR ".join(
                b"(%b = %b AND epoch = %d AND time_next = %d)"
                % (ident, row.id, row.epoch + 1, row.due_next_ns)
                for row in rows
            ),
        )
    )


def shorten(
    table: MessageTable, leases: Sequence[Lease], due_ns: int
) -> Conversation[Shortenings]:
    """Make rows due at *due_ns*, each only if nothing has happened to it since its lease was known.

    A row that somebody holds is left out: it is being acked, most likely.
    """
    return carefully(lambda is_careful: _shorten(table, leases, due_ns, is_careful=is_careful))


def _shorten(
    table: MessageTable, leases: Sequence[Lease], due_ns: int, *, is_careful: bool
) -> Conversation[Shortenings]:
    ident = quoted(table.id_column)
    answer = yield StoreQuery(
        b"SELECT %b, time_next FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        b" FOR UPDATE SKIP LOCKED"
        % (ident, by_id(table), ident, b", ".join(lease.id for lease in leases)),
        2,
    )
    until_ns = {lease.id: lease.until_ns for lease in leases}
    found = ((table.id_literal(raw or b""), int(time or 0)) for (raw, time), _ in answer.rows)
    ids = tuple(one for one, time_next_ns in found if until_ns.get(one) == time_next_ns)
    if not ids:
        yield StoreQuery(b"COMMIT")
        return Shortenings()
    written = yield from commit(
        ids,
        lambda part: (
            b"UPDATE %b SET time_next = %d WHERE %b IN (%b)"
            % (by_id(table), due_ns, ident, b", ".join(part))
        ),
        is_careful=is_careful,
    )
    return Shortenings(
        tuple(written.done), {one: Refused(Tried.RETURN, why) for one, why in written.refused}
    )


def purge(
    table: MessageTable, cutoff_ns: int, left_out: Collection[bytes] = ()
) -> Conversation[Purged]:
    """Delete one batch of rows acked before *cutoff_ns*, but for those of *left_out*; commit.

    A row that somebody holds is left for the next time. A DELETE by the condition alone would
    wait for it, also for rows that it only passes: on a small table servers read along the
    primary key, where consumers ack.
    """
    return carefully(
        lambda is_careful: _purge(table, cutoff_ns, left_out, is_careful=is_careful)
    )


def _purge(
    table: MessageTable, cutoff_ns: int, left_out: Collection[bytes], *, is_careful: bool
) -> Conversation[Purged]:
    where = b"time_acked < %d" % cutoff_ns
    if table.purge_by_schedule:
        # The first layout's primary key begins with it, and a message is scheduled before it
        # is acked: the walk stays within old rows.
        where += b" AND time_scheduled < %d" % cutoff_ns
    ident = quoted(table.id_column)
    others = b" AND %b NOT IN (%b)" % (ident, b", ".join(left_out)) if left_out else b""
    answer = yield StoreQuery(
        b"SELECT %b FROM %b WHERE %b%b LIMIT %d FOR UPDATE SKIP LOCKED"
        % (ident, _hinted(table, table.purge_index), where, others, PURGE_ROWS_MAX),
        1,
    )
    if not answer.rows:
        yield StoreQuery(b"COMMIT")
        return Purged()
    written = yield from commit(
        [table.id_literal(raw or b"") for (raw,), _ in answer.rows],
        # In the form for several tables: only so may a DELETE be told its index.
        lambda part: (
            b"DELETE %b FROM %b WHERE %b IN (%b) AND %b"
            % (quoted(table.name), by_id(table), ident, b", ".join(part), where)
        ),
        is_careful=is_careful,
    )
    return Purged(
        len(answer.rows),
        written.affected,
        {one: Refused(Tried.PURGE, why) for one, why in written.refused},
    )


def columns_query(table: MessageTable, columns: Sequence[str]) -> bytes:
    """Return a statement whose answer is the column definitions of a stream, and no row."""
    names = b", ".join(quoted(column) for column in columns)
    return b"SELECT %b FROM %b WHERE 1 = 0" % (names, quoted(table.name))


def by_id(table: MessageTable) -> bytes:
    """Return the table with the hint to find rows by their ids."""
    return _hinted(table, table.id_index)


def _hinted(table: MessageTable, index: str | None) -> bytes:
    if index is None:
        return quoted(table.name)
    return b"%b FORCE INDEX (%b)" % (quoted(table.name), quoted(index))


def quoted(name: str) -> bytes:
    """Return a name as SQL writes it."""
    return quote_identifier(name).encode()


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
