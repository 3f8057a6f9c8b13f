"""Claims where messages of a key wait for one another: the rows are asked what may be sent. See `engine.messaging.key_order`.

What was asked for only tells which keys to look at. The keys of followers are known, which spares a hot key a question for each
message. Of each key the claim reads what has started, and which of the others go first. These it claims, whatever the
dispatcher believed to be due.

Each key has two reads, many in one statement: one range over all keys would read every message of a hot key (measured with 500
keys).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.conversation import StoreQuery
from streamfrom.engine.messaging.key_order import may_go
from streamfrom.engine.messaging.message import ClaimResult, KeyFound, MessageKey
from streamfrom.engine.messaging.message_store import by_id, claim, quoted
from streamfrom.engine.messaging.retry_limit import PARKED_NS


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamfrom.engine.messaging.conversation import Conversation, Row
    from streamfrom.engine.messaging.message_store import ClaimRequest
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# Of one statement, which has two parts for each.
KEYS_AT_ONCE: Final = 50


def claim_in_order(
    table: MessageTable, shard: ShardName, request: ClaimRequest, now_ns: int
) -> Conversation[ClaimResult]:
    """Win the rows that may be sent of the keys of those asked for, no more of a key than were asked for; commits.

    Rows without a key wait for nobody.
    """
    in_order = table.properties.in_order or 1
    key = b"''" if table.key_column is None else quoted(table.key_column)
    asked: dict[bytes, bytes | None] = dict(request.known_keys)
    passed_over: dict[bytes, int] = {}
    rows: Sequence[Row] = ()
    # Mostly all are known, as each follows the one that was acked.
    if unknown := [ident for ident in request.ids if ident not in asked]:
        answer = yield StoreQuery(
            b"SELECT %b, IFNULL(time_next, 0), %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
            % (
                quoted(table.id_column),
                key,
                by_id(table),
                quoted(table.id_column),
                b", ".join(unknown),
            ),
            3,
        )
        rows = answer.rows
    for (raw, time, key_raw), _ in rows:
        ident, time_next_ns = table.id_literal(raw or b""), int(time or 0)
        if time_next_ns > now_ns:
            passed_over[ident] = time_next_ns
        else:
            asked[ident] = None if key_raw is None else table.key_literal(key_raw)
    counts = Counter(key for key in asked.values() if key is not None)
    found = yield from _found(table, counts, in_order, now_ns)
    chosen = {
        one.id: one
        for key, count in counts.items()
        for one in may_go(found[key], count, in_order, now_ns)
    }
    ids = (*(ident for ident, key in asked.items() if key is None), *chosen)
    result = ClaimResult(())
    if ids:
        result = yield from claim(table, shard, replace(request, ids=ids), now_ns)
    else:
        yield StoreQuery(b"COMMIT")
    return replace(
        result,
        passed_over={**passed_over, **result.passed_over},
        asked_keys={**dict.fromkeys(passed_over), **asked},
        found=found,
        chosen=chosen,
    )


def _found(
    table: MessageTable, counts: Mapping[bytes, int], in_order: int, now_ns: int
) -> Conversation[dict[bytes, KeyFound]]:
    """Read what has started of each key, and as many of the others as may go, and one more."""
    started: dict[bytes, list[MessageKey]] = {key: [] for key in counts}
    heads: dict[bytes, list[MessageKey]] = {key: [] for key in counts}
    ident = quoted(table.id_column)
    name = quoted(table.name)
    if table.order_index is not None:
        name += b" FORCE INDEX (%b)" % quoted(table.order_index)
    every = list(counts)
    for start in range(0, len(every), KEYS_AT_ONCE):
        keys, parts = every[start : start + KEYS_AT_ONCE], []
        for number, key in enumerate(keys):
            where = b"time_acked IS NULL"
            if table.key_column is not None:
                where += b" AND %b = %b" % (quoted(table.key_column), key)
            parts.append(
                b"(SELECT %d, 1, %b AS i, priority, IFNULL(time_next, 0) FROM %b WHERE %b"
                b" AND epoch > 0 AND (time_next IS NULL OR time_next < %d))"
                % (number, ident, name, where, PARKED_NS)
            )
            parts.append(
                b"(SELECT %d, 0, %b AS i, priority, IFNULL(time_next, 0) FROM %b WHERE %b"
                b" AND epoch = 0 AND (time_next IS NULL OR time_next <= %d)"
                b" ORDER BY priority, time_next, %b LIMIT %d)"
                % (number, ident, name, where, now_ns, ident, min(in_order, counts[key]) + 1)
            )
        answer = yield StoreQuery(b" UNION ALL ".join(parts), 5)
        for (number_text, has_started, raw, priority, time), _ in answer.rows:
            key = keys[int(number_text or 0)]
            one = MessageKey(table.id_literal(raw or b""), int(priority or 0), int(time or 0))
            (started if has_started == b"1" else heads)[key].append(one)
    return {key: KeyFound(tuple(started[key]), tuple(heads[key])) for key in counts}
