"""The partitions of a queue that is partitioned by time: which exist, are needed, or can go, and how they are made and dropped. Pure.

Such a queue is ``PARTITION BY RANGE (id)``, and its ids are times, as `engine.messaging.table.message_ids` makes them. A partition is named after
the hour (``p2026112317``) or day (``p20261123``) in UTC with which it begins, and ends with it; the first one
also takes everything older, and the last one, without an end, all other rows. Only the names and
ends count, so a table that was partitioned by hand in this way is kept like one of CREATE QUEUE.

A partition is dropped, and the last one is split, behind LOCK TABLES … WRITE: no transaction that has used
the table is open then, and none begins, so the check sees exactly the rows that are dropped. A request that waits for that lock
makes others wait behind it. So it is made in short tries, which `StoreQuery.patience_s` ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from streamfrom.engine.errors import PartitionsChanging
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.message_ids import first_id, time_of
from streamfrom.engine.messaging.table.sql_names import forced, quoted
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.engine.messaging.upkeep.depths import estimated_rows
from streamfrom.sqlparse_ext.records import record
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, text_literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


SECOND_NS: Final = 10**9
# Servers take 8,192 partitions, and each query that names no id looks into all of them. With 56 this does not
# show: a poll of 1,000 keys of 490,000 took 2.7 ms on MariaDB and 3.2 ms on MySQL, 2.6 and 3.0 ms without partitions.
PARTITIONS_MAX: Final = 1_000
REST: Final = "prest"


@dataclass(frozen=True, slots=True)
class Span:
    """The time span of a partition.

    unit: as PARTITION BY writes it.
    name: the name of a partition, as `strftime` takes it.
    ahead: how many are made ahead of the present one, once there are fewer than `least` ahead.
    """

    unit: str
    length_ns: int
    name: str
    least: int
    ahead: int

    def partition(self, start_ns: int) -> Partition:
        """Return the partition that begins at *start_ns*."""
        start = datetime.fromtimestamp(start_ns // SECOND_NS, UTC)
        return Partition(start.strftime(self.name), start_ns + self.length_ns)

    def floor_ns(self, now_ns: int) -> int:
        """Return when the partition of *now_ns* begins."""
        return now_ns - now_ns % self.length_ns

    def count(self, purge_after_ns: int) -> int:
        """Return how many partitions a queue has whose messages are acknowledged soon."""
        return -(-purge_after_ns // self.length_ns) + 1 + self.ahead + 1


class Partition(NamedTuple):
    """A partition, and the time whose first id is beyond it."""

    name: str
    until_ns: int


# The least is always a day, the longest that a shard may be without a dispatcher. Many are made at a time, because on MariaDB a
# dump by one snapshot fails (error 1412) if it reaches the table after some were made.
SPANS: Final = {
    "HOUR": Span("HOUR", 3600 * SECOND_NS, "p%Y%m%d%H", 24, 36),
    "DAY": Span("DAY", 86_400 * SECOND_NS, "p%Y%m%d", 2, 7),
}


class RawPartition(NamedTuple):
    """A row of information_schema.partitions. description: the end, or MAXVALUE."""

    name: str
    method: str
    expression: str
    description: str


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of a queue. timed: those with an end, in order. rest: the name of the last one."""

    span: Span
    timed: tuple[Partition, ...]
    rest: str

    def missing(self, now_ns: int) -> tuple[Partition, ...]:
        """Return the partitions to make, up to the last one ahead; none while there are enough."""
        present_ns = self.span.floor_ns(now_ns)
        if self.timed[-1].until_ns >= present_ns + (self.span.least + 1) * self.span.length_ns:
            return ()
        # After a long absence the first new one takes the whole gap.
        start_ns = max(present_ns, self.timed[-1].until_ns)
        end_ns = present_ns + (self.span.ahead + 1) * self.span.length_ns
        return tuple(
            self.span.partition(at) for at in range(start_ns, end_ns, self.span.length_ns)
        )

    def old(self, now_ns: int, purge_after_ns: int) -> tuple[Partition, ...]:
        """Return the partitions that ended long enough ago for all their rows to be purged.

        The last one with an end always stays, because it shows how the queue is partitioned.
        """
        return tuple(
            each for each in self.timed[:-1] if each.until_ns + purge_after_ns <= now_ns
        )

    def rows_cutoff_ns(self, now_ns: int, purge_after_ns: int) -> int:
        """Return the time before which rows must be acked to be deleted one by one.

        A partition without stragglers would have been dropped with these rows before.
        """
        return now_ns - 2 * purge_after_ns - self.span.length_ns


class RowsLeft(NamedTuple):
    """Rows that keep a partition: unacked ones, and those acked less than vt_purge_after ago.

    Each is counted up to `ROWS_COUNTED_MAX`.
    """

    unacked: int
    young: int


ROWS_COUNTED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class PartitionCensus:
    """The partitions of a queue on a shard, and the rows in the old ones.

    left: by partition; one in which nothing is left has zeros.
    rest_rows: the rows of the last partition, counted up to ROWS_COUNTED_MAX.
    """

    partitions: Partitions
    left: dict[str, RowsLeft]
    rest_rows: int


def read_partitions(found: Sequence[RawPartition], id_column: str) -> Partitions | None:
    """Return the partitions of a table; None for one that is not partitioned as queues are."""
    if len(found) < 2 or found[-1].description.upper() != "MAXVALUE":
        return None
    wanted = id_column.lower()
    if any(
        each.method.upper() != "RANGE" or each.expression.strip("` ").lower() != wanted
        for each in found
    ):
        return None
    ids = [int(each.description) for each in found[:-1] if each.description.isdigit()]
    # Beyond a signed BIGINT there are years that no date has.
    if any(ident >= 2**63 or first_id(time_of(ident)) != ident for ident in ids):
        return None
    ends = [time_of(ident) for ident in ids]
    names = [each.name for each in found[:-1]]
    for span in SPANS.values():
        if all(end % span.length_ns == 0 for end in ends):
            timed = tuple(span.partition(end - span.length_ns) for end in ends)
            if [each.name for each in timed] == names:
                return Partitions(span, timed, found[-1].name)
    return None


def partition_by(span: Span, now_ns: int) -> bytes:
    """Return the clause that follows a CREATE TABLE of *now_ns*."""
    start_ns = span.floor_ns(now_ns)
    timed = [span.partition(start_ns + n * span.length_ns) for n in range(span.ahead + 1)]
    return b"PARTITION BY RANGE (`id`) (%b)" % definitions(timed, REST)


def definitions(timed: Sequence[Partition], rest: str) -> bytes:
    """Return the definitions of partitions, with that of the last one."""
    listed = [
        f"PARTITION {quote_identifier(each.name)} VALUES LESS THAN ({first_id(each.until_ns)})"
        for each in timed
    ]
    listed.append(f"PARTITION {quote_identifier(rest)} VALUES LESS THAN MAXVALUE")
    return ", ".join(listed).encode()


def held_back(left: RowsLeft) -> str | None:
    """Return why a partition is kept, as text; None if it need not be."""
    reasons = []
    if left.unacked:
        reasons.append(f"{_counted(left.unacked)} not acknowledged")
    if left.young:
        reasons.append(f"{_counted(left.young)} acknowledged less than vt_purge_after ago")
    return " and ".join(reasons) or None


def rest_held_back(rows: int) -> str | None:
    """Return why the last partition is not split, as text; None if it is empty.

    Its rows would be copied, and a transaction with an older snapshot would not find them: MySQL 9.7 returns the others, without an error.
    """
    if not rows:
        return None
    return (
        f"{_counted(rows)} with ids beyond all partitions, so none are made ahead, and messages are"
        " purged row by row"
    )


def late(census: PartitionCensus, now_ns: int, purge_after_ns: int) -> dict[str, str]:
    """Return reports about partitions that should have been dropped or split, by their names.

    A message that is acknowledged a little after its hour is over keeps its partition for as long: this is
    not reported for the time of a partition.
    """
    partitions = census.partitions
    reasons = {
        each.name: reason
        for each in partitions.old(now_ns - partitions.span.length_ns, purge_after_ns)
        if each.name in census.left and (reason := held_back(census.left[each.name]))
    }
    reason = rest_held_back(census.rest_rows)
    if reason is not None and partitions.missing(now_ns):
        reasons[partitions.rest] = reason
    return reasons


def _counted(rows: int) -> str:
    more = "or more " if rows >= ROWS_COUNTED_MAX else ""
    return f"{rows} {more}{'message' if rows == 1 else 'messages'}"


# ER_LOCK_WAIT_TIMEOUT (MariaDB's answer to NOWAIT too), ER_QUERY_INTERRUPTED (by the end of the patience),
# ER_LOCK_NOWAIT.
_HELD: Final = frozenset({1205, 1317, 3572})
_UNKNOWN_PARTITION: Final = 1735  # ER_UNKNOWN_PARTITION
# ER_DROP_PARTITION_NON_EXISTENT, ER_SAME_NAME_PARTITION: another dispatcher has done it.
_DONE: Final = frozenset({1507, 1517, _UNKNOWN_PARTITION})
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


@record
class TakeCensus:
    """The job of reading the partitions, and the rows left in the old ones. No row is locked, and no client waits."""

    name: ClassVar = "reading of partitions"
    access: ClassVar = Access.READ

    def talk(self, table: MessageTable, at: At) -> Conversation[PartitionCensus | None]:
        """Return its conversation; its result is None for a table that is not partitioned as queues are.

        Raises:
            PartitionsChanging: a lock hides them, or one was dropped between two queries.
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
        old = partitions.old(at.now_ns, purge_after_ns)[:LOOKED_INTO_MAX]
        kinds = [_partition(table, partitions.rest)]
        for each in old:
            kinds += _rows_left(table, each.name, at.now_ns - purge_after_ns)
        count = b"(SELECT COUNT(*) FROM (SELECT 1 FROM %b LIMIT %d) AS n)"
        counts = [count % (rows, ROWS_COUNTED_MAX) for rows in kinds]
        try:
            answer = yield StoreQuery(b"SELECT " + b", ".join(counts), len(counts))
        except ServerRefused as refused:
            if refused.code != _UNKNOWN_PARTITION:
                raise
            raise PartitionsChanging(refused.message) from None
        rest_rows, *left = (int(value or 0) for value in answer.rows[0][0])
        pairs = zip(left[::2], left[1::2], strict=True)
        return PartitionCensus(
            partitions,
            {each.name: RowsLeft(*pair) for each, pair in zip(old, pairs, strict=True)},
            rest_rows,
        )


@record
class DropPartition:
    """The job of dropping a partition unless a row is left in it that is unacked, or was acked later than *cutoff_ns*."""

    name: ClassVar = "dropping of a partition"
    access: ClassVar = Access.APART

    partition: str
    cutoff_ns: int
    patience_s: float

    def talk(self, table: MessageTable, _at: At) -> Conversation[tuple[Outcome, int]]:
        """Return its conversation, whose result has about how many rows the partition has.

        The check reads two ends of an index, with locks: MariaDB keeps no lock on the table for a prepared transaction whose
        connection has ended, but its rows are locked.
        """
        checks = [
            b"SELECT 1 FROM %b LIMIT 1 FOR UPDATE NOWAIT" % rows
            for rows in _rows_left(table, self.partition, self.cutoff_ns)
        ]
        change = b"ALTER TABLE %b DROP PARTITION %b" % (
            quoted(table.name),
            quoted(self.partition),
        )
        explain = b"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM %b"
        rows = 0
        with suppress(ServerRefused):  # a refusal here is repeated below
            answer = yield StoreQuery(explain % _partition(table, self.partition), None)
            rows = max((estimated_rows(row) for row, _ in answer.rows), default=0)
        return (yield from _locked(table, checks, change, self.patience_s)), rows


@record
class MakePartitions:
    """The job of splitting the last partition, *rest*, if it is empty."""

    name: ClassVar = "making of partitions"
    access: ClassVar = Access.APART

    made: Sequence[Partition]
    rest: str
    patience_s: float

    def talk(self, table: MessageTable, _at: At) -> Conversation[Outcome]:
        """Return its conversation."""
        check = b"SELECT 1 FROM %b LIMIT 1 FOR UPDATE NOWAIT" % _partition(table, self.rest)
        change = split(table, self.made, self.rest)
        return (yield from _locked(table, [check], change, self.patience_s))


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
    """Change a table that no client uses meanwhile, if no check finds a row."""
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
            raise
    return Outcome.DONE


def _rows_left(table: MessageTable, name: str, cutoff_ns: int) -> tuple[bytes, bytes]:
    """Return the two kinds of rows that keep a partition, as they follow FROM."""
    assert table.purge_index is not None  # `census` has no partitions without it
    index = _partition(table, name) + forced(table.purge_index)
    # Separately: with OR between them and a lock MySQL walks the whole index, 0.2 s for 100,000 rows.
    return (
        b"%b WHERE time_acked IS NULL" % index,
        b"%b WHERE time_acked >= %d" % (index, cutoff_ns),
    )


def _partition(table: MessageTable, name: str) -> bytes:
    return b"%b PARTITION (%b)" % (quoted(table.name), quoted(name))
