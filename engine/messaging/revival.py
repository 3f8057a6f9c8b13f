"""Parked messages become messages as before: found by the index, some at a time. Pure: a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.message_store import by_id, quoted
from streamfrom.engine.messaging.peek import PeekPlace, PeekState, peek
from streamfrom.engine.messaging.retry_limit import PARKED_NS
from streamfrom.engine.messaging.row_writes import write


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.messaging.conversation import Conversation
    from streamfrom.engine.messaging.message_table import MessageTable


# One short transaction.
REVIVED_AT_ONCE: Final = 1000


class Revived(NamedTuple):
    """What was revived.

    ids: the raw ids of messages that were parked.
    rows: how many of them were so still.
    refused: those that the server does not write, with its words; they stay parked.
    place: where the next ones are looked for; None where there are no more.
    """

    ids: tuple[bytes, ...]
    rows: int
    place: PeekPlace | None
    refused: Sequence[tuple[bytes, str]] = ()


def revive(table: MessageTable, place: PeekPlace | None, now_ns: int) -> Conversation[Revived]:
    """Let parked messages be due at once, with all their attempts before them: REVIVED_AT_ONCE at most, from *place* on.

    It is the statement that docs/sql/delivery.md prints, for rows that are found by the index.
    """
    found = yield from peek(table, PeekState.PARKED, place, now_ns, REVIVED_AT_ONCE)
    if not found.ids:
        return Revived((), 0, found.place)
    rows, refused = 0, list[tuple[bytes, str]]()
    todo = [*map(table.id_literal, found.ids)]
    while todo:
        written = yield from write(todo, lambda part: _update(table, part))
        rows += written.affected
        refused += written.refused
        todo = written.left
    return Revived(found.ids, rows, found.place, tuple(refused))


def _update(table: MessageTable, ids: Sequence[bytes]) -> bytes:
    return (
        b"UPDATE %b SET time_next = 0, epoch = 0 WHERE %b IN (%b) AND time_next = %d"
        b" AND time_acked IS NULL"
        % (by_id(table), quoted(table.id_column), b", ".join(ids), PARKED_NS)
    )
