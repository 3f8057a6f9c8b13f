"""What `vt_group` and `vt_after` ask of a queue's definition: two columns, and an index. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.groups import column_faults
from streamfrom.engine.messaging.table_settings import parse_comment, settings_of
from streamfrom.proxy.errors import BadQueue
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.reading.queues import QueueStatement

# Servers spell types their own way in SHOW CREATE TABLE, clients in every way there is.
_NUMBER: Final = re.compile(
    r"\S+\s+`?(?:(?:TINY|SMALL|MEDIUM|BIG)?INT|DEC|NUMERIC|FIXED|FLOAT|DOUBLE|REAL|BOOL|YEAR)",
    re.IGNORECASE,
)
_INDEX: Final = b"`group_idx`"
_COLUMN: Final = re.compile(r"^\s+(`((?:[^`]|``)+)` \w+)", re.MULTILINE)


def group_index(queue: QueueStatement, comment: str) -> tuple[bytes, ...]:
    """Return the index that a CREATE QUEUE with *comment* makes for its groups; nothing without groups, or where it has one.

    Raises:
        BadQueue: a setting names what is no column of the queue.
    """
    columns = {
        part.column: _is_number(part.text.decode("utf-8", "replace"))
        for part in queue.parts
        if part.column is not None
    }
    groups = _checked(comment, columns)
    # SHOW CREATE QUEUE shows it, as an index like any other.
    if groups is None or any(_INDEX in part.text for part in queue.parts):
        return ()
    name = quote_identifier(groups[0]).encode("utf-8", "surrogateescape")
    return (b"KEY %b (%b, `time_acked`)" % (_INDEX, name),)


def check_groups(comment: str, definition: str) -> None:
    """Raise BadQueue where *comment* names what is no column of SHOW CREATE TABLE's *definition*."""
    columns = _COLUMN.finditer(definition)
    _checked(comment, {one[2].replace("``", "`"): _is_number(one[1]) for one in columns})


def _checked(comment: str, columns: dict[str, bool]) -> tuple[str, str] | None:
    if not settings_of(comment).get("vt_group"):
        return None
    groups = parse_comment(comment).groups
    for fault in column_faults(groups, {name.lower(): kind for name, kind in columns.items()}):
        raise BadQueue(fault)
    return groups


def _is_number(text: str) -> bool:
    return _NUMBER.match(text) is not None
