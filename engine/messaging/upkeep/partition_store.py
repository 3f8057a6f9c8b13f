"""What is asked of a server about the partitions of a queue, and how they are made and dropped.

A partition is dropped, and the last one is split, behind LOCK TABLES … WRITE: no transaction that has used
the table is open then, and none begins, so what the check finds is what is dropped. A request that waits for that lock
lets others wait behind it. So it is asked for in short tries, which `StoreQuery.patience_s` ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.engine.errors import PartitionsChanging, StoreError
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.sql_names import forced, quoted
from streamfrom.engine.messaging.upkeep.depths import estimated_rows
from streamfrom.engine.messaging.upkeep.partitions import (
    ROWS_COUNTED_MAX,
    PartitionCensus,
    RawPartition,
    RowsLeft,
    definitions,
    read_partitions,
)
from streamfrom.sqlparse_ext.text.identifiers import text_literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.upkeep.partitions import Partition
    from streamfrom.engine.sharding.keyspace import ShardName


# ER_LOCK_WAIT_TIMEOUT (MariaDB's answer to NOWAIT too), ER_QUERY_INTERRUPTED (by the end of the patience),
# ER_LOCK_NOWAIT.
_HELD: Final = frozenset({1205, 1317, 3572})
UNKNOWN_PARTITION: Final = 1735  # ER_UNKNOWN_PARTITION
# ER_DROP_PARTITION_NON_EXISTENT, ER_SAME_NAME_PARTITION: another dispatcher has done it.
_DONE: Final = frozenset({1507, 1517, UNKNOWN_PARTITION})
# Old partitions that are looked into at a time. More wait until these are gone.
LOOKED_INTO_MAX: Final = 100
# The server's own limits, in case no process is left to end the patience.
_LIMITS: Final = (
    b"SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1, autocommit = 1"
)


class Outcome(Enum):
    """How a change of partitions ended.

    DONE: it is as wanted, by this process or another one.
    HELD: a client's transaction is in the way.
    KEPT: there are rows that forbid it.
    """

    DONE = "done"
    HELD = "held"
    KEPT = "kept"


class PartitionStore(Protocol):
    """The way to the partitions of queues. Every method raises a StreamfromError for trouble with the server."""

    async def partitions(
        self, table: MessageTable, shard: ShardName, now_ns: int
    ) -> PartitionCensus | None:
        """Return the partitions of a table; None for one that is not partitioned as queues are."""
        ...

    async def rows_in(self, table: MessageTable, shard: ShardName, name: str) -> int:
        """Return about how many rows a partition has, without counting them."""
        ...

    async def drop_partition(
        self,
        table: MessageTable,
        shard: ShardName,
        name: str,
        cutoff_ns: int,
        patience_s: float,
    ) -> Outcome:
        """Drop a partition if all its rows were acked before *cutoff_ns*, waiting so long for others."""
        ...

    async def make_partitions(
        self,
        table: MessageTable,
        shard: ShardName,
        made: Sequence[Partition],
        rest: str,
        patience_s: float,
    ) -> Outcome:
        """Make partitions of what *rest*, the last one, takes, if it is empty."""
        ...


def census(table: MessageTable, now_ns: int) -> Conversation[PartitionCensus | None]:
    """Read the partitions, and what is left in those that are old. No row is locked, and no client waits.

    Raises:
        PartitionsChanging: a lock hides them.
    """
    answer = yield StoreQuery(
        b"SELECT partition_name, partition_method, partition_expression, partition_description"
        b" FROM information_schema.partitions WHERE table_schema = DATABASE() AND table_name = %b"
        b" AND partition_name IS NOT NULL AND subpartition_name IS NULL"
        b" ORDER BY partition_ordinal_position" % text_literal(table.name),
        4,
        skips_locked=True,
    )
    if answer.has_skipped:
        raise PartitionsChanging("a lock hides the partitions")
    found = [
        RawPartition(*((value or b"").decode() for value in values))
        for values, _ in answer.rows
    ]
    partitions = read_partitions(found, table.id_column)
    if partitions is None or table.purge_index is None:
        return None
    purge_after_ns = table.properties.purge_after_ns
    old = partitions.old(now_ns, purge_after_ns)[:LOOKED_INTO_MAX]
    counts = [_counted(_partition(table, partitions.rest), ROWS_COUNTED_MAX)]
    for each in old:
        counts += [
            _counted(rows, ROWS_COUNTED_MAX)
            for rows in _rows_left(table, each.name, now_ns - purge_after_ns)
        ]
    answer = yield StoreQuery(b"SELECT " + b", ".join(counts), len(counts))
    rest_rows, *left = (int(value or 0) for value in answer.rows[0][0])
    pairs = zip(left[::2], left[1::2], strict=True)
    return PartitionCensus(
        partitions,
        {each.name: RowsLeft(*pair) for each, pair in zip(old, pairs, strict=True)},
        rest_rows,
    )


def rows_in(table: MessageTable, name: str) -> Conversation[int]:
    """Ask the optimizer how many rows a partition has."""
    answer = yield StoreQuery(
        b"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM %b" % _partition(table, name), 12
    )
    return max((estimated_rows(row) for row, _ in answer.rows), default=0)


def drop_partition(
    table: MessageTable, name: str, cutoff_ns: int, patience_s: float
) -> Conversation[Outcome]:
    """Drop a partition unless a row is left in it that is unacked, or was acked later than *cutoff_ns*.

    The check reads two ends of an index, with locks: MariaDB keeps no lock on the table for a prepared transaction whose
    connection has ended, but its rows are locked.
    """
    checks = [
        b"SELECT 1 FROM %b LIMIT 1 FOR UPDATE NOWAIT" % rows
        for rows in _rows_left(table, name, cutoff_ns)
    ]
    change = b"ALTER TABLE %b DROP PARTITION %b" % (quoted(table.name), quoted(name))
    return (yield from _locked(table, checks, change, patience_s))


def make_partitions(
    table: MessageTable, made: Sequence[Partition], rest: str, patience_s: float
) -> Conversation[Outcome]:
    """Split the last partition if it is empty."""
    check = b"SELECT 1 FROM %b LIMIT 1 FOR UPDATE NOWAIT" % _partition(table, rest)
    return (yield from _locked(table, [check], split(table, made, rest), patience_s))


def split(table: MessageTable, made: Sequence[Partition], rest: str) -> bytes:
    """Return the statement that makes partitions of the last one."""
    return b"ALTER TABLE %b REORGANIZE PARTITION %b INTO (%b)" % (
        quoted(table.name),
        quoted(rest),
        definitions(made, rest),
    )


def _locked(
    table: MessageTable, checks: Sequence[bytes], change: bytes, patience_s: float
) -> Conversation[Outcome]:
    """Change a table that no client uses meanwhile, if no check finds a row.

    Raises:
        StoreError: the server refuses a statement for another reason than a client's lock.
    """
    try:
        yield StoreQuery(_LIMITS)
        yield StoreQuery(b"LOCK TABLES %b WRITE" % quoted(table.name), patience_s=patience_s)
        for check in checks:
            answer = yield StoreQuery(check, 1, patience_s=patience_s)
            if answer.rows:
                return Outcome.KEPT
        yield StoreQuery(change)
    except ServerRefused as refused:
        if refused.code in _HELD:
            return Outcome.HELD
        if refused.code not in _DONE:
            raise StoreError(refused.message) from None
    return Outcome.DONE


def _rows_left(table: MessageTable, name: str, cutoff_ns: int) -> tuple[bytes, bytes]:
    """Return the two kinds of rows that keep a partition, as they stand behind FROM."""
    assert table.purge_index is not None  # `census` has no partitions without it
    index = _partition(table, name) + forced(table.purge_index)
    # Apart from one another: with OR between them and a lock MySQL walks the whole index, 0.2 s for 100,000 rows.
    return (
        b"%b WHERE time_acked IS NULL" % index,
        b"%b WHERE time_acked >= %d" % (index, cutoff_ns),
    )


def _counted(rows: bytes, rows_max: int) -> bytes:
    return b"(SELECT COUNT(*) FROM (SELECT 1 FROM %b LIMIT %d) AS n)" % (rows, rows_max)


def _partition(table: MessageTable, name: str) -> bytes:
    return b"%b PARTITION (%b)" % (quoted(table.name), quoted(name))
