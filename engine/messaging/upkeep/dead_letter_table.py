"""Moving messages that were sent often enough to `vt_dead_letter`, a table of the same database, and back.

The row moves within the claim that would have sent it again. The tables' columns may differ: the common ones
are copied, and the dead letter table may have any of the columns below. If the row cannot move, only that part
of the claim is undone: the row is parked in its queue, and the log reports the reason.

The account that moves rows may write any table. So rows move only into a table whose own comment consents: it has
`vt_dead_letters_of` with the queue's name, or with several names separated by blanks. CREATE QUEUE and ALTER QUEUE write
it on the user's own connection, so only a user who may alter the table can name it.

dead_time: when it moved, in nanoseconds since 1970.
dead_reason: why, as a sentence.
dead_attempts: how often it was sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.store.row_writes import write
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.sql_names import quoted, update
from streamfrom.engine.messaging.table.table_settings import CONSENT, settings_of
from streamfrom.engine.messaging.upkeep.peek import PeekPlace, PeekState, peek
from streamfrom.sqlparse_ext.text.identifiers import literal, text_literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.store.row_writes import WrittenRows
    from streamfrom.engine.messaging.table.message_table import MessageTable


# The columns of the dead letter table: names, whether the queue has one of that name, and the comment of their table.
_COLUMNS: Final = (
    b"SELECT d.column_name, s.column_name IS NOT NULL, t.table_comment FROM information_schema.columns AS d"
    b" JOIN information_schema.tables AS t ON t.table_schema = DATABASE() AND t.table_name = %b"
    b" LEFT JOIN information_schema.columns AS s ON s.table_schema = d.table_schema AND s.table_name = %b"
    b" AND s.column_name = d.column_name%b WHERE d.table_schema = DATABASE() AND d.table_name = %b%b"
    b" ORDER BY d.ordinal_position"
)
# Generated columns take no value. For the others MariaDB has NULL there, and MySQL an empty text.
_TAKES_VALUES: Final = b" AND COALESCE(%b.generation_expression, '') = ''"
_NAMES: Final = (
    b"SELECT c.column_name, t.table_comment FROM information_schema.columns AS c"
    b" JOIN information_schema.tables AS t ON t.table_schema = %b AND t.table_name = %b"
    b" WHERE c.table_schema = %b AND c.table_name = %b"
    b" AND COALESCE(c.generation_expression, '') = ''"
)
# A queue's columns about the delivery, besides its id: a row that moves leaves them behind.
OF_DELIVERY: Final = frozenset({"priority", "epoch", "time_next", "time_acked", "state"})


class Buried(NamedTuple):
    """The result of moving rows to the dead letters.

    moved: the moved ids.
    left: ids that were not tried individually, because so many others stay.
    why: the reason why these stay.
    """

    moved: Sequence[bytes]
    left: Sequence[bytes] = ()
    why: str | None = None


def columns_of(database: str, name: str) -> str:
    """Return the query for the columns of a table that can be written, each with the table's comment; no rows without a table."""
    place = text_literal(database), text_literal(name)
    return (_NAMES % (*place, *place)).decode()


def consents(comment: str, queue: str) -> bool:
    """Return whether a table with *comment* takes the dead letters of *queue*."""
    return queue in consenting_queues(comment, queue)


def consenting_queues(comment: str, queue: str) -> tuple[str, ...]:
    """Return the queues whose dead letters a table with *comment* takes: names between spaces, or the whole name of *queue*."""
    named = settings_of(comment).get(CONSENT, "")
    return (queue,) if named == queue else tuple(named.split())


def with_consent(comment: str, queue: str) -> str:
    """Return *comment* with the consent to take the dead letters of *queue*."""
    if consents(comment, queue):
        return comment
    pieces = comment.split(",")
    places = [at for at, each in enumerate(pieces) if CONSENT in settings_of(each)]
    if not places:
        return ",".join([*filter(None, (comment,)), f"{CONSENT}={queue}"])
    # The last of two wins.
    pieces[places[-1]] = f"{pieces[places[-1]].rstrip()} {queue}"
    return ",".join(pieces)


def fault(
    name: str,
    columns: Collection[tuple[str, str]],
    queue: str,
    own: Collection[str],
) -> str | None:
    """Return why dead letters cannot be kept, or lose every column; None if they can be kept.

    columns: those of the table *name* with its comment, as `columns_of` gives them. queue, own: the messages' table and its columns.
    """
    if not columns:
        return f"vt_dead_letter: there is no table {name}: messages are parked instead"
    if not all(consents(comment, queue) for _, comment in columns):
        return f"vt_dead_letter: {_refusal(name, queue)}: messages are parked instead"
    shared = {column.lower() for column, _ in columns} & {column.lower() for column in own}
    if shared <= OF_DELIVERY:
        return (
            f"vt_dead_letter: {name} has no column of a message, so nothing of it would be kept"
        )
    return None


def bury(table: MessageTable, ids: Sequence[bytes], now_ns: int) -> Conversation[Buried]:
    """Move the rows *ids*, locked by this transaction, to the dead letters, as far as the server takes them."""
    name = table.properties.dead_letter
    assert name is not None
    columns, comment = yield from _columns(table, which=_TAKES_VALUES % b"d")
    if not columns:
        return Buried((), why=f"there is no table {name}")
    if not consents(comment, table.name):
        return Buried((), why=_refusal(name, table.name))
    values = {
        quoted(column): value
        for column, is_shared in columns
        if (value := _value(table, column, now_ns, is_shared=is_shared)) is not None
    }
    if not values:
        return Buried((), why=f"{name} has no column of it")
    yield StoreQuery(b"SAVEPOINT dead_letters")
    try:
        written = yield from _move(table, ids, table.name, name, values)
    except ServerRefused as refused:
        yield StoreQuery(b"ROLLBACK TO SAVEPOINT dead_letters")
        return Buried((), why=refused.message)
    _, why = written.refused[-1] if written.refused else (b"", None)
    return Buried(written.done, written.left, why)


def _columns(
    table: MessageTable, shared: bytes = b"", which: bytes = b""
) -> Conversation[tuple[list[tuple[str, bool]], str]]:
    """Return the columns of the dead letter table, whether the queue has them too, and its comment.

    shared, which: conditions for columns *s* of the queue, and for the columns *d*.
    """
    assert table.properties.dead_letter is not None
    dead, own = text_literal(table.properties.dead_letter), text_literal(table.name)
    answer = yield StoreQuery(_COLUMNS % (dead, own, shared, dead, which), 3)
    columns = [((name or b"").decode(), flag == b"1") for (name, flag, _), _ in answer.rows]
    comments = ((text or b"").decode(errors="replace") for (_, _, text), _ in answer.rows)
    return columns, next(comments, "")


def _move(
    table: MessageTable,
    ids: Sequence[bytes],
    source: str,
    to: str,
    values: Mapping[bytes, bytes],
) -> Conversation[WrittenRows[bytes]]:
    """Move rows, locked by this transaction, from one table into another, as `write`. values: the columns' expressions."""

    def rows(part: Sequence[bytes]) -> bytes:
        ident = quoted(table.id_column)
        return b" FROM %b WHERE %b IN (%b)" % (quoted(source), ident, b", ".join(part))

    copy = b"INSERT INTO %b (%b) SELECT %b" % (
        quoted(to),
        b", ".join(values),
        b", ".join(values.values()),
    )
    return write(ids, lambda part: copy + rows(part), lambda part: b"DELETE" + rows(part))


def _refusal(name: str, queue: str) -> str:
    return (
        f"the comment of {name} does not consent to it: ALTER QUEUE {queue} SET (dead_letter ="
        f" {name}) adds {CONSENT}={queue} to it"
    )


def _value(table: MessageTable, column: str, now_ns: int, *, is_shared: bool) -> bytes | None:
    """Return the expression for a column of the dead letters; None for one that takes its default."""
    attempts = table.properties.max_attempts
    match column.lower():
        case "dead_time":
            return b"%d" % now_ns
        case "dead_reason":
            often = b"once" if attempts == 1 else b"%d times" % attempts
            return literal(b"sent %b and not acknowledged" % often)
        case "dead_attempts":
            return b"epoch"
        # If the dead letter table is itself a queue, it sends the row as a new message.
        case "epoch":
            return b"0"
        case "time_next":
            return b"%d" % now_ns
        case "time_acked":
            return b"NULL"
        case _:
            return quoted(column) if is_shared else None


# One short transaction.
REVIVED_AT_ONCE: Final = 1000


Place = TypeVar("Place")


class Requeued(NamedTuple, Generic[Place]):
    """The result of one step of a REQUEUE.

    rows: how many messages are ready again.
    place: where to look for the next ones; None if there are no more.
    refused: those that the server does not write, with its errors; they stay in their place.
    """

    rows: int
    place: Place | None
    refused: Sequence[tuple[bytes, str]] = ()


def revive(
    table: MessageTable, place: PeekPlace | None, now_ns: int, limit: int = REVIVED_AT_ONCE
) -> Conversation[Requeued[PeekPlace]]:
    """Make parked messages due at once, with all their attempts ahead: *limit* at most, from *place* on.

    An index finds them.
    """
    found = yield from peek(table, PeekState.PARKED, place, now_ns, limit)
    if not found.ids:
        return Requeued(0, found.place)
    rows, refused = 0, list[tuple[bytes, str]]()
    todo = [*found.ids]
    is_parked = b" AND time_next = %d AND time_acked IS NULL" % PARKED_NS
    while todo:
        written = yield from write(
            todo, lambda part: update(table, part, b"time_next = 0, epoch = 0") + is_parked
        )
        rows += written.affected
        refused += written.refused
        todo = written.left
    return Requeued(rows, found.place, tuple(refused))


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
    """Return the dead letter table of *table*; without columns there is no such table."""
    columns, comment = yield from _columns(table, shared=_TAKES_VALUES % b"s")
    return DeadLetterSource(
        tuple(
            name
            for name, is_shared in columns
            if is_shared and name.lower() not in OF_DELIVERY - {"priority"}
        ),
        is_queue="time_acked" in {name.lower() for name, _ in columns},
        queues=consenting_queues(comment, table.name),
    )


def restore(
    table: MessageTable, dead: DeadLetterSource, behind: bytes | None, limit: int
) -> Conversation[Requeued[bytes]]:
    """Move dead letters back, as new messages, within the current transaction: *limit* at most, with ids after *behind*."""
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
    values = {quoted(name): quoted(name) for name in dead.columns}
    values |= {b"epoch": b"0", b"time_next": b"0", b"time_acked": b"NULL"}
    ids = [*map(table.id_literal, found)]
    name = table.properties.dead_letter
    written = yield from _move(table, ids, name, table.name, values)
    last = found[-1] if len(found) == limit else None
    return Requeued(len(written.done), last, tuple(written.refused))
