"""The transaction that writes early acks (`engine.messaging.acks.early_acks`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.leases.lease_rows import look
from streamfrom.engine.messaging.store.row_writes import carefully, commit
from streamfrom.engine.messaging.table.message import LateWrites, Refused, Tried
from streamfrom.engine.messaging.table.sql_names import by_id, lock_unacked, quoted
from streamfrom.engine.messaging.table.store_job import AboutShard, Access
from streamfrom.sqlparse_ext.records import record
from streamfrom.sqlparse_ext.writes.completion import COUNT_SEND


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


@record
class WriteAcks(AboutShard):
    """The job of writing early acks, ids and times: they are true whichever process dispatches."""

    name: ClassVar = "writing of acks"
    access: ClassVar = Access.WRITE

    acks: tuple[tuple[bytes, int], ...]

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[LateWrites]:
        """Acknowledge the messages, and commit. A row that is acked or gone is left as it is."""
        acked_ns = dict(self.acks)
        answer = yield lock_unacked(table, acked_ns)
        found = {table.id_literal(raw or b"") for (raw,), _ in answer.rows}
        here = {one: at for one, at in acked_ns.items() if one in found}
        locked: tuple[bytes, ...] = ()
        if missing := [one for one in acked_ns if one not in found]:
            locked = tuple((yield from look(table, missing)))
        written = yield from commit(
            [*here],
            lambda part: acknowledge(table, {one: here[one] for one in part}),
            is_careful=at.is_careful,
        )
        return LateWrites(
            (*locked, *written.left),
            {one: Refused(Tried.ACK, why) for one, why in written.refused},
        )


def acknowledge(table: MessageTable, acked_ns: Mapping[bytes, int]) -> bytes:
    """Return the statement that acknowledges rows which this transaction has locked, each at its own time."""
    ident = quoted(table.id_column)
    times = set(acked_ns.values())
    moment = b"%d" % max(times)
    if len(times) > 1:
        whens = b"".join(b" WHEN %b THEN %d" % each for each in acked_ns.items())
        moment = b"CASE %b%b ELSE %b END" % (ident, whens, moment)
    return b"UPDATE %b SET time_acked = %b%b, time_next = NULL WHERE %b IN (%b)" % (
        by_id(table),
        moment,
        COUNT_SEND if table.facts.is_lazy else b"",
        ident,
        b", ".join(acked_ns),
    )


def acknowledge_all(
    table: MessageTable, acked_ns: Mapping[bytes, int], turn: int
) -> tuple[bytes, bytes]:
    """Return two statements that acknowledge all of *acked_ns*, or none if one is acked, gone or locked by others.

    The first locks the free rows, and sets a variable to *turn* if that is all of them; the second changes rows only then.
    Servers evaluate a condition without columns before they lock any row (tried with MariaDB 10.11 and MySQL 9.7).
    """
    ids = b", ".join(acked_ns)
    count = (
        b"SELECT IF(COUNT(*) = %d, %d, 0) INTO @streamfrom_free FROM %b WHERE %b IN (%b) AND time_acked IS NULL FOR UPDATE SKIP LOCKED"
        % (len(acked_ns), turn, by_id(table), quoted(table.id_column), ids)
    )
    return count, acknowledge(table, acked_ns) + b" AND @streamfrom_free = %d" % turn
