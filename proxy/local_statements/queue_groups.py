"""What `vt_group` and `vt_after` ask of a queue's definition: two columns, and an index. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.groups import column_faults
from streamfrom.engine.messaging.table.table_settings import parse_comment, settings_of
from streamfrom.proxy.errors import BadQueue
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.reading.queues import QueueStatement

# Clients spell types in every way there is.
_NUMBER: Final = re.compile(
    r"\S+\s+`?(?:(?:TINY|SMALL|MEDIUM|BIG)?INT|DEC|NUMERIC|FIXED|FLOAT|DOUBLE|REAL|BOOL|YEAR)",
    re.IGNORECASE,
)
_INDEX: Final = b"`group_idx`"


def group_index(queue: QueueStatement, comment: str) -> tuple[bytes, ...]:
    """Return the index that a CREATE QUEUE with *comment* makes for its groups; nothing without groups, or where it has one.

    Raises:
        BadQueue: a setting names what is no column of the queue.
    """
    if not settings_of(comment).get("vt_group"):
        return ()
    groups = parse_comment(comment).groups
    columns = {
        part.column.lower(): _is_number(part.text.decode("utf-8", "replace"))
        for part in queue.parts
        if part.column is not None
    }
    for fault in column_faults(groups, columns):
        raise BadQueue(fault)
    # SHOW CREATE QUEUE shows it, as an index like any other.
    if groups is None or any(_INDEX in part.text for part in queue.parts):
        return ()
    name = quote_identifier(groups[0]).encode("utf-8", "surrogateescape")
    return (b"KEY %b (%b, `time_acked`)" % (_INDEX, name),)


def _is_number(text: str) -> bool:
    return _NUMBER.match(text) is not None
