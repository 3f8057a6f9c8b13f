"""The rows of `tests.sim.memory_store`, and what they say of keys, as `engine.messaging.claims.ordered_claim` asks a database. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from streamfrom.engine.messaging.order.key_order import in_turn, may_go
from streamfrom.engine.messaging.queue.key_walk import NO_KEY, NextKey, RowsOfIds
from streamfrom.engine.messaging.queue.poll import NextPriority, PollPart, PollSelect
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimResult, KeyFound, MessageKey
from streamfrom.sqlparse_ext.text.identifiers import literal


@dataclass(slots=True)
class StoredRow:
    """One message in memory; the id is a literal. NULL is None.

    is_locked: a transaction that is under way holds it, so a claim passes over it.
    key: the literal of its key; None for NULL.
    group, after: the groups that it belongs to and comes after.
    """

    id: bytes
    priority: int = 50
    epoch: int = 0
    time_next_ns: int | None = 0
    time_acked_ns: int | None = None
    payload: bytes = b""
    is_locked: bool = False
    key: bytes | None = None
    group: bytes | None = None
    after: bytes | None = None


def turns_of(table, rows, ids, now_ns, known_keys):
    """Return what `engine.messaging.claims.ordered_claim` reads before it claims."""
    in_order = table.properties.in_order or 1
    unacked = [row for row in rows.values() if row.time_acked_ns is None]
    wanted = set(ids)
    asked = {
        row.id: (b"''" if table.key_column is None else row.key)
        for row in unacked
        if row.id in wanted
    } | dict(known_keys)
    due = [
        ident
        for ident in asked
        if ident in known_keys or (rows[ident].time_next_ns or 0) <= now_ns
    ]
    counts = Counter(key for ident in due if (key := asked[ident]) is not None)
    found: dict[bytes, KeyFound] = {}
    chosen: dict[bytes, MessageKey] = {}
    for key, count in counts.items():
        every = [
            (row.epoch, MessageKey(row.id, row.priority, row.time_next_ns or 0))
            for row in unacked
            if table.key_column is None or row.key == key
        ]
        started = [one for epoch, one in every if epoch and one.time_next_ns < PARKED_NS]
        new = [one for epoch, one in every if not epoch and one.time_next_ns <= now_ns]
        heads = sorted(new, key=in_turn)[: min(in_order, count) + 1]
        found[key] = KeyFound(tuple(started), tuple(heads))
        chosen.update((one.id, one) for one in may_go(found[key], count, in_order, now_ns))
    later = {i: rows[i].time_next_ns or 0 for i in asked if i not in due}
    keys = {ident: asked[ident] if ident in due else None for ident in asked}
    return ClaimResult((), later, asked_keys=keys, found=found, chosen=chosen)


def by_id(row):
    """Sort as a database does that reads along the key."""
    return _place(row.id)


def _place(ident):
    return len(ident), ident  # the numeric order of the non-negative ids of tests


def answer(about, rows):
    """Answer one of the poll's questions about unacked *rows* as the database would."""
    if isinstance(about, RowsOfIds):
        return [
            ((row.id, b"%d" % row.priority, _moment(row), row.key), b"")
            for row in rows
            if row.id in about.ids
        ]
    if isinstance(about, NextKey):
        keys = [
            int(row.key)
            for row in rows
            if row.key is not None
            and (not about.after or int(row.key) > int(about.after))
            and (not about.up_to or int(row.key) <= int(about.up_to))
        ]
        return [((literal(min(keys)) if keys else None,), b"")]
    if isinstance(about, NextPriority):
        above = [
            row.priority
            for row in rows
            if (about.after is None or row.priority > about.after) and _is_of(row, about.key)
        ]
        return [((literal(min(above)) if above else None,), b"")]
    assert isinstance(about, PollSelect)
    found = [
        row
        for row in rows
        if row.priority == about.priority
        and _is_of(row, about.key)
        and _is_in(row, about)
        and not (row.key in about.passed_over and (row.time_next_ns or 0) <= about.now_ns)
        and not (about.span and about.span.after and by_id(row) <= _place(about.span.after))
    ]
    latest_first = about.part is PollPart.DUE_NEWEST
    # Ties stand in the order of the id, backwards, as on a descending index read in reverse.
    found.sort(key=by_id, reverse=about.part is PollPart.SOONEST)
    if about.part is not PollPart.ZERO:
        found.sort(key=lambda row: row.time_next_ns or 0, reverse=latest_first)
    return [
        ((row.id, _moment(row), *((row.key,) if about.with_keys else ())), b"")
        for row in found[: about.limit]
    ]


def _moment(row):
    return None if row.time_next_ns is None else b"%d" % row.time_next_ns


def _is_of(row, key):
    return not key or row.key == (None if key == NO_KEY else key)


def _is_in(row, select: PollSelect):
    match select.part:
        case PollPart.SOONEST:
            return True
        case PollPart.ZERO:
            return row.time_next_ns == 0
        case PollPart.NULL:
            return row.time_next_ns is None
        case PollPart.DUE | PollPart.DUE_NEWEST:
            return row.time_next_ns is not None and 0 < row.time_next_ns <= select.now_ns
        case PollPart.TIMED:
            assert select.span is not None
            moment_ns = row.time_next_ns or 0
            return moment_ns > 0 and select.span.from_ns <= moment_ns <= select.span.to_ns
