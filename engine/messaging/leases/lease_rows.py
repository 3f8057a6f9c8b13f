"""Leases in rows: read them without a lock, write them late, shorten them, and undo a claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.store.row_writes import carefully, commit
from streamfrom.engine.messaging.table.backoff import PARKED_NS, wait_range
from streamfrom.engine.messaging.table.message import LateWrites, Refused, Shortenings, Tried
from streamfrom.engine.messaging.table.sql_names import (
    by_id,
    lock_unacked,
    quoted,
    read_unacked,
    update,
)
from streamfrom.engine.messaging.table.store_job import AboutShard, Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.leases.leases import Lease
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message import ClaimedRow, LeaseWrite, Refusals
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.table_settings import Properties
    from streamfrom.engine.sharding.keyspace import ShardName


@record
class Look(AboutShard):
    """The job of reading when the rows of messages in flight are due."""

    name: ClassVar = "look"
    access: ClassVar = Access.READ

    ids: tuple[bytes, ...]

    def talk(self, table: MessageTable, _at: At) -> Conversation[dict[bytes, int]]:
        """Return its conversation."""
        return look(table, self.ids)


@record
class FindLeases(AboutShard):
    """The job of reading which messages a former dispatcher has in flight."""

    name: ClassVar = "reading what is in flight"
    access: ClassVar = Access.READ

    def talk(self, table: MessageTable, at: At) -> Conversation[dict[bytes, int]]:
        """Read which messages were sent and are neither acked nor due again, as far as the rows show, and when their leases end.

        Walks over all rows that are due later, once per term of a dispatcher.
        """
        answer = yield StoreQuery(
            b"SELECT %b, epoch, time_next FROM %b WHERE time_acked IS NULL AND epoch > 0"
            b" AND time_next > %d AND time_next < %d"
            % (quoted(table.id_column), quoted(table.name), at.now_ns, PARKED_NS),
            3,
        )
        return {
            table.id_literal(raw or b""): time_next_ns
            for (raw, epoch, time), _ in answer.rows
            if is_lease(
                table.properties, int(epoch or 0), time_next_ns := int(time or 0), at.now_ns
            )
        }


def look(table: MessageTable, ids: Sequence[bytes]) -> Conversation[dict[bytes, int]]:
    """Read when rows are due, without a lock. Acked and deleted rows are left out."""
    answer = yield read_unacked(table, ids, b"IFNULL(time_next, 0)")
    return {
        table.id_literal(raw or b""): int(time_next or 0) for (raw, time_next), _ in answer.rows
    }


def is_lease(properties: Properties, epoch: int, time_next_ns: int, now_ns: int) -> bool:
    """Return whether an unacked row looks like a message in flight.

    A row that is due later than its last delivery could have made it was rescheduled by a client.
    """
    if epoch <= 0 or not now_ns < time_next_ns < PARKED_NS:
        return False
    longest = wait_range(properties, epoch - 1)
    return time_next_ns <= now_ns + longest.low_ns + longest.span_ns


@record
class WriteLeases(AboutShard):
    """The job of writing leases that exist only in memory."""

    name: ClassVar = "writing of leases"
    access: ClassVar = Access.DISPATCH

    leases: tuple[LeaseWrite, ...]

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[LateWrites]:
        """Let rows show leases: write ``time_next``, and ``epoch`` 1 for a first delivery; commit.

        Skips rows that another transaction has locked, as most of these are being acked. If the row of a first delivery is no longer
        due, a client has rescheduled it: this counts the delivery in ``epoch`` and keeps ``time_next``. Any other row that has changed
        is left alone.
        """
        ident = quoted(table.id_column)
        ids = [lease.id for lease in self.leases]
        answer = yield lock_unacked(table, ids, b"IFNULL(time_next, 0)", b"IFNULL(epoch, 0)")
        found = {
            table.id_literal(raw or b""): (int(time or 0), int(epoch or 0))
            for (raw, time, epoch), _ in answer.rows
        }
        until_ns, counted, changed = {}, [], []
        for lease in self.leases:
            if lease.id not in found:
                continue
            time_ns, epoch = found[lease.id]
            if time_ns in lease.shown_ns or (
                lease.is_first and epoch == 0 and time_ns <= at.now_ns
            ):
                until_ns[lease.id] = lease.until_ns
            elif lease.is_first and epoch == 0:
                counted.append(lease.id)
            else:
                changed.append(lease.id)
        locked: list[bytes] = []
        if missing := {lease.id: lease for lease in self.leases if lease.id not in found}:
            for one, time_ns in (yield from look(table, [*missing])).items():
                if (left := missing.get(one)) is None:
                    continue
                is_ours = time_ns in left.shown_ns or (left.is_first and time_ns <= at.now_ns)
                (locked if is_ours else changed).append(one)

        def written_to(ids: Sequence[bytes]) -> bytes:
            moved = [one for one in ids if one in until_ns]
            whens = b"".join(b" WHEN %b THEN %d" % (one, until_ns[one]) for one in moved)
            time = (
                b"time_next = CASE %b%b ELSE time_next END, " % (ident, whens) if moved else b""
            )
            return update(table, ids, time + b"epoch = GREATEST(IFNULL(epoch, 0), 1)")

        written = yield from commit([*until_ns, *counted], written_to, is_careful=at.is_careful)
        changed += [one for one in counted if one in written.done]
        return LateWrites(
            (*locked, *written.left),
            {one: Refused(Tried.LEASE, why) for one, why in written.refused},
            tuple(changed),
        )


@record
class Release:
    """The job of undoing the claim of rows that were sent to no receiver."""

    name: ClassVar = "release"
    access: ClassVar = Access.DISPATCH

    number: int
    shard: ShardName
    rows: tuple[ClaimedRow, ...]

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[Refusals]:
        """Put unsent rows back as they were, each only if nothing has happened to it since; return the refused ones."""
        put_back = partial(_put_back, table)
        written = yield from commit(self.rows, put_back, is_careful=at.is_careful)
        return {row.id: Refused(Tried.RETURN, why) for row, why in written.refused}


@record
class Shorten(AboutShard):
    """The job of making rows due at *due_ns* whose receiver has left, except those that another connection is changing."""

    name: ClassVar = "shortening"
    access: ClassVar = Access.DISPATCH

    receiver: int
    leases: tuple[Lease, ...]
    due_ns: int

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[Shortenings]:
        """Make the rows due, each only if nothing has happened to it since its lease was known.

        Skips locked rows, which are most likely being acked.
        """
        answer = yield lock_unacked(table, [lease.id for lease in self.leases], b"time_next")
        until_ns = {lease.id: lease.until_ns for lease in self.leases}
        found = (
            (table.id_literal(raw or b""), int(time or 0)) for (raw, time), _ in answer.rows
        )
        ids = tuple(one for one, time_next_ns in found if until_ns.get(one) == time_next_ns)
        written = yield from commit(
            ids,
            lambda part: update(table, part, b"time_next = %d" % self.due_ns),
            is_careful=at.is_careful,
        )
        return Shortenings(
            tuple(written.done),
            {one: Refused(Tried.RETURN, why) for one, why in written.refused},
        )


def _put_back(table: MessageTable, rows: Sequence[ClaimedRow]) -> bytes:
    ident = quoted(table.id_column)
    return (
        b"UPDATE %b SET time_next = CASE %b%b ELSE time_next END, epoch = epoch - 1"
        b" WHERE time_acked IS NULL AND (%b)"
        % (
            by_id(table),
            ident,
            b"".join(b" WHEN %b THEN %d" % (row.id, row.time_next_ns) for row in rows),
            b" OR ".join(
                b"(%b = %b AND epoch = %d AND time_next = %d)"
                % (ident, row.id, row.epoch + 1, row.due_next_ns)
                for row in rows
            ),
        )
    )
