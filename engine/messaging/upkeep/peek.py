"""Some messages of a table by their state or by a value: each query goes straight to its place in an index.

A page is keys first, then rows by their ids. It is read from a place on, and returns the place of the next one. `poller_idx` is
(time_acked, priority, time_next DESC), so unacked rows are read priority by priority, and within one the latest time first, rows
of one time by id: this is the order of the index, which no server has to sort. Pure: conversations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.queue.poll import next_priority
from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.table.message_table import NUMBER_TYPES
from streamfrom.engine.messaging.table.sql_names import by_id, hinted, quoted
from streamfrom.sqlparse_ext.text.identifiers import literal, text_literal
from streamfrom.sqlparse_ext.writes.completion import STATE


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.sqlparse_ext.stored_forms import ColumnType


# One answer looks at this many priorities; a table may have as many as it has rows.
PRIORITIES_MAX: Final = 32
# A query reads rows of about this many bytes, unless they are few.
BYTES_MAX: Final = 8 << 20
ROWS_MIN: Final = 4
_NUMBER: Final = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
STATUS_COLUMNS: Final = ("priority", "epoch", "time_next", "time_acked")


class PeekState(StrEnum):
    """The state of a message according to its row. A first delivery exists only in memory until its lease is written."""

    READY = "ready"
    SCHEDULED = "scheduled"
    """For later; also what was sent and whose lease is written, which the row does not show."""
    BLOCKED = "blocked"
    """Its `vt_after` group is not done, as far as a claim has seen."""
    PARKED = "parked"
    ACKED = "acked"
    """The latest acks alone, without a next page."""
    ALL = "all"
    """Every row, by its id."""


class PeekPlace(NamedTuple):
    """Where a page begins.

    priority: None for rows without one.
    is_begun: rows of this priority were read up to *time_ns*, None for NULL, and of that time up to *ident*, raw.
    """

    priority: int | None
    is_begun: bool = False
    time_ns: int | None = None
    ident: bytes | None = None


class PeekKeys(NamedTuple):
    """The ids of a page, as `MessageTable.id_literal` has them, and where the next one begins; None at the end."""

    ids: tuple[bytes, ...]
    place: PeekPlace | None = None


class PeekRow(NamedTuple):
    """A row: its raw id, its status columns, and the requested columns, shortened by the server."""

    id: bytes
    priority: bytes | None
    epoch: bytes | None
    time_next: bytes | None
    time_acked: bytes | None
    values: tuple[bytes | None, ...]


class Match(NamedTuple):
    """Rows whose *column* has a value, as the server compares, or contains it byte for byte."""

    column: str
    value: bytes
    contains: bool = False

    def condition(self, table: MessageTable) -> bytes:
        """Return the condition of SQL."""
        name, column = quoted(self.column), self._type(table)
        if not self.contains:
            value = literal(self.value)
            # A JSON document of MySQL equals no string, and bits equal none on any server.
            if column.kind == "json":
                value = b"CAST(%b AS JSON)" % value
            elif column.kind == "bit":
                value = b"0x%b" % self.value.hex().encode()
            return b"%b = %b" % (name, value)
        # LIKE on bytes takes half a millisecond for a megabyte, every way by characters 5 to 40 ms.
        escaped = re.sub(rb"[|%_]", rb"|\g<0>", self.value)
        pattern = literal(b"%%%b%%" % escaped)
        charset = column.collation.partition("_")[0]
        if charset not in {"", "utf8mb4"}:
            pattern = b"CONVERT(%b USING %b)" % (pattern, charset.encode())
        return b"%b LIKE CAST(%b AS BINARY) ESCAPE '|'" % (name, pattern)

    def fits(self, table: MessageTable) -> bool:
        """Return whether the column may have such a value: servers read `abc` as 0, and `7x` as 7."""
        is_number = not self.contains and self._type(table).kind in NUMBER_TYPES
        return not is_number or _NUMBER.fullmatch(self.value) is not None

    def _type(self, table: MessageTable) -> ColumnType:
        return table.types[table.columns.index(self.column)]


class Ways(NamedTuple):
    """How rows of a value are found.

    row_bytes: how long a row is, about.
    by_index: one that has the rows of a value in the order of their ids; None without one.
    """

    row_bytes: int
    by_index: str | None

    def rows_at_once(self, most: int) -> int:
        """Return how many rows one query may read whole, *most* at most."""
        return min(most, max(ROWS_MIN, BYTES_MAX // max(self.row_bytes, 1)))


def peek(
    table: MessageTable, state: PeekState, place: PeekPlace | None, now_ns: int, limit: int
) -> Conversation[PeekKeys]:
    """Read the keys of at most *limit* messages in *state*, from *place* on or the first ones."""
    if state is PeekState.ACKED:
        latest = b"time_acked IS NOT NULL ORDER BY time_acked DESC LIMIT %d" % limit
        answer = yield _keys(table, latest, table.purge_index)
        return PeekKeys(_ids(table, answer))
    if state is PeekState.ALL:
        return (yield from peek_by_id(table, b"TRUE", table.id_index, place, limit))
    if place is None:
        has_null = not table.has_priority or table.priority_nullable
        first = None if has_null else (yield from next_priority(table, None))
        if first is None and not has_null:
            return PeekKeys(())
        place = PeekPlace(first)
    ids: list[bytes] = []
    for _ in range(PRIORITIES_MAX):
        for where in _lanes(table, state, place, now_ns):
            answer = yield _keys(
                table, where + b" LIMIT %d" % (limit - len(ids)), table.time_index
            )
            ids += _ids(table, answer)
            if len(ids) == limit:
                (ident, time_ns, *_), _ = answer.rows[-1]
                last = None if time_ns is None else int(time_ns)
                behind = PeekPlace(place.priority, is_begun=True, time_ns=last, ident=ident)
                return PeekKeys(tuple(ids), behind)
        following = (
            (yield from next_priority(table, place.priority)) if table.has_priority else None
        )
        if following is None:
            return PeekKeys(tuple(ids))
        place = PeekPlace(following)
    return PeekKeys(tuple(ids), place)


def ways(table: MessageTable, match: Match | None) -> Conversation[Ways]:
    """Return how rows are read, and how those of *match* are found."""
    name = text_literal(table.name)
    index = b"NULL"
    if match is not None and not match.contains:
        # The rows of one value are in the order of their ids if no other column comes in between.
        index = (
            b"(SELECT MIN(s.index_name) FROM information_schema.statistics AS s WHERE"
            b" s.table_schema = DATABASE() AND s.table_name = %b AND s.column_name = %b AND s.seq_in_index = 1"
            b" AND s.sub_part IS NULL AND s.index_type = 'BTREE' AND NOT EXISTS (SELECT 1 FROM"
            b" information_schema.statistics AS o WHERE o.table_schema = DATABASE() AND o.table_name = %b"
            b" AND o.index_name = s.index_name AND o.seq_in_index = 2))"
            % (name, text_literal(match.column), name)
        )
    answer = yield StoreQuery(
        b"SELECT t.avg_row_length, %b FROM information_schema.tables AS t"
        b" WHERE t.table_schema = DATABASE() AND t.table_name = %b" % (index, name),
        2,
    )
    for (length, found), _ in answer.rows:
        return Ways(int(length or 0), None if found is None else found.decode())
    return Ways(0, None)


def rows_of(
    table: MessageTable,
    ids: Sequence[bytes],
    columns: Sequence[str],
    length: int,
    where: bytes = b"TRUE",
) -> Conversation[tuple[PeekRow, ...]]:
    """Read rows by their ids, in that order, without those that are gone or do not fit *where*.

    ids: as `MessageTable.id_literal` has them.
    length: how many characters of a value are read, or bytes of a binary one.
    """
    if not ids:
        return ()
    status = [
        quoted(one) if one != "priority" or table.has_priority else b"NULL"
        for one in STATUS_COLUMNS
    ]
    values = [b"LEFT(%b, %d)" % (quoted(one), length) for one in columns]
    ident = quoted(table.id_column)
    answer = yield StoreQuery(
        b"SELECT %b FROM %b WHERE %b IN (%b) AND %b"
        % (
            b", ".join([ident, *status, *values]),
            by_id(table),
            ident,
            b", ".join(ids),
            where,
        ),
        1 + len(status) + len(values),
    )
    found = {}
    for row, _ in answer.rows:
        raw, priority, epoch, time_next, time_acked, *rest = row
        one = PeekRow(raw or b"", priority, epoch, time_next, time_acked, tuple(rest))
        found[table.id_literal(one.id)] = one
    return tuple(found[one] for one in dict.fromkeys(ids) if one in found)


def in_state(state: PeekState, now_ns: int) -> bytes:
    """Return the condition of rows in *state*."""
    unacked = b"time_acked IS NULL"
    if state is PeekState.ACKED:
        return b"time_acked IS NOT NULL"
    if state is PeekState.READY:
        return unacked + b" AND (time_next IS NULL OR time_next <= %d)" % now_ns
    if state is PeekState.SCHEDULED:
        return unacked + b" AND time_next > %d AND time_next < %d" % (now_ns, HELD_NS)
    constant = _CONSTANTS.get(state)
    return b"TRUE" if constant is None else unacked + b" AND time_next = %d" % constant


def can_peek(table: MessageTable) -> bool:
    """Return whether indexes find the rows of each state; without them every page would walk the table."""
    return None not in (table.time_index, table.purge_index, table.id_index)


def shown_columns(table: MessageTable) -> tuple[str, ...]:
    """Return the columns of a table that are neither its id nor its status, including those that a stream does not send."""
    own = {*STATUS_COLUMNS, table.id_column.lower(), *([STATE] if table.has_state else [])}
    return tuple(name for name in table.columns if name.lower() not in own)


_CONSTANTS: Final = {PeekState.BLOCKED: HELD_NS, PeekState.PARKED: PARKED_NS}


def _lanes(
    table: MessageTable, state: PeekState, place: PeekPlace, now_ns: int
) -> Iterator[bytes]:
    """Yield the conditions and orders of one priority, one after the other, from *place* on."""
    ident = quoted(table.id_column)
    where = b"time_acked IS NULL"
    if table.has_priority:
        number = place.priority
        where += b" AND priority IS NULL" if number is None else b" AND priority = %d" % number
    by_id = _behind(table, place) + b" ORDER BY " + ident
    constant = _CONSTANTS.get(state)
    if constant is not None:
        yield where + b" AND time_next = %d" % constant + by_id
        return
    below = now_ns + 1 if state is PeekState.READY else HELD_NS
    if place.is_begun and place.time_ns is not None:
        yield where + b" AND time_next = %d" % place.time_ns + by_id
        below = min(below, place.time_ns)
    elif state is PeekState.READY and table.null_lane:
        yield where + b" AND time_next IS NULL" + by_id
    times = b" AND time_next < %d" % below
    if state is PeekState.SCHEDULED:
        times += b" AND time_next > %d" % now_ns
    yield where + times + b" ORDER BY time_next DESC, " + ident


def peek_by_id(
    table: MessageTable, where: bytes, index: str | None, place: PeekPlace | None, limit: int
) -> Conversation[PeekKeys]:
    """Read the keys of at most *limit* rows, which *index* has in the order of their ids, from *place* on or the first ones."""
    behind = b"" if place is None else _behind(table, place)
    order = b" ORDER BY %b LIMIT %d" % (quoted(table.id_column), limit)
    answer = yield _keys(table, where + behind + order, index)
    ids, more = _ids(table, answer), None
    if len(ids) == limit:
        (ident, *_), _ = answer.rows[-1]
        more = PeekPlace(None, is_begun=True, ident=ident)
    return PeekKeys(ids, more)


def _ids(table: MessageTable, answer: StoreAnswer) -> tuple[bytes, ...]:
    return tuple(table.id_literal(raw or b"") for (raw, *_), _ in answer.rows)


def _behind(table: MessageTable, place: PeekPlace) -> bytes:
    if place.ident is None:
        return b""
    return b" AND %b > %b" % (quoted(table.id_column), table.id_literal(place.ident))


def _keys(table: MessageTable, where: bytes, index: str | None) -> StoreQuery:
    return StoreQuery(
        b"SELECT %b, time_next FROM %b WHERE %b"
        % (quoted(table.id_column), hinted(table, index), where),
        2,
    )
