"""How many rows of message tables wait, are parked, or are dead letters, without a walk over them.

A COUNT(*) walks all rows that it counts, a second for ten million. EXPLAIN of a read of an
index looks at both ends of the range and at some pages between, in some microseconds, however many rows there are:
https://dev.mysql.com/doc/refman/8.4/en/range-optimization.html#equality-range-optimization
It never returns 0, and counts rows that a transaction has not yet removed from the index. So few rows are counted, up to a
bound, and more are estimated.

Parked rows have one ``time_next`` in each priority, which is a range of `poller_idx`. The priorities are found by a chain of
MIN(priority), all tables in one query: a recursive query or a condition without the priority walks all rows on both servers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.sql_names import forced, quoted
from streamfrom.engine.messaging.table.table_settings import is_message_table
from streamfrom.engine.messaging.upkeep.dead_letter_table import consents
from streamfrom.sqlparse_ext.text.identifiers import text_literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


# Tables in one query; servers take a few thousand SELECTs in a UNION.
TABLES_MAX: Final = 200
# Up to this many unacked rows are counted; more are estimated.
COUNTED_MAX: Final = 100
# Up to this many parked rows are counted, in 3 ms; more are estimated.
PARKED_COUNTED_MAX: Final = 10_000
# Parked rows of further priorities are not counted.
PRIORITIES_MAX: Final = 32
# The third column of an answer is the table; `rows` is last but one, before MySQL's `filtered` last but two.
_TABLE: Final = 2
_COLUMNS_OF_MYSQL: Final = 12
_UNACKED: Final = b"time_acked IS NULL"
_PARKED: Final = b"time_next = %d" % PARKED_NS
_OTHERS: Final = b"(time_next IS NULL OR time_next < %d)" % PARKED_NS


class Depth(NamedTuple):
    """The rows of a message table on one shard.

    unacked: rows that are neither acked nor parked.
    parked: parked rows; None if no index finds them.
    dead_lettered: rows of the table's dead letters; None without such a table.
    """

    unacked: int
    parked: int | None = 0
    dead_lettered: int | None = None


class _Rows(NamedTuple):
    """Rows of a table, as the end of a SELECT."""

    table: bytes
    where: bytes
    by_index: str | None = None

    def source(self, alias: bytes) -> bytes:
        hint = forced(self.by_index)
        return b"%b AS %b%b WHERE %b" % (self.table, alias, hint, self.where)


def depths(database: str, tables: Sequence[MessageTable]) -> Conversation[dict[str, Depth]]:
    """Query the depth of each table; return it by the tables' names."""
    found: dict[str, Depth] = {}
    for start in range(0, len(tables), TABLES_MAX):
        some = tables[start : start + TABLES_MAX]
        rows = [_Rows(quoted(table.name), _UNACKED) for table in some]
        totals, parked_of = yield from _totals(rows)
        for index, parked in parked_of.items():
            if totals[index] < COUNTED_MAX:
                found[some[index].name] = Depth(totals[index] - parked, parked)
        many = {
            table.name: (table, total)
            for table, total in zip(some, totals, strict=True)
            if table.name not in found
        }
        found |= yield from _of_many(many)
    letters = yield from _dead_lettered(database, tables)
    return {
        table.name: found[table.name]._replace(dead_lettered=letters.get(table.name))
        for table in tables
    }


def estimated_rows(row: Sequence[bytes | None]) -> int:
    """Return how many rows a row of EXPLAIN's answer expects."""
    return int((row[-3] if len(row) == _COLUMNS_OF_MYSQL else row[-2]) or 0)


def _of_many(many: Mapping[str, tuple[MessageTable, int]]) -> Conversation[dict[str, Depth]]:
    """Return the depths of tables with many unacked rows: a known total is divided."""
    found = {name: Depth(total, None) for name, (_, total) in many.items()}
    tables = [table for table, _ in many.values() if table.time_index is not None]
    if not tables:
        return found
    lanes = yield from _lanes(tables)
    parked_rows, other_rows = (
        [
            [
                _Rows(quoted(table.name), lane + b" AND " + state, table.time_index)
                for lane in lanes[table.name]
            ]
            for table in tables
        ]
        for state in (_PARKED, _OTHERS)
    )
    selects = b" UNION ALL ".join(
        b"(SELECT %d, (%b), (%b))"
        % (
            index,
            _bounded(parked_rows[index], PARKED_COUNTED_MAX),
            _bounded(other_rows[index], COUNTED_MAX),
        )
        for index in range(len(tables))
    )
    answer = yield StoreQuery(selects, 3)
    for (which, parked, others), _ in answer.rows:
        index = int(which or 0)
        table = tables[index]
        counted, rest = int(parked or 0), int(others or 0)
        if counted >= PARKED_COUNTED_MAX:
            counted = max(counted, sum((yield from _estimates(parked_rows[index]))))
            if rest >= COUNTED_MAX:
                rest = max(rest, sum((yield from _estimates(other_rows[index]))))
        elif rest >= COUNTED_MAX:
            rest = max(rest, many[table.name][1] - counted)
        found[table.name] = Depth(rest, counted)
    return found


def _lanes(tables: Sequence[MessageTable]) -> Conversation[dict[str, list[bytes]]]:
    """Return conditions for the unacked rows of each priority, by the tables' names."""
    found: dict[str, list[bytes]] = {table.name: [] for table in tables}
    for table in tables:
        if not table.has_priority:
            found[table.name].append(_UNACKED)
        elif table.priority_nullable:
            found[table.name].append(_UNACKED + b" AND priority IS NULL")
    following = {table.name: b"" for table in tables if table.has_priority}
    for _ in range(PRIORITIES_MAX):
        if not following:
            break
        names = list(following)
        answer = yield StoreQuery(
            b" UNION ALL ".join(
                b"(SELECT %d, MIN(priority) FROM %b WHERE %b%b)"
                % (index, quoted(name), _UNACKED, following[name])
                for index, name in enumerate(names)
            ),
            2,
        )
        following = {}
        for (which, least), _ in answer.rows:
            if least is not None:
                name = names[int(which or 0)]
                found[name].append(_UNACKED + b" AND priority = %b" % least)
                following[name] = b" AND priority > %b" % least
    return found


def _bounded(lanes: Sequence[_Rows], most: int) -> bytes:
    """Return the query that counts rows up to *most*; one read of the index for each priority."""
    # Either server may walk the whole index for a list of priorities.
    part = b"(SELECT 1 AS one FROM %b LIMIT %d)"
    parts = b" UNION ALL ".join(part % (rows.source(b"r"), most) for rows in lanes)
    return b"SELECT COUNT(*) FROM (%b) AS n" % (parts or b"SELECT 1 AS one LIMIT 0")


def _estimates(rows: Sequence[_Rows]) -> Conversation[list[int]]:
    """Return how many rows the server expects of each; 0 for those it does not report."""
    found = [0] * len(rows)
    selects = b" UNION ALL ".join(
        b"(SELECT 1 FROM %b)" % one.source(b"q%d" % index) for index, one in enumerate(rows)
    )
    answer = yield StoreQuery(b"EXPLAIN FORMAT=TRADITIONAL " + selects, None)
    for row, _ in answer.rows:
        # For an empty table a server may report that no row can match, without the table's name.
        alias = row[_TABLE] or b""
        if alias[:1] == b"q" and alias[1:].isdigit():
            found[int(alias[1:])] = estimated_rows(row)
    return found


def _totals(
    rows: Sequence[_Rows], parked: bytes = _PARKED
) -> Conversation[tuple[list[int], dict[int, int]]]:
    """Return the number of rows of each, and, by their places in *rows*, how many are parked of those that are counted because they are few."""
    totals = yield from _estimates(rows)
    which = [index for index, total in enumerate(totals) if total < COUNTED_MAX]
    if not which:
        return totals, {}
    counts = b" UNION ALL ".join(
        b"(SELECT %d, COUNT(*), COALESCE(SUM(is_parked), 0) FROM"
        b" (SELECT %b AS is_parked FROM %b LIMIT %d) AS n)"
        % (index, parked, rows[index].source(b"r"), COUNTED_MAX)
        for index in which
    )
    answer = yield StoreQuery(counts, 3)
    parked_of = {}
    for (index, count, part), _ in answer.rows:
        totals[int(index or 0)] = int(count or 0)
        parked_of[int(index or 0)] = int(part or 0)
    return totals, parked_of


def _dead_lettered(
    database: str, tables: Collection[MessageTable]
) -> Conversation[dict[str, int]]:
    """Return the number of dead letters by queue, without queues whose dead letters no table takes."""
    wanted = {table.properties.dead_letter for table in tables} - {None}
    if not wanted:
        return {}
    answer = yield StoreQuery(
        b"SELECT table_name, table_comment FROM information_schema.tables"
        b" WHERE table_schema = %b AND table_name IN (%b)"
        % (
            text_literal(database),
            b", ".join(text_literal(name) for name in sorted(filter(None, wanted))),
        ),
        2,
    )
    comments = {
        (name or b"").decode(): (text or b"").decode() for (name, text), _ in answer.rows
    }
    takers = {
        table.name: taker
        for table in tables
        if (taker := table.properties.dead_letter) is not None
        and consents(comments.get(taker, ""), table.name)
    }
    named = [(name, comments[name]) for name in dict.fromkeys(takers.values())]
    # The waiting rows of a queue, and all rows of another table.
    rows = [
        _Rows(quoted(name), _UNACKED if is_message_table(text) else b"TRUE")
        for name, text in named
    ]
    if not rows:
        return {}
    counts, _ = yield from _totals(rows, b"0")
    of_table = {name: count for (name, _), count in zip(named, counts, strict=True)}
    return {queue: of_table[taker] for queue, taker in takers.items()}
