"""Leases that are written late: those of first deliveries, and those that have become longer since they were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.leases.lease_reads import look
from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.store.row_writes import carefully, commit
from streamfrom.engine.messaging.table.message import LeaseWrites, Refused, Tried
from streamfrom.engine.messaging.table.sql_names import by_id, lock_unacked, quoted
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message import LeaseWrite
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import At
    from streamfrom.engine.sharding.keyspace import ShardName


@record
class WriteLeases:
    """The job of writing leases that are in memory alone."""

    name: ClassVar = "writing of leases"
    access: ClassVar = Access.DISPATCH

    shard: ShardName
    leases: tuple[LeaseWrite, ...]

    def talk(self, table: MessageTable, at: At) -> Conversation[LeaseWrites]:
        """Return its conversation."""
        return write_leases(table, self.leases, at.now_ns)


@carefully
def write_leases(
    table: MessageTable, leases: Sequence[LeaseWrite], now_ns: int, *, is_careful: bool = False
) -> Conversation[LeaseWrites]:
    """Let rows show leases: write ``time_next``, and ``epoch`` 1 for a first delivery; commit.

    Rows that another transaction has locked are passed over: most of them are being acked. A row of a first delivery that is
    not due any more was rescheduled: the send is counted in ``epoch``, and its ``time_next`` stays. Any other row that says
    something else than it should is left as it is.
    """
    ident = quoted(table.id_column)
    ids = [lease.id for lease in leases]
    answer = yield lock_unacked(table, ids, b"IFNULL(time_next, 0)", b"IFNULL(epoch, 0)")
    found = {
        table.id_literal(raw or b""): (int(time or 0), int(epoch or 0))
        for (raw, time, epoch), _ in answer.rows
    }
    until_ns, counted, changed = {}, [], []
    for lease in leases:
        if lease.id not in found:
            continue
        time_ns, epoch = found[lease.id]
        if time_ns in lease.shown_ns or (lease.is_first and epoch == 0 and time_ns <= now_ns):
            until_ns[lease.id] = lease.until_ns
        elif lease.is_first and epoch == 0:
            counted.append(lease.id)
        else:
            changed.append(lease.id)
    locked: list[bytes] = []
    if missing := {lease.id: lease for lease in leases if lease.id not in found}:
        for one, time_ns in (yield from look(table, [*missing])).items():
            if (left := missing.get(one)) is None:
                continue
            is_ours = time_ns in left.shown_ns or (left.is_first and time_ns <= now_ns)
            (locked if is_ours else changed).append(one)
    if not (until_ns or counted):
        yield StoreQuery(b"COMMIT")
        return LeaseWrites(tuple(changed), tuple(locked))

    def update(ids: Sequence[bytes]) -> bytes:
        moved = [one for one in ids if one in until_ns]
        whens = b"".join(b" WHEN %b THEN %d" % (one, until_ns[one]) for one in moved)
        time = b"time_next = CASE %b%b ELSE time_next END, " % (ident, whens) if moved else b""
        return b"UPDATE %b SET %bepoch = GREATEST(IFNULL(epoch, 0), 1) WHERE %b IN (%b)" % (
            by_id(table),
            time,
            ident,
            b", ".join(ids),
        )

    written = yield from commit([*until_ns, *counted], update, is_careful=is_careful)
    changed += [one for one in counted if one in written.done]
    return LeaseWrites(
        tuple(changed),
        (*locked, *written.left),
        {one: Refused(Tried.LEASE, why) for one, why in written.refused},
    )
