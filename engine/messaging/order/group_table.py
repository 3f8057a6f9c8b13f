"""The queries of groups: which messages wait for members of their group, and which are ready to fire. See `engine.messaging.table.groups`.

A message is ready if a read that began after its row was visible finds no unacked member: members are inserted in its
transaction, and an ack is final. So each query is a statement with its own READ COMMITTED snapshot.
The row that a locking read finds may be newer than that statement's snapshot, so in the same statement its group would look done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from streamfrom.engine.messaging.queue.poll import next_priority
from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.store.row_writes import WrittenRows, carefully, commit, write
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS, FireRequest, FireResult
from streamfrom.engine.messaging.table.message import MessageKey, Refused, Tried
from streamfrom.engine.messaging.table.sql_names import (
    forced,
    lock_unacked,
    quoted,
    read_unacked,
    update,
)
from streamfrom.engine.messaging.table.store_job import AboutShard, Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation, Row
    from streamfrom.engine.messaging.table.groups import Place
    from streamfrom.engine.messaging.table.message_table import MessageTable


# Held rows per query of a walk, because claims wait for its answer.
PAGE_ROWS: Final = 200


def not_after(table: MessageTable) -> bytes:
    """Return the additional condition for a first delivery by a plain read: the message comes after no group."""
    if table.groups is None:
        return b""
    return b" AND IFNULL(%b, '') = ''" % quoted(table.groups[1])


def hold(table: MessageTable, ids: Sequence[bytes]) -> Conversation[WrittenRows[bytes]]:
    """Hold those of the rows *ids*, locked by this transaction, that wait for members; return the result for these."""
    if table.groups is None or not ids:
        return WrittenRows()
    ident, after = quoted(table.id_column), quoted(table.groups[1])
    where = b"h.%b IN (%b) AND IFNULL(h.%b, '') <> ''" % (ident, b", ".join(ids), after)
    answer = yield _question(table, table.id_index, where)
    held = [table.id_literal(row[0] or b"") for row, _ in answer.rows if row[1] is not None]
    return (
        yield from write(held, lambda part: update(table, part, b"time_next = %d" % HELD_NS))
    )


def members(table: MessageTable, ids: Sequence[bytes]) -> Conversation[frozenset[bytes]]:
    """Return those of the rows *ids* that belong to a group."""
    if table.groups is None:
        return frozenset()
    group, after = map(quoted, table.groups)
    where = b" AND IFNULL(%b, '') <> '' AND NOT (%b <=> %b)" % (group, after, group)
    answer = yield read_unacked(table, ids, where=where)
    return frozenset(table.id_literal(raw or b"") for (raw,), _ in answer.rows)


@record
class Fire(AboutShard):
    """The job of making held messages due whose groups are done."""

    name: ClassVar = "firing"
    access: ClassVar = Access.DISPATCH

    request: FireRequest

    @carefully
    def talk(self, table: MessageTable, at: At) -> Conversation[FireResult]:
        """Make held rows due whose groups are done, each once, and commit; also return the member for which each other one waits."""
        place: Place | None = None
        if self.request.ids is not None:
            where = b"h.%b IN (%b) AND h.time_acked IS NULL AND h.time_next = %d"
            answer = yield _question(
                table,
                table.id_index,
                where % (quoted(table.id_column), b", ".join(self.request.ids), HELD_NS),
            )
            found: Sequence[Row] = answer.rows
        else:
            found, place = yield from _page(table, self.request.place)
        waiting: dict[bytes, bytes] = {}
        groups: dict[bytes, bytes] = {}
        ready: dict[bytes, int] = {}
        for (raw, member, group, priority), _ in found:
            ident = table.id_literal(raw or b"")
            if member is None and ident not in self.request.left_out:
                ready[ident] = int(priority or 0)
            elif member is not None:
                waiting[ident] = table.id_literal(member)
                groups[ident] = group or b""
        parked = yield from _parked(table, waiting.values())
        dead = {ident: groups[ident] for ident, member in waiting.items() if member in parked}
        ids: dict[bytes, None] = {}
        if ready:
            answer = yield lock_unacked(table, ready, where=b" AND time_next = %d" % HELD_NS)
            ids = dict.fromkeys(table.id_literal(raw or b"") for (raw,), _ in answer.rows)
        written = yield from commit(
            [*ids],
            lambda part: update(table, part, b"time_next = %d" % at.now_ns),
            is_careful=at.is_careful,
        )
        return FireResult(
            tuple(MessageKey(ident, ready[ident], at.now_ns) for ident in written.done),
            waiting,
            dead,
            (*(ident for ident in ready if ident not in ids), *written.left),
            place,
            {ident: Refused(Tried.FIRE, why) for ident, why in written.refused},
        )


def _parked(table: MessageTable, found: Iterable[bytes]) -> Conversation[frozenset[bytes]]:
    """Return which of the members *found* were sent often enough."""
    ids = sorted(set(found))
    if not (ids and table.properties.max_attempts):
        return frozenset()
    answer = yield read_unacked(table, ids, where=b" AND time_next = %d" % PARKED_NS)
    return frozenset(table.id_literal(raw or b"") for (raw,), _ in answer.rows)


def _page(
    table: MessageTable, place: Place | None
) -> Conversation[tuple[Sequence[Row], Place | None]]:
    """Read some held rows from *place* on, and the place to continue."""
    priority, behind = (None, None) if place is None else place
    if place is None and table.has_priority and not table.priority_nullable:
        priority = yield from next_priority(table, None)
        if priority is None:
            return (), None
    while True:
        where = b"h.time_acked IS NULL AND h.time_next = %d" % HELD_NS
        if table.has_priority:
            where += b" AND h.priority " + (
                b"IS NULL" if priority is None else b"= %d" % priority
            )
        if behind is not None:
            where += b" AND h.%b > %b" % (quoted(table.id_column), behind)
        order = b" ORDER BY h.%b LIMIT %d" % (quoted(table.id_column), PAGE_ROWS)
        answer = yield _question(table, table.time_index, where + order)
        rows = answer.rows
        if len(rows) == PAGE_ROWS:
            return rows, (priority, table.id_literal(rows[-1][0][0] or b""))
        priority = (yield from next_priority(table, priority)) if table.has_priority else None
        if rows or priority is None:
            return rows, None if priority is None else (priority, None)
        behind = None


def _question(table: MessageTable, index: str | None, where: bytes) -> StoreQuery:
    """Return the query for rows *h*: id, the id of a member that is not done, the group, and the priority."""
    ident, name = quoted(table.id_column), quoted(table.name)
    priority = b"IFNULL(h.priority, 0)" if table.has_priority else b"0"
    if table.groups is None:
        # The groups were removed: held rows wait for no message.
        return StoreQuery(
            b"SELECT h.%b, NULL, NULL, %b FROM %b AS h%b WHERE %b"
            % (ident, priority, name, forced(index), where),
            4,
        )
    group, after = map(quoted, table.groups)
    # The last one, which is usually acknowledged last, so that no query is needed until then. In an order that
    # both servers read backwards from the index: by the id alone MySQL sorts the group, 20 ms for 20,000 members.
    member = (
        b"(SELECT m.%b FROM %b AS m%b WHERE m.%b = h.%b AND m.time_acked IS NULL"
        b" AND NOT (m.%b <=> m.%b) ORDER BY m.%b DESC, m.%b DESC LIMIT 1)"
    ) % (ident, name, forced(table.group_index), group, after, after, group, group, ident)
    return StoreQuery(
        b"SELECT h.%b, %b, h.%b, %b FROM %b AS h%b WHERE %b"
        % (ident, member, after, priority, name, forced(index), where),
        4,
    )
