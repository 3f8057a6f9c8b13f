"""How rows are given back: claims whose rows were sent to no receiver are undone, leases of those who have left made shorter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.store.row_writes import carefully, commit
from streamfrom.engine.messaging.table.message import Refused, Shortenings, Tried
from streamfrom.engine.messaging.table.sql_names import by_id, lock_unacked, quoted
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.leases.leases import Lease
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message import ClaimedRow, Refusals
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import At
    from streamfrom.engine.sharding.keyspace import ShardName


@record
class Release:
    """The job of undoing the claim of rows that were sent to no receiver."""

    name: ClassVar = "release"
    access: ClassVar = Access.DISPATCH

    number: int
    shard: ShardName
    rows: tuple[ClaimedRow, ...]

    def talk(self, table: MessageTable, _at: At) -> Conversation[Refusals]:
        """Return its conversation."""
        return release(table, self.rows)


@record
class Shorten:
    """The job of making rows due at *due_ns* whose receiver has left, but for those that another connection is changing."""

    name: ClassVar = "shortening"
    access: ClassVar = Access.DISPATCH

    shard: ShardName
    receiver: int
    leases: tuple[Lease, ...]
    due_ns: int

    def talk(self, table: MessageTable, _at: At) -> Conversation[Shortenings]:
        """Return its conversation."""
        return shorten(table, self.leases, self.due_ns)


@carefully
def release(
    table: MessageTable, rows: Sequence[ClaimedRow], *, is_careful: bool = False
) -> Conversation[Refusals]:
    """Put unsent rows back as they were, each only if nothing has happened to it since; return the refused ones."""
    written = yield from commit(
        rows, lambda part: _put_back(table, part), is_careful=is_careful
    )
    return {row.id: Refused(Tried.RETURN, why) for row, why in written.refused}


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


@carefully
def shorten(
    table: MessageTable, leases: Sequence[Lease], due_ns: int, *, is_careful: bool = False
) -> Conversation[Shortenings]:
    """Make rows due at *due_ns*, each only if nothing has happened to it since its lease was known.

    A locked row is left out: it is being acked, most likely.
    """
    ident = quoted(table.id_column)
    answer = yield lock_unacked(table, [lease.id for lease in leases], b"time_next")
    until_ns = {lease.id: lease.until_ns for lease in leases}
    found = ((table.id_literal(raw or b""), int(time or 0)) for (raw, time), _ in answer.rows)
    ids = tuple(one for one, time_next_ns in found if until_ns.get(one) == time_next_ns)
    if not ids:
        yield StoreQuery(b"COMMIT")
        return Shortenings()
    written = yield from commit(
        ids,
        lambda part: (
            b"UPDATE %b SET time_next = %d WHERE %b IN (%b)"
            % (by_id(table), due_ns, ident, b", ".join(part))
        ),
        is_careful=is_careful,
    )
    return Shortenings(
        tuple(written.done), {one: Refused(Tried.RETURN, why) for one, why in written.refused}
    )
