"""Reading the soonest keys of a shard, in a few statements that stay cheap at any size.

The keys of one priority fall into two lanes: *fresh* (``time_next`` 0 or NULL: never sent, always
due) and *timed*. A read shows how far each lane is known: everything in
``[floor, horizon]`` is in the answer, and ``more`` means that rows were left out.

For each priority that exists, a poll runs:

* normally one statement for the n soonest rows of either lane: NULL comes first, then 0, then
  the moments in order, due or not;
* if rows that are already due fill that answer, one statement for each lane. The lanes share
  the room, so that neither a flood of new rows nor a flood of retries hides the other.

If keys take turns, each row is read with its key, and rows lie in the lanes of their keys,
unless too many keys are known. If due rows had to be left out, a walk goes along the index of the
keys, some in each poll. Each of these keys is read separately, so that no key, however flooded, hides
another one's rows.

A cache that is larger than SPAN_KEYS is not read whole at each interval, but span by span, in turn: the rows of a known
part of a lane are added to the known ones, or replace them. By then due rows are claimed, and a claim notices rows that are
gone. The rows of one moment are read together, and the next intervals read less in return.

With several priorities each gets an equal share first. The rest goes to priorities that
had to leave rows out: due rows before later ones, the most urgent first.

Traps, measured at a million rows: a range on ``time_next`` in its order sorts the whole range
on MySQL with a descending index, so it is bounded by now and used only under overload, and that of a span has no
order;
``time_next = 0 OR time_next IS NULL`` sorts (60 ms against 1.5); DISTINCT priority walks
everything (80 ms), while a step of the MIN chain costs 0.06 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final

from streamfrom.engine.messaging.queue.key_walk import NO_KEY, literal_of, rows_of_ids, walk
from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey
from streamfrom.engine.messaging.table.sql_names import forced, quoted
from streamfrom.engine.messaging.table.store_job import AboutShard, Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation, StoreAnswer
    from streamfrom.engine.messaging.table.message_table import MessageTable


NOTHING_NS: Final = -1  # a horizon below every time: no key may be added to the lane
PRIORITIES_MAX: Final = 1000
# A larger cache is read in parts of this many keys per interval, about 5 ms for proxy and server each.
SPAN_KEYS: Final = 1000
# A lane that left rows out is read again when this many keys are left, or half of a shorter one. Reading 10,000 takes
# 25 ms, in which a drain uses 500. At half of a long lane each key was read twice, a sixth of the proxy's time.
LOW_KEYS: Final = 1000
# New messages wait for the running poll, so none may take long.
KEY_ROOM_MAX: Final = 1000
# Each claim looks at all known keys.
KEYS_KNOWN_MAX: Final = 200


class PollPart(Enum):
    """The rows of a priority that a statement reads."""

    SOONEST = auto()  # in order of time_next, NULL first
    ZERO = auto()
    NULL = auto()
    DUE = auto()  # 0 < time_next <= now, soonest first
    DUE_NEWEST = auto()  # the same, latest first
    TIMED = auto()  # of a span, in no order


@dataclass(frozen=True, slots=True)
class KeySpan:
    """A part of a lane: moments of the timed lane, or ids of rows that were never sent.

    after: for rows that were never sent, the id before the first of them; b"" for the beginning.
    from_ns, to_ns: for the timed lane, the moments, both included.
    """

    priority: int
    part: PollPart
    limit: int
    after: bytes = b""
    from_ns: int = 0
    to_ns: int = FOREVER_NS


@dataclass(frozen=True, slots=True)
class SpanRead:
    """The rows of a span; more: its limit left rows out."""

    span: KeySpan
    keys: Sequence[MessageKey]

    @property
    def more(self) -> bool:
        """Return whether rows may have been left out."""
        return len(self.keys) >= self.span.limit


@dataclass(frozen=True, slots=True)
class PollRequest:
    """A queue's request to a poll.

    limit: the number of keys for which the queue has room.
    extra: the number of keys in flight or lately not won: a poll may find them, but they need no room.
    overloaded: the keys and priorities whose lanes were full of due rows after the last poll.
    named: keys, as literals, to read separately from all others; half of the room is theirs.
    is_of_named: nothing else is read.
    passed_over: keys, as literals, whose due messages are not wanted.
    walked_to: up to which key, as a literal, the last poll walked; b"" for the end.
    news: ids of messages of which nothing else is known.
    spans: known parts to read again, perhaps none, until *limit* keys are read; otherwise only priorities
        that are not in *known* are read. None to read everything.
    low: while more keys than this are due, later ones need not be known.
    """

    limit: int
    extra: int = 0
    overloaded: frozenset[tuple[bytes, int]] = frozenset()
    named: tuple[bytes, ...] = ()
    is_of_named: bool = False
    passed_over: tuple[bytes, ...] = ()
    walked_to: bytes = b""
    news: tuple[bytes, ...] = ()
    spans: tuple[KeySpan, ...] | None = None
    known: frozenset[int] = frozenset()
    low: int = LOW_KEYS


@dataclass(frozen=True, slots=True)
class TierRead:
    """The rows of one priority that a poll found.

    fresh_more, timed_more: rows of the lane were left out.
    floor_ns, horizon_ns: the timed lane has every key in [floor_ns, horizon_ns], but perhaps not all
        that are due exactly at the edge.
    key: the key that was read separately; b"" for rows of all keys.
    """

    priority: int
    fresh: Sequence[MessageKey]
    fresh_more: bool
    timed: Sequence[MessageKey]
    timed_more: bool
    floor_ns: int
    horizon_ns: int
    key: bytes = b""

    def __len__(self) -> int:
        return len(self.fresh) + len(self.timed)


@dataclass(frozen=True, slots=True)
class PollResult:
    """All tiers of a shard; a priority that is missing has no rows.

    is_of_named: they are only those of the named keys.
    news: those messages of the request that exist and are unacked, with their keys.
    walked_to: see `PollRequest`.
    spans: those of the request; None if everything was read.
    """

    tiers: tuple[TierRead, ...]
    is_of_named: bool = False
    news: tuple[MessageKey, ...] = ()
    walked_to: bytes = b""
    spans: tuple[SpanRead, ...] | None = None


@record
class Poll(AboutShard):
    """The job of reading the soonest keys."""

    name: ClassVar = "poll"
    access: ClassVar = Access.READ

    request: PollRequest

    def talk(self, table: MessageTable, at: At) -> Conversation[PollResult]:
        """Return its conversation."""
        return poll(table, self.request, at.now_ns)


def poll(table: MessageTable, request: PollRequest, now_ns: int) -> Conversation[PollResult]:
    """Read the soonest keys of one shard. Requires autocommit and READ COMMITTED."""
    if request.spans is not None:
        reader = _PollReader(table, request, now_ns)
        return (yield from _poll_spans(reader, request, request.spans))
    named: list[TierRead] = []
    for key in request.named:
        room = max(1, request.limit // 2 // len(request.named))
        named += yield from _read(_PollReader(table, request, now_ns, key), room, now_ns)
    news = yield from rows_of_ids(table, request.news)
    if request.is_of_named:
        return PollResult(tuple(named), is_of_named=True, news=news)
    room = max(1, request.limit - sum(len(tier) for tier in named))
    if not table.properties.fair:
        tiers = yield from _read(_PollReader(table, request, now_ns), room, now_ns)
        return PollResult((*named, *tiers))
    return (yield from _fair_poll(table, request, now_ns, (room, named, news)))


def _poll_spans(
    reader: _PollReader, request: PollRequest, wanted: Sequence[KeySpan]
) -> Conversation[PollResult]:
    """Read some of the known spans again, and the soonest keys of unknown priorities."""
    priorities = yield from reader.priorities()
    unknown = [priority for priority in priorities if (priority or 0) not in request.known]
    tiers = yield from reader.tiers(unknown, SPAN_KEYS)
    spans: list[SpanRead] = []
    room = request.limit
    for span in wanted:
        is_timed = span.part is PollPart.TIMED
        read = yield from reader.span(span if is_timed else replace(span, limit=room))
        spans.append(read)
        room -= len(read.keys)
        if read.more or room <= 0:
            break
    return PollResult(tuple(tiers), spans=tuple(spans))


def _fair_poll(
    table: MessageTable,
    request: PollRequest,
    now_ns: int,
    begun: tuple[int, list[TierRead], tuple[MessageKey, ...]],
) -> Conversation[PollResult]:
    """Read the soonest keys, and if due ones are left out, those of some keys."""
    room, named, news = begun
    half = max(1, room // 2)
    tiers: list[TierRead] = []
    # While this lasts the walk goes first: usually it passes all keys, and nothing else needs to be read.
    is_behind = bool(request.overloaded)
    if not is_behind:
        tiers = yield from _read(_PollReader(table, request, now_ns), half, now_ns)
        if not any(_leaves_out_due(tier, now_ns) for tier in tiers):
            return PollResult((*named, *_by_key(tiers, set(request.named))), news=news)
    keys, walked_to, is_all = yield from walk(table, request.walked_to)
    walked: list[TierRead] = []
    for key in keys:
        if key not in request.named:
            reader = _PollReader(table, request, now_ns, key)
            each = min(KEY_ROOM_MAX, max(1, half // len(keys)))
            walked += yield from _read(reader, each, now_ns)
    if is_all:
        return PollResult((*named, *walked), news=news, walked_to=walked_to)
    if is_behind:
        tiers = yield from _read(_PollReader(table, request, now_ns), half, now_ns)
    others = _by_key(tiers, {*request.named, *keys})
    return PollResult((*named, *walked, *others), news=news, walked_to=walked_to)


def _leaves_out_due(tier: TierRead, now_ns: int) -> bool:
    return tier.fresh_more or (tier.timed_more and tier.horizon_ns <= now_ns)


def _by_key(tiers: Sequence[TierRead], read: set[bytes]) -> list[TierRead]:
    """Divide the rows that were read for all keys among them; leave out the keys that were *read* separately.

    Rows that were left out remain with the rows that have no key here: of each key, everything up to the common horizon is known.
    """
    parts: list[TierRead] = []
    known: set[bytes] = set()
    for tier in tiers:
        lines: dict[bytes, tuple[list[MessageKey], list[MessageKey]]] = {b"": ([], [])}
        for one in (*tier.fresh, *tier.timed):
            key = one.key
            if key in read:
                continue
            if key not in known and len(known) < KEYS_KNOWN_MAX:
                known.add(key)
            if key not in known:
                key = b""
            line = lines.setdefault(key, ([], []))
            line[one.time_next_ns > 0].append(one._replace(key=key))
        for key, (fresh, timed) in lines.items():
            whole = replace(tier, fresh=fresh, timed=timed, key=key)
            parts.append(
                whole if not key else replace(whole, fresh_more=False, timed_more=False)
            )
    return parts


def _read(reader: _PollReader, limit: int, now_ns: int) -> Conversation[list[TierRead]]:
    """Read the soonest keys, *limit* for all priorities together."""
    priorities = yield from reader.priorities()
    if not priorities:
        return []
    # Equal shares first, so that no priority, however flooded, hides another one's rows.
    share = max(1, limit // len(priorities))
    tiers = yield from reader.tiers(priorities, share)
    room = limit - sum(len(tier) for tier in tiers)
    for index in sorted(
        range(len(tiers)), key=lambda index: _claim_on_room(tiers[index], now_ns)
    ):
        tier = tiers[index]
        if room <= 0 or not (tier.fresh_more or tier.timed_more):
            break
        if len(tier) < share:
            continue  # nothing was left out for want of room
        tiers[index] = yield from reader.tier(priorities[index], len(tier) + room)
        room -= len(tiers[index]) - len(tier)
    return tiers


def _claim_on_room(tier: TierRead, now_ns: int) -> tuple[bool, bool, int]:
    """Order tiers by the rows they left out: due rows, later rows, none."""
    return not _leaves_out_due(tier, now_ns), not tier.timed_more, tier.priority


def next_priority(table: MessageTable, after: int | None) -> Conversation[int | None]:
    """Return the least priority of unacked rows, above *after* if given; None without one."""
    return _least_priority(b"%b WHERE time_acked IS NULL" % quoted(table.name), after)


def _least_priority(rows: bytes, after: int | None) -> Conversation[int | None]:
    # The first step has no bound: MariaDB would take one below the column's type for
    # the least value of the type, and miss the rows that have it.
    bound = b"" if after is None else b" AND priority > %d" % after
    answer = yield StoreQuery(b"SELECT MIN(priority) FROM %b%b" % (rows, bound), 1)
    (least,), _ = answer.rows[0]
    return None if least is None else int(least)


class _PollReader:
    """The statements of one poll for the rows of all keys, or of one."""

    def __init__(
        self, table: MessageTable, request: PollRequest, now_ns: int, key: bytes = b""
    ) -> None:
        self._key = key
        self._table = table
        self._request = request
        self._now_ns = now_ns
        self._name = quoted(table.name)
        self._id = quoted(table.id_column)
        self._where = b"time_acked IS NULL"
        index = table.poll_index
        if key and table.key_column is not None:
            column = quoted(table.key_column)
            self._where += (
                b" AND %b IS NULL" % column
                if key == NO_KEY
                else b" AND %b = %b" % (column, key)
            )
            index = table.key_index
        self._hint = forced(index)
        self._has_keys = table.properties.fair and not key  # each row is read with its key

    def priorities(self) -> Conversation[list[int | None]]:
        """Return the priorities that have unacked rows, ascending; None stands for NULL."""
        if not self._table.has_priority:
            return [0]
        found: list[int | None] = [None] if self._table.priority_nullable else []
        hint = self._hint if self._key else b""
        rows = b"%b%b WHERE %b" % (self._name, hint, self._where)
        least: int | None = None
        while len(found) < PRIORITIES_MAX:
            least = yield from _least_priority(rows, least)
            if least is None:
                break
            found.append(least)
        return found

    def tiers(
        self, priorities: Sequence[int | None], room: int
    ) -> Conversation[list[TierRead]]:
        """Read up to *room* keys of each priority."""
        found: dict[int | None, TierRead] = {}
        for priority in priorities:
            found[priority] = yield from self.tier(priority, room)
        return list(found.values())

    def tier(self, priority: int | None, room: int) -> Conversation[TierRead]:
        """Read up to *room* keys of one priority."""
        # Keys in flight are found too and thrown away; they must not cost a place.
        limit = room + self._request.extra
        overloaded = (self._key, priority or 0) in self._request.overloaded
        if not overloaded:
            whole = yield from self._whole(priority, limit)
            if whole is not None:
                return whole
        lanes = yield from self._lanes(priority, limit)
        if lanes.fresh_more or lanes.timed_more:
            return lanes
        # The flood is over. Once little is left of it, rows that are not due yet matter again.
        if len(lanes) - self._request.extra <= self._request.low:
            whole = yield from self._whole(priority, limit)
            if whole is not None:
                return whole
        # Rows that are not due yet were not read; a later poll reads them.
        return replace(lanes, timed_more=True)

    def span(self, span: KeySpan) -> Conversation[SpanRead]:
        """Read the rows of a span."""
        keys = yield from self._keys(span.part, span.priority, span.limit, span)
        return SpanRead(span, keys)

    def _whole(self, priority: int | None, limit: int) -> Conversation[TierRead | None]:
        """Read the soonest rows; None if due rows alone fill the answer."""
        keys = yield from self._keys(PollPart.SOONEST, priority, limit)
        # Full, so rows may be left out. Exactly full may mean none: the next poll shows.
        more = len(keys) >= limit
        # An answer full of rows never sent (with newest: of due rows) hides those of the other lane.
        if more and (
            keys[-1].time_next_ns == 0
            or (self._table.properties.newest and keys[-1].time_next_ns <= self._now_ns)
        ):
            return None
        if not self._table.has_priority and self._table.null_lane:
            nulls = yield from self._keys(PollPart.NULL, priority, limit)
            if len(nulls) >= limit:
                return None
            keys = [*nulls, *keys]
        fresh = [key for key in keys if key.time_next_ns == 0]
        timed = keys[len(fresh) :]
        horizon_ns = timed[-1].time_next_ns if more else FOREVER_NS
        return TierRead(
            priority or 0, fresh, fresh_more=False, timed=timed, timed_more=more,
            floor_ns=0, horizon_ns=horizon_ns, key=self._key,
        )  # fmt: skip

    def _lanes(self, priority: int | None, limit: int) -> Conversation[TierRead]:
        """Read the due rows of each lane separately, and divide the room between the lanes."""
        newest = self._table.properties.newest
        zeros = yield from self._keys(PollPart.ZERO, priority, limit)
        nulls: list[MessageKey] = []
        if self._table.null_lane:
            nulls = yield from self._keys(PollPart.NULL, priority, limit)
        timed = yield from self._keys(
            PollPart.DUE_NEWEST if newest else PollPart.DUE, priority, limit
        )
        fresh_count = len(zeros) + len(nulls)
        timed_kept = _share(limit, len(timed), fresh_count)
        fresh_kept = min(fresh_count, max(1, limit - timed_kept))
        nulls_kept = _share(fresh_kept, len(nulls), len(zeros))
        kept = timed[:timed_kept]
        timed_more = len(timed) > timed_kept or len(timed) >= limit
        edge_ns = kept[-1].time_next_ns if timed_more else self._now_ns
        return TierRead(
            priority or 0,
            fresh=[*nulls[:nulls_kept], *zeros[: fresh_kept - nulls_kept]],
            fresh_more=fresh_count > fresh_kept or max(len(zeros), len(nulls)) >= limit,
            timed=kept,
            timed_more=timed_more,
            floor_ns=edge_ns if newest and timed_more else 0,
            horizon_ns=self._now_ns if newest else edge_ns,
            key=self._key,
        )

    def _keys(
        self, part: PollPart, priority: int | None, limit: int, span: KeySpan | None = None
    ) -> Conversation[list[MessageKey]]:
        sql = self._sql(part, priority, limit, span)
        answer: StoreAnswer = yield StoreQuery(sql, 2 + self._has_keys)
        read, key_of, key = priority or 0, self._table.id_literal, self._key
        return [
            # An id is never NULL: it is unique and found by value.
            # A moment before 1970 is as good as none, and sorts with those that have none.
            MessageKey(
                key_of(raw or b""),
                read,
                max(0, int(time_next or 0)),
                literal_of(self._table, own[0]) if own else key,
            )
            for (raw, time_next, *own), _ in answer.rows
        ]

    def _sql(
        self, part: PollPart, priority: int | None, limit: int, span: KeySpan | None
    ) -> bytes:
        table, where = self._table, self._where
        if table.has_priority:
            where += (
                b" AND priority IS NULL"
                if priority is None
                else b" AND priority = %d" % priority
            )
        where += self._not_passed_over()
        hint, order = self._hint, b"time_next"
        match part:
            case PollPart.SOONEST:
                if not table.has_priority:
                    # The first layout's index holds acked rows too, all under NULL.
                    where += b" AND time_next >= 0"
            case PollPart.ZERO:
                where += b" AND time_next = 0"
                # The first layout has no index that ends in the id, and few of these rows.
                order = self._id if table.has_priority else b""
            case PollPart.NULL:
                where += b" AND time_next IS NULL"
                hint, order = (hint if self._key else b""), self._id
            case PollPart.TIMED:
                assert span is not None
                where += b" AND time_next >= %d AND time_next <= %d" % (
                    max(span.from_ns, 1),
                    min(span.to_ns, FOREVER_NS - 1),
                )
                order = b""
            case PollPart.DUE | PollPart.DUE_NEWEST:
                where += b" AND time_next > 0 AND time_next <= %d" % self._now_ns
                if part is PollPart.DUE_NEWEST:
                    order = b"time_next DESC"
        if span is not None and table.time_index is not None:
            # MySQL walks along the ids of a small table, and would pass all acked ones.
            hint = forced(table.time_index)
        if span is not None and span.after:
            where += b" AND %b > %b" % (self._id, span.after)
        columns = [self._id, b"time_next"]
        if self._has_keys and table.key_column is not None:
            columns.append(quoted(table.key_column))
        return b"SELECT %b FROM %b%b WHERE %b%b LIMIT %d" % (
            b", ".join(columns),
            self._name,
            hint,
            where,
            b" ORDER BY " + order if order else b"",
            limit,
        )

    def _not_passed_over(self) -> bytes:
        """Return the condition that leaves out the due rows of keys whose due messages are not wanted."""
        passed_over = self._request.passed_over
        if self._key:
            is_wanted = self._key not in passed_over or self._key in self._request.named
            return b"" if is_wanted else b" AND time_next > %d" % self._now_ns
        if not passed_over or self._table.key_column is None:
            return b""
        key = quoted(self._table.key_column)
        return b" AND (%b IS NULL OR %b NOT IN (%b) OR time_next > %d)" % (
            key,
            key,
            b", ".join(passed_over),
            self._now_ns,
        )


def _share(room: int, wanted: int, others: int) -> int:
    """Return how many of *wanted* get a place if *others* want some too: half, and at least one."""
    return min(wanted, max(1, room // 2, room - others))
