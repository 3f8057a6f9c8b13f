"""What rows show of leases: read as conversations, without a lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.backoff import wait_range
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.engine.messaging.table.sql_names import by_id, quoted
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import At
    from streamfrom.engine.messaging.table.table_settings import Properties
    from streamfrom.engine.sharding.keyspace import ShardName


@record
class Look:
    """The job of reading when the rows of messages in flight are due."""

    name: ClassVar = "look"
    access: ClassVar = Access.READ

    shard: ShardName
    ids: tuple[bytes, ...]

    def talk(self, table: MessageTable, _at: At) -> Conversation[dict[bytes, int]]:
        """Return its conversation."""
        return look(table, self.ids)


@record
class FindLeases:
    """The job of reading which messages a former dispatcher has in flight."""

    name: ClassVar = "reading what is in flight"
    access: ClassVar = Access.READ

    number: int
    shard: ShardName

    def talk(self, table: MessageTable, at: At) -> Conversation[dict[bytes, int]]:
        """Return its conversation."""
        return leases_left(table, at.now_ns)


def look(table: MessageTable, ids: Sequence[bytes]) -> Conversation[dict[bytes, int]]:
    """Read when rows are due, without a lock; those that are acked or gone are left out."""
    ident = quoted(table.id_column)
    answer = yield StoreQuery(
        b"SELECT %b, IFNULL(time_next, 0) FROM %b WHERE %b IN (%b) AND time_acked IS NULL"
        % (ident, by_id(table), ident, b", ".join(ids)),
        2,
    )
    return {
        table.id_literal(raw or b""): int(time_next or 0) for (raw, time_next), _ in answer.rows
    }


def leases_left(table: MessageTable, now_ns: int) -> Conversation[dict[bytes, int]]:
    """Read which messages were sent and are neither acked nor due again, as far as rows show it, and until when.

    It walks over all that wait for later, once for each term of a dispatcher.
    """
    answer = yield StoreQuery(
        b"SELECT %b, epoch, time_next FROM %b WHERE time_acked IS NULL AND epoch > 0"
        b" AND time_next > %d AND time_next < %d"
        % (quoted(table.id_column), quoted(table.name), now_ns, PARKED_NS),
        3,
    )
    return {
        table.id_literal(raw or b""): time_next_ns
        for (raw, epoch, time), _ in answer.rows
        if is_lease(table.properties, int(epoch or 0), time_next_ns := int(time or 0), now_ns)
    }


def is_lease(properties: Properties, epoch: int, time_next_ns: int, now_ns: int) -> bool:
    """Return whether an unacked row can only be distinguished from one in flight by its sender.

    What is due later than its last send can have said was rescheduled by a client.
    """
    if epoch <= 0 or not now_ns < time_next_ns < PARKED_NS:
        return False
    longest = wait_range(properties, epoch - 1)
    return time_next_ns <= now_ns + longest.low_ns + longest.span_ns
