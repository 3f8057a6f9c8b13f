"""The rows of `tests.sim.memory_store`, and the facts about keys that `engine.messaging.claims.ordered_claim` queries. Pure."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from streamfrom.engine.messaging.order.key_order import in_turn, may_go
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimResult, KeyFound, MessageKey


@dataclass(slots=True)
class StoredRow:
    """One message in memory; the id is a literal. NULL is None.

    is_locked: an open transaction holds it, so a claim skips it.
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
    """Return the rows that `engine.messaging.claims.ordered_claim` reads before it claims."""
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
    """Sort like a database that reads along the key."""
    return _place(row.id)


def _place(ident):
    return len(ident), ident  # the numeric order of the non-negative ids of tests


def answer(table, sql, rows):
    """Answer one of a poll's questions about unacked *rows* as the database would: SQLite runs it."""
    name = sql.split(b"FROM ")[1].split(b" ")[0].decode()
    shard, there = _shard(name, table.key_column)
    # Ties are in the order of the id, backwards, as on a descending index read in reverse.
    wanted = [
        (_value(row.id), row.priority, row.time_next_ns, _value(row.key))
        for row in sorted(rows, key=by_id, reverse=True)
    ]
    if wanted != there:
        shard.execute(f"DELETE FROM {name}")
        shard.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, NULL, ?)", wanted)
        there[:] = wanted
    found = shard.execute(re.sub(rb" FORCE INDEX \(\S+\)", b"", sql).decode())
    return [
        (tuple(None if one is None else str(one).encode() for one in row), b"") for row in found
    ]


@lru_cache
def _shard(name, key_column):
    """Return a database with a table, and its rows. One per question would make histories take half as long again."""
    shard = sqlite3.connect(":memory:", isolation_level=None)
    shard.execute(
        f"CREATE TABLE {name} (id, priority, time_next, time_acked, `{key_column or 'no key'}`)"
    )
    return shard, list[tuple[object, ...]]()


def _value(text):
    """Return the value of a literal, None for NULL."""
    if text is None:
        return None
    return int(text) if text.isdigit() else text.decode().strip("'")
