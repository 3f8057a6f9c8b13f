"""Parked messages and dead letters become messages as before, some at a time. Pure: conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.store.refusals import is_of_rows
from streamfrom.engine.messaging.store.row_writes import Halves, write
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from streamfrom.engine.messaging.table.sql_names import by_id, quoted
from streamfrom.engine.messaging.upkeep.dead_letter_table import OF_DELIVERY, consenting_queues
from streamfrom.engine.messaging.upkeep.peek import PeekPlace, PeekState, peek
from streamfrom.sqlparse_ext.text.identifiers import text_literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


# One short transaction.
REVIVED_AT_ONCE: Final = 1000


class Revived(NamedTuple):
    """What was revived.

    rows: how many messages were still parked.
    refused: those that the server does not write, with its words; they stay parked.
    place: where the next ones are looked for; None where there are no more.
    """

    rows: int
    place: PeekPlace | None
    refused: Sequence[tuple[bytes, str]] = ()


class Restored(NamedTuple):
    """What was moved back: how many, the id behind which the next ones are, None at the end, and what the server refuses."""

    rows: int
    last: bytes | None
    refused: Sequence[tuple[bytes, str]] = ()


# Names, whether the queue has a column of that name that can be written, and the comment.
_SHARED: Final = (
    b"SELECT d.column_name, s.column_name IS NOT NULL, t.table_comment FROM information_schema.columns AS d"
    b" JOIN information_schema.tables AS t ON t.table_schema = DATABASE() AND t.table_name = %b"
    b" LEFT JOIN information_schema.columns AS s ON s.table_schema = d.table_schema AND s.table_name = %b"
    b" AND s.column_name = d.column_name AND COALESCE(s.generation_expression, '') = ''"
    b" WHERE d.table_schema = DATABASE() AND d.table_name = %b ORDER BY d.ordinal_position"
)


def revive(
    table: MessageTable, place: PeekPlace | None, now_ns: int, limit: int = REVIVED_AT_ONCE
) -> Conversation[Revived]:
    """Let parked messages be due at once, with all their attempts before them: *limit* at most, from *place* on.

    An index finds them.
    """
    found = yield from peek(table, PeekState.PARKED, place, now_ns, limit)
    if not found.ids:
        return Revived(0, found.place)
    rows, refused = 0, list[tuple[bytes, str]]()
    todo = [*found.ids]
    while todo:
        written = yield from write(todo, lambda part: _update(table, part))
        rows += written.affected
        refused += written.refused
        todo = written.left
    return Revived(rows, found.place, tuple(refused))


def _update(table: MessageTable, ids: Sequence[bytes]) -> bytes:
    return (
        b"UPDATE %b SET time_next = 0, epoch = 0 WHERE %b IN (%b) AND time_next = %d"
        b" AND time_acked IS NULL"
        % (by_id(table), quoted(table.id_column), b", ".join(ids), PARKED_NS)
    )


class DeadLetterSource(NamedTuple):
    """The table of a queue's dead letters.

    columns: those that go back into the queue, the id among them.
    is_queue: it is a message table itself, so a row of it may be acknowledged.
    queues: those whose dead letters its comment consents to take.
    """

    columns: tuple[str, ...]
    is_queue: bool
    queues: tuple[str, ...]


def dead_letters(table: MessageTable) -> Conversation[DeadLetterSource]:
    """Return what is to be known of the dead letters of *table*; without columns there is no such table."""
    assert table.properties.dead_letter is not None
    dead, own = text_literal(table.properties.dead_letter), text_literal(table.name)
    answer = yield StoreQuery(_SHARED % (dead, own, dead), 3)
    names = [(name or b"").decode() for (name, _, _), _ in answer.rows]
    shared = [
        name for name, ((_, flag, _), _) in zip(names, answer.rows, strict=True) if flag == b"1"
    ]
    comment = next(((text or b"").decode() for (_, _, text), _ in answer.rows), "")
    return DeadLetterSource(
        tuple(name for name in shared if name.lower() not in OF_DELIVERY - {"priority"}),
        is_queue="time_acked" in {name.lower() for name in names},
        queues=consenting_queues(comment, table.name),
    )


def restore(
    table: MessageTable, dead: DeadLetterSource, behind: bytes | None, limit: int
) -> Conversation[Restored]:
    """Move dead letters back, as new messages, within the transaction under way: *limit* at most, with ids behind *behind*."""
    assert table.properties.dead_letter is not None
    ident, source = quoted(table.id_column), quoted(table.properties.dead_letter)
    unacked = b" AND time_acked IS NULL" if dead.is_queue else b""
    after = b"TRUE" if behind is None else b"%b > %b" % (ident, table.id_literal(behind))
    answer = yield StoreQuery(
        b"SELECT %b FROM %b WHERE %b%b ORDER BY %b LIMIT %d FOR UPDATE SKIP LOCKED"
        % (ident, source, after, unacked, ident, limit),
        1,
    )
    found = [row[0] or b"" for row, _ in answer.rows]
    names = b", ".join(map(quoted, dead.columns))
    halves, rows = Halves([*map(table.id_literal, found)]), 0
    while part := halves.next():
        where = b"%b WHERE %b IN (%b)" % (source, ident, b", ".join(part))
        yield StoreQuery(b"SAVEPOINT requeue")
        try:
            answer = yield StoreQuery(
                b"INSERT INTO %b (%b, epoch, time_next, time_acked) SELECT %b, 0, 0, NULL FROM %b"
                % (quoted(table.name), names, names, where)
            )
            yield StoreQuery(b"DELETE FROM " + where)
        except ServerRefused as refused:
            yield StoreQuery(b"ROLLBACK TO SAVEPOINT requeue")
            if not is_of_rows(refused.code):
                raise
            halves.refuse(part, refused.message)
        else:
            rows += answer.affected
    last = found[-1] if len(found) == limit else None
    return Restored(rows, last, tuple(halves.refused))
