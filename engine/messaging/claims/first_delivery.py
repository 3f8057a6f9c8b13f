"""First deliveries without a write: the plain read before one. The lease is written later (`engine.messaging.leases.lease_writes`).

A message that was never sent is read, not claimed. Its row does not show that it was sent: the lease is in the
dispatcher's memory (`engine.messaging.leases.unwritten_leases`). Most messages are acknowledged before their lease is
written, so the ack is their only write. ``epoch`` of the row is 0 until then, and both the completed ack and the
written lease count the send.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.claims.claim_writes import claim
from streamfrom.engine.messaging.order.group_table import not_after
from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.backoff import spread, wait_range
from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult
from streamfrom.engine.messaging.table.sql_names import by_id, quoted


if TYPE_CHECKING:
    from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


def take(
    table: MessageTable,
    shard: ShardName,
    request: ClaimRequest,
    now_ns: int,
    ahead: StoreAnswer | None = None,
) -> Conversation[ClaimResult]:
    """Read what was never sent, and claim the rest, also what comes after a group; commits.

    ahead: the answer to `never_sent` for the request's ids and perhaps more, if it was asked before.
    """
    ids = [ident for ident in request.ids if ident not in request.unwritten]
    if not (table.properties.lease_delay_ns and ids):
        return (yield from claim(table, shard, request, now_ns))
    answer = ahead or (yield never_sent(table, request.columns, ids, now_ns))
    window = wait_range(table.properties, 0)
    asked, draw, types = frozenset(ids), request.draw, answer.types
    rows = [
        ClaimedRow(
            ident,
            shard,
            0,
            int(time_next or 0),
            now_ns + spread(window, draw()),
            payload,
            False,  # noqa: FBT003  (a keyword costs each message as much as the rest of its tuple)
            types,
        )
        for (time_next, raw), payload in answer.rows
        # An id that the database finds equal to another spelling is claimed under that one.
        if (ident := table.id_literal(raw or b"")) in asked
    ]
    if len(rows) == len(request.ids):
        return ClaimResult(tuple(rows))
    read = {row.id for row in rows}
    rest = tuple(ident for ident in request.ids if ident not in read)
    claimed = yield from claim(table, shard, replace(request, ids=rest), now_ns)
    return replace(claimed, rows=(*rows, *claimed.rows))


def never_sent(
    table: MessageTable, columns: Iterable[str], ids: Iterable[bytes], now_ns: int
) -> StoreQuery:
    """Return the query for those of *ids* that are due and were never sent, but for those that come after a group.

    The read needs no transaction, which would add two statements to the three of a message that comes alone. A server
    that is read-only gives no row to the read, and refuses the claim.
    """
    return StoreQuery(
        b"SELECT IFNULL(time_next, 0), %b, %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        b" AND (time_next IS NULL OR time_next <= %d) AND IFNULL(epoch, 0) = 0"
        b" AND NOT (@@global.read_only OR @@global.innodb_read_only)%b"
        % (
            quoted(table.id_column),
            b", ".join(quoted(column) for column in columns),
            by_id(table),
            quoted(table.id_column),
            b", ".join(ids),
            now_ns,
            not_after(table),
        ),
        2,
        is_apart=True,
    )
