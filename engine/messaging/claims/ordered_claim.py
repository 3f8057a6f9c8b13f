"""The job of a claim, and claims in which messages of a key wait for one another: the rows decide what may be sent. See `engine.messaging.order.key_order`.

The requested messages only show which keys to look at. The keys of followers are known, which saves a hot key a query per
message. For each key the claim reads which messages have started, and which of the others go first. It wins these as any other claim
does, whatever the dispatcher believed to be due.

A sent message whose row does not show it (`engine.messaging.leases.unwritten_leases`) has started as well, wherever it stands among
those that were not sent; it is read by its id. Only the dispatcher starts messages, one claim after another, so its knowledge at the
beginning of a claim is true until the claim ends.

Each key has its own reads, many in one statement: one range over all keys would read every message of a hot key (measured with
500 keys).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from streamfrom.engine.messaging.claims.claim_writes import (
    ClaimRequest,
    claim,
    never_sent,
    take,
)
from streamfrom.engine.messaging.order.key_order import may_go
from streamfrom.engine.messaging.store.conversation import StoreQuery, together
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import ClaimResult, KeyFound, MessageKey
from streamfrom.engine.messaging.table.sql_names import by_id, hinted, quoted, read_unacked
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation, StoreAnswer
    from streamfrom.engine.messaging.table.message_table import MessageTable


# Keys in one statement, which has two parts for each.
KEYS_AT_ONCE: Final = 50


def claim_in_order(
    table: MessageTable, request: ClaimRequest, at: At
) -> Conversation[ClaimResult]:
    """Win the rows that may be sent of the requested messages' keys, at most as many per key as were requested.

    Rows without a key wait for no other. Where no other process sends any, a read may be enough.
    """
    in_order, now_ns = table.properties.in_order or 1, at.now_ns
    asked, later, sent = yield from _keys_of(table, request, now_ns)
    counts = Counter(key for key in asked.values() if key is not None)
    # Usually it is the turn of the followers, so they are read in the same write.
    ahead = (
        list(request.known_keys) if at.is_elected and table.properties.lease_delay_ns else []
    )
    reads = _reads(table, counts, sent, request, now_ns)
    if ahead:
        reads.append(never_sent(table, request.columns, ahead, now_ns))
    answers = (yield from together(reads)) if reads else ()
    read = answers[-1] if ahead else None
    found = _found(table, counts, answers[: len(reads) - bool(ahead)], request)
    chosen = {
        one.id: one
        for key, count in counts.items()
        for one in may_go(found[key], count, in_order, now_ns)
    }
    ids = (*(ident for ident, key in asked.items() if key is None), *chosen)
    if ids:
        request = replace(request, ids=ids)
        if not at.is_elected:
            won = yield from claim(table, request, at)
        else:
            is_read = request.known_keys.keys() >= {*ids}
            won = yield from take(table, request, at, read if is_read else None)
    else:
        yield StoreQuery(b"COMMIT", is_apart=True)
        won = ClaimResult(())
    return replace(
        won,
        passed_over={**later, **won.passed_over},
        asked_keys={**dict.fromkeys(later), **asked},
        found=found,
        chosen=chosen,
    )


def _keys_of(
    table: MessageTable, request: ClaimRequest, now_ns: int
) -> Conversation[tuple[dict[bytes, bytes | None], dict[bytes, int], dict[bytes, list[bytes]]]]:
    """Return the keys of requested messages that are due, None for none; when the others are due; and the unwritten ones of each key."""
    asked: dict[bytes, bytes | None] = dict(request.known_keys)
    later: dict[bytes, int] = {}
    sent: defaultdict[bytes, list[bytes]] = defaultdict(list)
    # Usually all are known, because each follows the one that was acked.
    unknown = {ident for ident in request.ids if ident not in asked}
    unplaced = set()
    for ident in request.unwritten:
        if key := request.sent_keys.get(ident, b""):
            sent[key].append(ident)
        elif key is not None:
            unplaced.add(ident)
    if wanted := sorted(unknown | unplaced):
        column = b"''" if table.key_column is None else quoted(table.key_column)
        answer = yield read_unacked(
            table, wanted, b"IFNULL(time_next, 0)", column, is_apart=True
        )
        for (raw, time, key_raw), _ in answer.rows:
            one, time_next_ns = table.id_literal(raw or b""), int(time or 0)
            key = None if key_raw is None else table.key_literal(key_raw)
            if one in unplaced and key is not None:
                sent[key].append(one)
            if one in unplaced and one not in unknown:
                continue
            if time_next_ns > now_ns:
                later[one] = time_next_ns
            else:
                asked[one] = key
    return asked, later, sent


def _reads(
    table: MessageTable,
    counts: Mapping[bytes, int],
    sent: Mapping[bytes, Sequence[bytes]],
    request: ClaimRequest,
    now_ns: int,
) -> list[StoreQuery]:
    """Return the queries for the messages that have started of each key, and for as many others as may go, plus one."""
    in_order = table.properties.in_order or 1
    # Sent messages may be among the unsent ones as long as their rows do not show it.
    unshown = in_order if request.unwritten else 0
    left_out = request.left_out
    ident = quoted(table.id_column)
    ordered = hinted(table, table.order_index)
    columns = b"%b AS i, priority, IFNULL(time_next, 0)" % ident
    is_live = b"(time_next IS NULL OR time_next < %d)" % PARKED_NS
    parts = []
    for number, (key, count) in enumerate(counts.items()):
        where = b"time_acked IS NULL"
        if table.key_column is not None:
            where += b" AND %b = %b" % (quoted(table.key_column), key)
        if left_out:
            where += b" AND %b NOT IN (%b)" % (ident, b", ".join(sorted(left_out)))
        parts.append(
            b"(SELECT %d, 1, %b FROM %b WHERE %b AND epoch > 0 AND %b)"
            % (number, columns, ordered, where, is_live)
        )
        if unwritten := sent.get(key):
            parts[-1] += (
                b" UNION ALL (SELECT %d, 1, %b FROM %b WHERE %b AND %b IN (%b) AND %b)"
                % (
                    *(number, columns, by_id(table), where),
                    *(ident, b", ".join(unwritten), is_live),
                )
            )
        parts[-1] += (
            b" UNION ALL (SELECT %d, 0, %b FROM %b WHERE %b AND epoch = 0"
            b" AND (time_next IS NULL OR time_next <= %d) ORDER BY priority, time_next, %b LIMIT %d)"
            % (
                *(number, columns, ordered, where, now_ns, ident),
                min(in_order, count) + 1 + unshown,
            )
        )
    return [
        StoreQuery(b" UNION ALL ".join(parts[start : start + KEYS_AT_ONCE]), 5, is_apart=True)
        for start in range(0, len(parts), KEYS_AT_ONCE)
    ]


def _found(
    table: MessageTable,
    counts: Iterable[bytes],
    answers: Iterable[StoreAnswer],
    request: ClaimRequest,
) -> dict[bytes, KeyFound]:
    """Return the state of each key from the answers, and from leases that rows do not show in full."""
    keys = list(counts)
    started: list[dict[bytes, MessageKey]] = [{} for _ in keys]
    heads: list[dict[bytes, MessageKey]] = [{} for _ in keys]
    for answer in answers:
        for (number, has_started, raw, priority, time), _ in answer.rows:
            ident = table.id_literal(raw or b"")
            sent = request.unwritten.get(ident)
            held_ns = request.held_ns.get(ident, sent and sent.time_next_ns)
            one = MessageKey(ident, int(priority or 0), max(int(time or 0), held_ns or 0))
            is_started = has_started == b"1" or held_ns is not None
            (started if is_started else heads)[int(number or 0)][ident] = one
    return {
        key: KeyFound(tuple(started[number].values()), tuple(heads[number].values()))
        for number, key in enumerate(keys)
    }


@record
class Claim(ClaimRequest):
    """A claim, as its scheduler wants it done."""

    name: ClassVar = "claim"
    access: ClassVar = Access.DISPATCH

    def talk(self, table: MessageTable, at: At) -> Conversation[ClaimResult]:
        """Return its conversation."""
        if table.properties.in_order is not None:
            return claim_in_order(table, self, at)
        # Without an election another process may send the same row; only a written claim prevents that.
        way = take if at.is_elected else claim
        return way(table, self, at)
