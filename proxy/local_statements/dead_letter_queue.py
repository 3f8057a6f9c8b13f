"""The queue that `dead_letter = on` makes for dead letters: NAME_dead, with the queue's columns and how each message failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table.table_settings import MARK, settings_of
from streamfrom.engine.messaging.upkeep.dead_letter_table import OF_DELIVERY, with_consent
from streamfrom.proxy.local_statements.queue_definitions import (
    DEAD_SUFFIX,
    DEFAULTS,
    made_queue,
)
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, text_literal


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import TableRef

_OF_DEATH: Final = {
    "dead_time": b"`dead_time` BIGINT DEFAULT NULL",
    "dead_reason": b"`dead_reason` VARCHAR(1000) DEFAULT NULL",
    "dead_attempts": b"`dead_attempts` INT DEFAULT NULL",
}
_COLUMNS: Final = (
    b"SELECT column_name, column_type, collation_name FROM information_schema.columns"
    b" WHERE table_schema = %b AND table_name = %b ORDER BY ordinal_position"
)


def name_of(queue: str) -> str:
    """Return the name of the queue for the dead letters of *queue*."""
    return queue + DEAD_SUFFIX


def columns_of(database: str, table: str) -> str:
    """Return the query for the columns of a queue, as `create` takes them."""
    return (_COLUMNS % (text_literal(database), text_literal(table))).decode()


def create(
    table: TableRef,
    queue: str,
    columns: Sequence[tuple[object, ...]],
    placed_by: tuple[str, str] | None,
) -> bytes:
    """Return the CREATE TABLE IF NOT EXISTS of *table*, which takes the dead letters of *queue*.

    A column has the type of the queue's, and neither its constraints nor its default: whatever died has its place.

    placed_by: vindex and column that place both queues; None in an unsharded keyspace.
    """
    ident = b""
    parts: list[bytes] = []
    known = {str(name).lower() for name, *_ in columns}
    for name, kind, collation in columns:
        lower = str(name).lower()
        text = f"{quote_identifier(str(name))} {kind}"
        if collation is not None:
            text += f" COLLATE {collation}"
        if lower == "id":
            ident = f"{text} NOT NULL".encode("utf-8", "surrogateescape")
        elif lower not in OF_DELIVERY:
            hidden = " INVISIBLE" if lower == "last_error" else ""
            text += f"{hidden} DEFAULT NULL"
            parts.append(text.encode("utf-8", "surrogateescape"))
    parts += [part for name, part in _OF_DEATH.items() if name not in known]
    settings = [f"{key}={value}" for key, value in DEFAULTS.items()]
    if placed_by is not None:
        settings.append("vt_shard_by={}({})".format(*placed_by))
    comment = with_consent(",".join((MARK, *settings)), queue)
    return made_queue(table, ident, parts, comment)


def is_made_for(comment: str, queue: str) -> bool:
    """Return whether the settings of *queue* name the queue that was made for its dead letters."""
    return settings_of(comment).get("vt_dead_letter") == name_of(queue)
