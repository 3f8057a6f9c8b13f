"""How old acked rows are deleted, a batch at a time."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Final

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.store.row_writes import carefully, commit
from streamfrom.engine.messaging.table.message import Purged, Refused, Tried
from streamfrom.engine.messaging.table.sql_names import by_id, hinted, quoted
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


PURGE_ROWS_MAX: Final = 500  # one short transaction


@record
class Purge:
    """The job of deleting one batch of rows acked before *cutoff_ns*, except those of *left_out*."""

    name: ClassVar = "purge"
    access: ClassVar = Access.UPKEEP

    cutoff_ns: int
    left_out: Collection[bytes] = ()

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[Purged]:
        """Delete them; commit.

        A locked row is left for the next time. A DELETE by the condition alone would
        wait for it, and even for rows that it only passes: on a small table servers read along the
        primary key, where consumers ack.
        """
        where = b"time_acked < %d" % self.cutoff_ns
        if table.purge_by_schedule:
            # The first layout's primary key begins with it, and a message is scheduled before it
            # is acked: the walk stays within old rows.
            where += b" AND time_scheduled < %d" % self.cutoff_ns
        ident = quoted(table.id_column)
        left_out = b", ".join(self.left_out)
        others = b" AND %b NOT IN (%b)" % (ident, left_out) if left_out else b""
        answer = yield StoreQuery(
            b"SELECT %b FROM %b WHERE %b%b LIMIT %d FOR UPDATE SKIP LOCKED"
            % (ident, hinted(table, table.purge_index), where, others, PURGE_ROWS_MAX),
            1,
        )
        written = yield from commit(
            [table.id_literal(raw or b"") for (raw,), _ in answer.rows],
            # In the form for several tables, the only one in which a DELETE may name its index.
            lambda part: (
                b"DELETE %b FROM %b WHERE %b IN (%b) AND %b"
                % (quoted(table.name), by_id(table), ident, b", ".join(part), where)
            ),
            is_careful=at.is_careful,
        )
        return Purged(
            len(answer.rows),
            written.affected,
            {one: Refused(Tried.PURGE, why) for one, why in written.refused},
        )
