"""First deliveries without a write: the plain read before one, and the lease that is written later.

A message that was never sent is read, not claimed. Its row does not show that it was sent: the lease is in the
dispatcher's memory (`engine.messaging.unwritten_leases`). Most messages are acknowledged before their lease is
written, so the ack is their only write. ``epoch`` of the row is 0 until then, and both the completed ack and the
written lease count the send.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.backoff import spread, wait_range
from streamfrom.engine.messaging.claim_writes import claim
from streamfrom.engine.messaging.conversation import StoreQuery
from streamfrom.engine.messaging.group_table import not_after
from streamfrom.engine.messaging.message import (
    ClaimedRow,
    ClaimResult,
    LeaseWrites,
    Refused,
    Tried,
)
from streamfrom.engine.messaging.message_store import by_id, look, quoted
from streamfrom.engine.messaging.row_writes import carefully, commit


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.messaging.conversation import Conversation
    from streamfrom.engine.messaging.message import MessageKey
    from streamfrom.engine.messaging.message_store import ClaimRequest
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


def take(
    table: MessageTable, shard: ShardName, request: ClaimRequest, now_ns: int
) -> Conversation[ClaimResult]:
    """Read what was never sent, and claim the rest, also what comes after a group; commits.

    The read needs no transaction, which would add two statements to the three of a message that comes alone. A server
    that is read-only gives no row to the read, and refuses the claim.
    """
    ids = [ident for ident in request.ids if ident not in request.uncounted]
    if not (table.properties.lease_delay_ns and ids):
        return (yield from claim(table, shard, request, now_ns))
    answer = yield StoreQuery(
        b"SELECT IFNULL(time_next, 0), %b, %b FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        b" AND (time_next IS NULL OR time_next <= %d) AND IFNULL(epoch, 0) = 0"
        b" AND NOT (@@global.read_only OR @@global.innodb_read_only)%b"
        % (
            quoted(table.id_column),
            b", ".join(quoted(column) for column in request.columns),
            by_id(table),
            quoted(table.id_column),
            b", ".join(ids),
            now_ns,
            not_after(table),
        ),
        2,
        is_apart=True,
    )
    window = wait_range(table.properties, 0)
    asked, draw = frozenset(ids), request.draw
    rows = [
        ClaimedRow(
            ident,
            shard,
            0,
            int(time_next or 0),
            now_ns + spread(window, draw()),
            payload,
            False,  # noqa: FBT003  (a keyword costs each message as much as the rest of its tuple)
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


def write_leases(
    table: MessageTable, leases: Sequence[MessageKey], now_ns: int
) -> Conversation[LeaseWrites]:
    """Write leases that are in memory alone: ``epoch`` + 1, and ``time_next`` as *leases* say; commit.

    Rows that another transaction has locked are passed over: most of them are being acked. A row that is not due any
    more was rescheduled, so the send is counted in ``epoch``, and its ``time_next`` stays.
    """
    return carefully(
        lambda is_careful: _write_leases(table, leases, now_ns, is_careful=is_careful)
    )


def _write_leases(
    table: MessageTable, leases: Sequence[MessageKey], now_ns: int, *, is_careful: bool
) -> Conversation[LeaseWrites]:
    ident = quoted(table.id_column)
    answer = yield StoreQuery(
        b"SELECT %b, IFNULL(time_next, 0) FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        b" AND IFNULL(epoch, 0) = 0 FOR UPDATE SKIP LOCKED"
        % (ident, by_id(table), ident, b", ".join(lease.id for lease in leases)),
        2,
    )
    until_ns = {lease.id: lease.time_next_ns for lease in leases}
    times_ns = {
        one: int(time or 0)
        for (raw, time), _ in answer.rows
        if (one := table.id_literal(raw or b"")) in until_ns
    }
    locked: tuple[bytes, ...] = ()
    if missing := [one for one in until_ns if one not in times_ns]:
        found = yield from look(table, missing)
        locked = tuple(
            one for one, time_ns in found.items() if time_ns <= now_ns and one in until_ns
        )
    if not times_ns:
        yield StoreQuery(b"COMMIT")
        return LeaseWrites((), locked)

    def update(ids: Sequence[bytes]) -> bytes:
        due = [one for one in ids if times_ns[one] <= now_ns]
        whens = b"".join(b" WHEN %b THEN %d" % (one, until_ns[one]) for one in due)
        moved = b"time_next = CASE %b%b ELSE time_next END, " % (ident, whens) if due else b""
        return b"UPDATE %b SET %bepoch = 1 WHERE %b IN (%b)" % (
            by_id(table),
            moved,
            ident,
            b", ".join(ids),
        )

    written = yield from commit([*times_ns], update, is_careful=is_careful)
    return LeaseWrites(
        tuple(one for one in written.done if times_ns[one] > now_ns),
        (*locked, *written.left),
        {one: Refused(Tried.LEASE, why) for one, why in written.refused},
    )
