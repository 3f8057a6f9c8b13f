"""Claims where messages of a key wait for one another: the rows are asked what may be sent. See `engine.messaging.order.key_order`.

What was asked for only shows which keys to look at. The keys of followers are known, which spares a hot key a question for each
message. Of each key the claim reads what has started, and which of the others go first. These it claims, whatever the
dispatcher believed to be due.

**Two round trips.** Mostly it is the followers' turn, so their rows are locked in the same write that asks of their keys. What is
not their turn is left as it is. The acks by which followers become due may come along: then a step of a key is one transaction. It
acknowledges one message and leases the next, or does neither.

Each key has two reads, many in one statement: one range over all keys would read every message of a hot key (measured with 500
keys).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.acks.ack_writes import acknowledge
from streamfrom.engine.messaging.claims.claim_writes import lease, lock_due
from streamfrom.engine.messaging.order.key_order import may_go, without
from streamfrom.engine.messaging.store.conversation import StoreQuery, together
from streamfrom.engine.messaging.store.row_writes import carefully, write
from streamfrom.engine.messaging.table.message import ClaimResult, KeyFound, MessageKey
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.engine.messaging.table.sql_names import by_id, hinted, lock_unacked, quoted


if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# Of one statement, which has two parts for each.
KEYS_AT_ONCE: Final = 50


@carefully
def claim_in_order(
    table: MessageTable,
    shard: ShardName,
    request: ClaimRequest,
    now_ns: int,
    *,
    is_careful: bool = False,
) -> Conversation[ClaimResult]:
    """Win the rows that may be sent of the keys of those asked for, no more of a key than were asked for; commits.

    Rows without a key wait for no other.
    """
    in_order = table.properties.in_order or 1
    asked, later = yield from _keys_of(table, request, now_ns)
    counts = Counter(key for key in asked.values() if key is not None)
    # Those without a key go in any case, and those whose keys were known follow what was acked.
    believed = [i for i, key in asked.items() if key is None or i in request.known_keys]
    queries = []
    acked_ns: dict[bytes, int] = {}
    if request.acks and is_careful:
        # Whom they let go is only known when it is known which of them are written.
        acked_ns = yield from _acknowledge(table, request.acks)
    elif request.acks:
        queries.append(_lock_acks(table, request.acks))
    queries += (reads := _reads(table, counts, in_order, now_ns, request.left_out))
    if believed:
        queries.append(lock_due(table, replace(request, ids=tuple(believed)), now_ns))
    if not queries:
        yield StoreQuery(b"COMMIT")
        return ClaimResult((), later, asked_keys=dict.fromkeys(later), acked=tuple(acked_ns))
    answers = yield from together(queries)
    first = len(queries) - len(reads) - bool(believed)
    if first:
        acked_ns = _acked(table, request.acks, answers[0])
    found = _found(table, counts, answers[first : first + len(reads)], request.held_ns)
    chosen = {
        one.id: one
        for key, count in counts.items()
        for one in may_go(without(found[key], acked_ns), count, in_order, now_ns)
    }
    ids = (*(ident for ident, key in asked.items() if key is None), *chosen)
    rows, types = ([*answers[-1].rows], answers[-1].types) if believed else ([], b"")
    if others := tuple(ident for ident in chosen if ident not in believed):
        answer = yield lock_due(table, replace(request, ids=others), now_ns)
        rows, types = [*rows, *answer.rows], answer.types
    going = {*ids}
    rows = [row for row in rows if table.id_literal(row[0][2] or b"") in going]
    result = yield from lease(
        table,
        shard,
        replace(request, ids=ids),
        rows,
        now_ns,
        None if is_careful else acked_ns,
        types=types,
        is_careful=is_careful,
    )
    return replace(
        result,
        passed_over={**later, **result.passed_over},
        asked_keys={**dict.fromkeys(later), **asked},
        found=found,
        chosen=chosen,
        acked=tuple(acked_ns),
    )


def _keys_of(
    table: MessageTable, request: ClaimRequest, now_ns: int
) -> Conversation[tuple[dict[bytes, bytes | None], dict[bytes, int]]]:
    """Return the keys of those asked for that are due, None for none, and when the others are due."""
    asked: dict[bytes, bytes | None] = dict(request.known_keys)
    later: dict[bytes, int] = {}
    # Mostly all are known, as each follows the one that was acked.
    if unknown := [ident for ident in request.ids if ident not in asked]:
        key = b"''" if table.key_column is None else quoted(table.key_column)
        ident = quoted(table.id_column)
        answer = yield StoreQuery(
            b"SELECT %b, IFNULL(time_next, 0), %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
            % (ident, key, by_id(table), ident, b", ".join(unknown)),
            3,
        )
        for (raw, time, key_raw), _ in answer.rows:
            one, time_next_ns = table.id_literal(raw or b""), int(time or 0)
            if time_next_ns > now_ns:
                later[one] = time_next_ns
            else:
                asked[one] = None if key_raw is None else table.key_literal(key_raw)
    return asked, later


def _reads(
    table: MessageTable,
    counts: Mapping[bytes, int],
    in_order: int,
    now_ns: int,
    left_out: Collection[bytes],
) -> list[StoreQuery]:
    """Return what asks what has started of each key, and for as many of the others as may go, and one more."""
    ident = quoted(table.id_column)
    name = hinted(table, table.order_index)
    parts = []
    for number, (key, count) in enumerate(counts.items()):
        where = b"time_acked IS NULL"
        if table.key_column is not None:
            where += b" AND %b = %b" % (quoted(table.key_column), key)
        if left_out:
            where += b" AND %b NOT IN (%b)" % (ident, b", ".join(sorted(left_out)))
        parts.append(
            b"(SELECT %d, 1, %b AS i, priority, IFNULL(time_next, 0) FROM %b WHERE %b"
            b" AND epoch > 0 AND (time_next IS NULL OR time_next < %d))"
            b" UNION ALL (SELECT %d, 0, %b AS i, priority, IFNULL(time_next, 0) FROM %b WHERE %b"
            b" AND epoch = 0 AND (time_next IS NULL OR time_next <= %d)"
            b" ORDER BY priority, time_next, %b LIMIT %d)"
            % (
                *(number, ident, name, where, PARKED_NS),
                *(number, ident, name, where, now_ns, ident, min(in_order, count) + 1),
            )
        )
    return [
        StoreQuery(b" UNION ALL ".join(parts[start : start + KEYS_AT_ONCE]), 5)
        for start in range(0, len(parts), KEYS_AT_ONCE)
    ]


def _found(
    table: MessageTable,
    counts: Iterable[bytes],
    answers: Iterable[StoreAnswer],
    held_ns: Mapping[bytes, int],
) -> dict[bytes, KeyFound]:
    """Return what the answers say of each key, and leases that are longer by now."""
    keys = list(counts)
    started: list[list[MessageKey]] = [[] for _ in keys]
    heads: list[list[MessageKey]] = [[] for _ in keys]
    for answer in answers:
        for (number, has_started, raw, priority, time), _ in answer.rows:
            ident = table.id_literal(raw or b"")
            time_ns = max(int(time or 0), held_ns.get(ident, 0))
            one = MessageKey(ident, int(priority or 0), time_ns)
            (started if has_started == b"1" else heads)[int(number or 0)].append(one)
    return {
        key: KeyFound(tuple(started[number]), tuple(heads[number]))
        for number, key in enumerate(keys)
    }


def _lock_acks(
    table: MessageTable, acks: Sequence[tuple[tuple[bytes, ...], int]]
) -> StoreQuery:
    return lock_unacked(table, [ident for ids, _ in acks for ident in ids])


def _acknowledge(
    table: MessageTable, acks: Sequence[tuple[tuple[bytes, ...], int]]
) -> Conversation[dict[bytes, int]]:
    """Write acks as far as the server takes them, each whole or not at all; return what is acknowledged."""
    locked = yield _lock_acks(table, acks)
    acked_ns = _acked(table, acks, locked)
    free = [(ids, ns) for ids, ns in acks if all(ident in acked_ns for ident in ids)]
    written = yield from write(
        free,
        lambda part: acknowledge(table, {ident: ns for ids, ns in part for ident in ids}),
    )
    return {ident: ns for ids, ns in written.done for ident in ids}


def _acked(
    table: MessageTable, acks: Sequence[tuple[tuple[bytes, ...], int]], locked: StoreAnswer
) -> dict[bytes, int]:
    """Return what is acknowledged: the messages of those acks of which every row is *locked* now."""
    free = {table.id_literal(raw or b"") for (raw,), _ in locked.rows} if acks else set()
    return {ident: ns for ids, ns in acks if free.issuperset(ids) for ident in ids}
