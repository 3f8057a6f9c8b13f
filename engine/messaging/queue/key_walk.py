"""Which keys there are, and of which key messages are: what a poll asks where keys take turns.

The walk goes along the index of the keys, some keys in each poll, and begins again at the end. So it takes memory for few of a
million keys, and comes by each of them. A step is a dive into the index, however many rows the key has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.engine.messaging.table.sql_names import hinted, quoted, read_unacked


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable


# A step of the walk and the reads of a key are some three statements.
KEYS_WALKED_MAX: Final = 50
# The key of the rows that have none.
NO_KEY: Final = b"NULL"


def rows_of_ids(
    table: MessageTable, ids: tuple[bytes, ...]
) -> Conversation[tuple[MessageKey, ...]]:
    """Return the unacked ones among *ids*, with their keys."""
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
    """Return the literal of a key as the text protocol sends it."""
    return NO_KEY if raw is None else table.key_literal(raw)


def walk(
    table: MessageTable, walked_to: bytes
) -> Conversation[tuple[list[bytes], bytes, bool]]:
    """Return the keys that come after *walked_to*, up to where they go, and whether these are all.

    walked_to: b"" for the beginning, where the rows without a key are.
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
