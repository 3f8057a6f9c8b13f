"""Finding keys, and the keys of messages: the queries of a poll if keys take turns.

The walk follows the index of the keys, some keys per poll, and starts again at the end. So it needs memory for only a few of a
million keys, and passes each of them. A step is one dive into the index, however many rows the key has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.engine.messaging.table.sql_names import hinted, quoted, read_unacked


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


# A step of the walk and the reads of a key take about three statements.
KEYS_WALKED_MAX: Final = 50
# The key of the rows that have none.
NO_KEY: Final = b"NULL"


def rows_of_ids(
    table: MessageTable, ids: tuple[bytes, ...]
) -> Conversation[tuple[MessageKey, ...]]:
    """Return the unacked messages among *ids*, with their keys."""
    if not ids or table.key_column is None:
        return ()
    key = quoted(table.key_column)
    answer = yield read_unacked(table, ids, b"priority", b"time_next", key)
    return tuple(
        MessageKey(
            table.id_literal(raw or b""),
            int(priority or 0),
            max(0, int(time_next or 0)),
            literal_of(table, key),
        )
        for (raw, priority, time_next, key), _ in answer.rows
    )


def literal_of(table: MessageTable, raw: bytes | None) -> bytes:
    """Return the literal of a key from its text-protocol value."""
    return NO_KEY if raw is None else table.key_literal(raw)


def walk(
    table: MessageTable, walked_to: bytes
) -> Conversation[tuple[list[bytes], bytes, bool]]:
    """Return the keys that follow *walked_to*, the key up to which they go, and whether these are all.

    walked_to: b"" for the beginning, which has the rows without a key.
    """
    found: list[bytes] = [] if walked_to else [NO_KEY]
    after, up_to = walked_to, b""
    while len(found) < KEYS_WALKED_MAX:
        least = yield from _next_key(table, after, up_to)
        if least:
            found.append(least)
            after = least
        elif not walked_to or up_to:
            return found, walked_to, True
        else:
            found.append(NO_KEY)
            after, up_to = b"", walked_to
    return found, after, False


def _next_key(table: MessageTable, after: bytes, up_to: bytes) -> Conversation[bytes]:
    key = quoted(table.key_column or "")
    rows = hinted(table, table.key_index)
    sql = b"SELECT MIN(%b) FROM %b WHERE time_acked IS NULL" % (key, rows)
    if after:
        sql += b" AND %b > %b" % (key, after)
    if up_to:
        sql += b" AND %b <= %b" % (key, up_to)
    answer = yield StoreQuery(sql, 1)
    (least,), _ = answer.rows[0]
    return b"" if least is None else table.key_literal(least)
