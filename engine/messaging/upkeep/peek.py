"""Some messages of a table by their state, for whoever looks: each question goes straight to its place in an index.

A page is read from a place on, and says where the next one begins. `poller_idx` is (time_acked, priority, time_next
DESC), so unacked rows are read priority by priority, and within one the latest time first, rows of one time by id: that
is the order of the index, which no server has to sort. Pure: a conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


# So many characters of a value are read, or bytes of a binary one, and one more that tells of a longer one.
VALUE_MAX: Final = 200
# One answer looks at so many priorities; a table may have as many as it has rows.
PRIORITIES_MAX: Final = 32
_STATUS_COLUMNS: Final = ("priority", "epoch", "time_next", "time_acked")


class PeekState(StrEnum):
    """What a row says of its message. A first delivery is in memory alone until its lease is written."""

    DUE = "due"
    WAITING = "waiting"
    """Due later: it is scheduled, or it was sent and its lease is written."""
    HELD = "held"
    """Its `vt_after` group is not done, as far as a claim has seen."""
    PARKED = "parked"
    ACKED = "acked"
    """The latest acks alone, without a next page."""


class PeekPlace(NamedTuple):
    """Where a page begins.

    priority: None for rows without one.
    is_begun: rows of this priority were read up to *time_ns*, None for NULL, and of that time up to *ident*, raw.
    """

    priority: int | None
    is_begun: bool = False
    time_ns: int | None = None
    ident: bytes | None = None


@dataclass(frozen=True, slots=True)
class Peek:
    """A page: the names of its columns, and its rows, with values that are shortened.

    ids: the ids of the rows, whole.
    place: where the next page begins; None at the end.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[bytes | None, ...], ...]
    place: PeekPlace | None
    ids: tuple[bytes, ...] = ()


def peek(
    table: MessageTable, state: PeekState, place: PeekPlace | None, now_ns: int, limit: int
) -> Conversation[Peek]:
    """Read at most *limit* messages in *state*, *place* on or the first ones."""
    shown = _columns(table)
    if state is PeekState.ACKED:
        latest = b"time_acked IS NOT NULL ORDER BY time_acked DESC LIMIT %d" % limit
        answer = yield _question(table, shown, latest, table.purge_index)
        return Peek(shown, tuple(row[2:] for row, _ in answer.rows), None)
    if place is None:
        has_null = not table.has_priority or table.priority_nullable
        first = None if has_null else (yield from _next_priority(table, None))
        if first is None and not has_null:
            return Peek(shown, (), None)
        place = PeekPlace(first)
    rows: list[tuple[bytes | None, ...]] = []
    ids: list[bytes] = []
    for _ in range(PRIORITIES_MAX):
        for where in _lanes(table, state, place, now_ns):
            room = limit - len(rows)
            answer = yield _question(
                table, shown, where + b" LIMIT %d" % room, table.time_index
            )
            rows += [row[2:] for row, _ in answer.rows]
            ids += [row[0] or b"" for row, _ in answer.rows]
            if len(rows) == limit:
                (ident, time_ns, *_), _ = answer.rows[-1]
                last = None if time_ns is None else int(time_ns)
                behind = PeekPlace(place.priority, is_begun=True, time_ns=last, ident=ident)
                return Peek(shown, tuple(rows), behind, tuple(ids))
        following = (
            (yield from _next_priority(table, place.priority)) if table.has_priority else None
        )
        if following is None:
            return Peek(shown, tuple(rows), None, tuple(ids))
        place = PeekPlace(following)
    return Peek(shown, tuple(rows), place, tuple(ids))


def can_peek(table: MessageTable) -> bool:
    """Return whether indexes find the rows of each state; without them every page would walk the table."""
    return table.time_index is not None and table.purge_index is not None


def _columns(table: MessageTable) -> tuple[str, ...]:
    status = [name for name in _STATUS_COLUMNS if name != "priority" or table.has_priority]
    own = {*status, table.id_column}
    rest = [name for name in table.streamed if name.lower() not in {one.lower() for one in own}]
    return (table.id_column, *status, *rest)


def _lanes(
    table: MessageTable, state: PeekState, place: PeekPlace, now_ns: int
) -> Iterator[bytes]:
    """Yield the conditions and orders of one priority, one after the other, from *place* on."""
    ident = _name(table.id_column)
    where = b"time_acked IS NULL"
    if table.has_priority:
        number = place.priority
        where += b" AND priority IS NULL" if number is None else b" AND priority = %d" % number
    behind = (
        b"" if place.ident is None else b" AND %b > %b" % (ident, table.id_literal(place.ident))
    )
    by_id = behind + b" ORDER BY " + ident
    constant = {PeekState.HELD: HELD_NS, PeekState.PARKED: PARKED_NS}.get(state)
    if constant is not None:
        yield where + b" AND time_next = %d" % constant + by_id
        return
    below = now_ns + 1 if state is PeekState.DUE else HELD_NS
    if place.is_begun and place.time_ns is not None:
        yield where + b" AND time_next = %d" % place.time_ns + by_id
        below = min(below, place.time_ns)
    elif state is PeekState.DUE and table.null_lane:
        yield where + b" AND time_next IS NULL" + by_id
    times = b" AND time_next < %d" % below
    if state is PeekState.WAITING:
        times += b" AND time_next > %d" % now_ns
    yield where + times + b" ORDER BY time_next DESC, " + ident


def _next_priority(table: MessageTable, after: int | None) -> Conversation[int | None]:
    bound = b"" if after is None else b" AND priority > %d" % after
    answer = yield StoreQuery(
        b"SELECT MIN(priority) FROM %b WHERE time_acked IS NULL%b" % (_name(table.name), bound),
        1,
    )
    ((least,), _) = answer.rows[0]
    return None if least is None else int(least)


def _question(
    table: MessageTable, shown: Sequence[str], where: bytes, index: str | None
) -> StoreQuery:
    # The id whole, for the place, and all of a row's values shortened by the server.
    values = b", ".join(b"LEFT(%b, %d)" % (_name(name), VALUE_MAX + 1) for name in shown)
    hint = b"" if index is None else b" FORCE INDEX (%b)" % _name(index)
    return StoreQuery(
        b"SELECT %b, time_next, %b FROM %b%b WHERE %b"
        % (_name(table.id_column), values, _name(table.name), hint, where),
        2 + len(shown),
    )


def _name(name: str) -> bytes:
    return quote_identifier(name).encode("utf-8", "surrogateescape")
